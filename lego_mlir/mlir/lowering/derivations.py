"""What layouts derive from expressions, with errors at the operations that ask for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from lego_mlir.algebra import Layout
from lego_mlir.algebra.partial import mask
from lego_mlir.algebra.slices import Slice
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, construct
from lego_mlir.index.functions import where
from lego_mlir.mlir.context import Source

Derived = TypeVar("Derived")


def located(source: Source, op: Any, make: Callable[[], Derived]) -> Derived:
    """Return what `make` returns, and give an error without a location that of the operation."""
    try:
        return make()
    except LegoError as e:
        if e.location is None:
            raise source.error(e.message, op.location, hint=e.hint) from None
        raise


def derive_offset(layout: Layout, index: tuple[Int, ...]) -> Int:
    """Return `layout.apply`, cached unless the layout calls functions of its module."""
    return layout.apply(*index) if layout.functions else _known_offset(layout, index)


def derive_index(layout: Layout, flat: Int) -> tuple[Int, ...]:
    """Return `layout.inv`, cached unless the layout calls functions of its module."""
    return layout.inv(flat) if layout.functions else _known_index(layout, flat)


def exists(piece: Slice) -> Int:
    """Return 1 where a slice counts: 0 where its first and its last element are padding."""
    if not piece.layout.is_padded:
        return 1
    last = tuple(construct.sub(n, 1) for n in piece.shape)
    first = mask(piece.padding_limits(*(0 for _ in last)))
    if not last:
        return first  # type: ignore[no-any-return]
    return where(first, 1, mask(piece.padding_limits(*last)))  # type: ignore[no-any-return]


@lru_cache(maxsize=1 << 12)
def _known_offset(layout: Layout, index: tuple[Int, ...]) -> Int:
    return layout.apply(*index)  # type: ignore[no-any-return]


@lru_cache(maxsize=1 << 12)
def _known_index(layout: Layout, flat: Int) -> tuple[Int, ...]:
    return layout.inv(flat)
