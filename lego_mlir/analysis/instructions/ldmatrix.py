"""Addresses of `ldmatrix` and `stmatrix` for the fragments of tiles in shared memory.

The tile's layout has both dimensions split into warps, fragments, and rows or columns of a
fragment. The fragment's layout says to which of its 16-byte rows a lane points. So every address is
one layout applied to one index. If the addresses of two fragments differ by the same constant for
every lane, warp and stage, one of them is the base of the other.

Source: PTX ISA, "ldmatrix", "stmatrix".
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.algebra.subdivide import Subdivision, subdivide
from lego_mlir.analysis.instructions.mma_fragments import Fragment
from lego_mlir.diagnostics import LegoError

ROW_BYTES = 16
"""Bytes of a row of the 8×8 matrices that the instructions move."""

FragmentId: TypeAlias = tuple[int, int]
"""A fragment's position among those of a warp, along rows and columns."""


@dataclass(frozen=True, slots=True)
class TileFragments:
    """The fragments of a tile.

    Attributes:
        split: the tile's layout, its two dimensions split into warps, fragments and elements.
        dims: the layout's dimensions that the tile spans; the others are stages.
        counts: fragments of a warp along rows and columns.
        transposed: whether the rows in shared memory are columns of the fragment.
        bases: for each fragment its base, which may be itself, and the distance in elements.
    """

    split: Subdivision
    dims: tuple[int, int]
    counts: FragmentId
    transposed: bool
    bases: Mapping[FragmentId, tuple[FragmentId, int]]

    def index(self, row: Any, column: Any, stages: Sequence[Any]) -> tuple[Any, ...]:
        """Return an index of the split layout.

        Args:
            row: warp, fragment, and row of the fragment.
            column: warp, fragment, and column of the fragment.
            stages: indices of the dimensions that are not the tile's.
        """
        return _index(self.split, self.dims, row, column, stages)


@functools.lru_cache(maxsize=64)
def tile_fragments(
    layout: Layout, dims: tuple[int, int], fragment: Fragment, warps: tuple[int, int], bits: int
) -> TileFragments:
    """Divide tiles in shared memory into fragments that `ldmatrix` can move.

    Args:
        layout: layout of the tiles and their stages.
        dims: its dimensions that are a tile's rows and columns; the others are stages.
        fragment: the fragment that one instruction moves.
        warps: warps that divide the tile along rows and columns.
        bits: bits of an element.

    Raises:
        LegoError: the 16 bytes of a matrix's row are not contiguous and aligned.
    """
    sizes = (cast("int", layout.dims[k]) for k in dims)
    parts = zip(sizes, warps, fragment.shape, strict=True)
    rows, columns = (size // across // own for size, across, own in parts)
    counts = rows, columns
    split = subdivide(
        layout,
        {k: of for k, *of in zip(dims, warps, counts, fragment.shape, strict=True)},
    )
    for transposed in (False, True) if bits == 16 else (False,):
        offsets = _offsets(layout, dims, fragment, warps, counts, split, transposed)
        starts = offsets[..., :1]
        together = (offsets == starts + np.arange(offsets.shape[-1])).all()
        if together and not (starts * bits // 8 % ROW_BYTES).any():
            return TileFragments(split, dims, counts, transposed, _bases(starts, counts))
    raise LegoError(
        f"ldmatrix moves {ROW_BYTES * 8 // bits} neighbours at once, and in the layout "
        f"'{layout}' they are not contiguous at multiples of {ROW_BYTES} bytes",
        hint=_hint(bits),
    )


def _hint(bits: int) -> str:
    if bits == 16:
        return "use a layout such as OrderBy(GenP([rows, columns], swizzle(8, 1, 8)))"
    return (
        f"ldmatrix does not transpose elements of {bits} bits: make the K dimension contiguous, "
        "in shared memory and so in global memory too"
    )


def _index(
    split: Subdivision, dims: tuple[int, int], row: Any, column: Any, stages: Sequence[Any]
) -> tuple[Any, ...]:
    rest = iter(stages)
    tile = dict(zip(dims, (row, column), strict=True))
    return split.index(*(tile[k] if k in tile else next(rest) for k in range(len(split.new_dims))))


def _offsets(
    layout: Layout,
    dims: tuple[int, int],
    fragment: Fragment,
    warps: tuple[int, int],
    counts: FragmentId,
    split: Subdivision,
    transposed: bool,
) -> Any:
    """Return the offsets by fragment along both dimensions, stages, warp, lane and element."""
    lanes = fragment.matrix_rows(transposed=transposed)
    others = [n for k, n in enumerate(layout.dims) if k not in dims]
    sizes = [cast("int", n) for n in (*counts, *others, *warps, *lanes.dims)]
    i, j, *stages, down, across, lane, element = np.ix_(*(np.arange(n) for n in sizes))
    row, column = OrderBy(Row(*fragment.shape)).inv(lanes.apply(lane, element))
    index = _index(split, dims, (down, i, row), (across, j, column), stages)
    return np.broadcast_to(split.layout.apply(*index), sizes)


def _bases(starts: Any, counts: FragmentId) -> Mapping[FragmentId, tuple[FragmentId, int]]:
    """Return the base of each fragment, given where the fragments' rows start."""
    found: dict[FragmentId, tuple[FragmentId, int]] = {}
    bases: list[FragmentId] = []
    for i, j in np.ndindex(counts):
        for base in bases:
            distance = starts[i, j] - starts[base]
            if (distance == distance.flat[0]).all():
                found[i, j] = base, int(distance.flat[0])
                break
        else:
            bases.append((i, j))
            found[i, j] = (i, j), 0
    return found
