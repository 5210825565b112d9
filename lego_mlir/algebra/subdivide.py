"""The same layout with some dimensions of its index split into several.

    OrderBy(Row(256, 512)).TileBy([2, 8], [128, 64])      index (m, k, i, j)

with i split into 4 and 32, and j into 8 and 8:

    OrderBy(Row(256, 512)).TileBy([2, 8], [4, 8], [32, 8])     index (m, k, i/32, j/8, i%32, j%8)

It stays the function it was, masks included: what a schedule gives to warps, lanes and registers
are dimensions of the very layout that the user wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from typing import Any

from lego_mlir.algebra.layout import Layout
from lego_mlir.algebra.parts import make_view
from lego_mlir.diagnostics import LegoError


@dataclass(frozen=True, slots=True)
class Subdivision:
    """A layout whose dimensions were split.

    Attributes:
        layout: the same function, with more dimensions.
        new_dims: for each dimension of the original layout, the dimensions that it was split into,
            outermost first.
    """

    layout: Layout
    new_dims: tuple[tuple[int, ...], ...]

    def index(self, *parts: Any) -> tuple[Any, ...]:
        """Return an index of `layout`, from one entry a dimension there was.

        Args:
            parts: the index of a dimension that was left whole, or a sequence with one entry for
                each part of one that was split. `None` stands for a whole dimension, as in slices.
        """
        if len(parts) != len(self.new_dims):
            raise LegoError(f"an index of {len(self.new_dims)} dimensions, got {len(parts)}")
        found: list[Any] = [0] * self.layout.rank
        for entry, new_dims in zip(parts, self.new_dims, strict=True):
            values = entry if isinstance(entry, tuple | list) else (entry,)
            for dim, value in zip(new_dims, values, strict=True):
                found[dim] = value
        return tuple(found)


def subdivide(layout: Layout, factors: Mapping[int, Sequence[int]]) -> Subdivision:
    """Split dimensions of a layout's index.

    Args:
        layout: of whose dimensions those that are split have known sizes.
        factors: for each dimension that is split the sizes of its parts, outermost first.

    Raises:
        LegoError: the parts of a dimension do not make it up, or it lies in an outer level of a
            TileBy.
    """
    for dim, sizes in factors.items():
        if not 0 <= dim < layout.rank or prod(sizes) != layout.dims[dim]:
            size = layout.dims[dim] if 0 <= dim < layout.rank else "none"
            raise LegoError(
                f"dimension {dim} of '{layout}' has size {size}, not {' * '.join(map(str, sizes))}"
            )
    if layout.view is not None and layout.view.kind == "TileBy":
        return _subdivide_tiles(layout, factors)
    split = [tuple(factors.get(k, (n,))) for k, n in enumerate(layout.dims)]
    starts = [0, *accumulate(len(sizes) for sizes in split)]
    new_dims = tuple(tuple(range(a, b)) for a, b in pairwise(starts))
    view = Layout(layout.orders, None, layout.window).GroupBy([n for sizes in split for n in sizes])
    return Subdivision(view, new_dims)


def _subdivide_tiles(layout: Layout, factors: Mapping[int, Sequence[int]]) -> Subdivision:
    """Split the innermost level into more levels, of size 1 where a dimension is not split."""
    assert layout.view is not None
    *outer, last = layout.view.tiles
    rank, first = len(last), len(last) * len(outer)
    if any(dim < first for dim in factors):
        raise LegoError(
            f"only the dimensions of the innermost tile of '{layout}' can be split",
            hint=f"these are the dimensions {first} to {first + rank - 1}",
        )
    split = [tuple(factors.get(first + k, (n,))) for k, n in enumerate(last)]
    depth = max(len(sizes) for sizes in split)
    # Parts are the innermost levels of their dimension, so that whole dimensions stay innermost.
    padded = [(1,) * (depth - len(sizes)) + sizes for sizes in split]
    levels = [[sizes[level] for sizes in padded] for level in range(depth)]
    new_dims: list[tuple[int, ...]] = [(k,) for k in range(first)]
    for k, sizes in enumerate(split):
        begin = depth - len(sizes)
        new_dims.append(tuple(first + level * rank + k for level in range(begin, depth)))
    return Subdivision(
        Layout(
            layout.orders, make_view("TileBy", (*outer, *levels), layout.view.skew), layout.window
        ),
        tuple(new_dims),
    )
