"""How a layout begins: `OrderBy(...)`, `TileOrderBy(...)`, `GroupBy(...)` or `TileBy(...)`."""

from __future__ import annotations

from collections.abc import Iterable

from lego_mlir.algebra.blocks import Block
from lego_mlir.algebra.layout import Layout
from lego_mlir.algebra.parts import make_order, make_view
from lego_mlir.index import Int


def OrderBy(*blocks: Block) -> Layout:  # noqa: N802
    """Return a layout of tiles one inside the other, the first block outermost."""
    return Layout((make_order("OrderBy", blocks),))


def TileOrderBy(*blocks: Block) -> Layout:  # noqa: N802
    """Return a layout that reorders a space grouped by dimension, level by level."""
    return Layout((make_order("TileOrderBy", blocks),))


def GroupBy(*tiles: Iterable[Int]) -> Layout:  # noqa: N802
    """Return a row-major layout, viewed as an array of these sizes."""
    return Layout((), make_view("GroupBy", tiles))


def TileBy(*tiles: Iterable[Int]) -> Layout:  # noqa: N802
    """Return a row-major tensor, viewed as tiles of tiles: one list of sizes a level."""
    return Layout((), make_view("TileBy", tiles))
