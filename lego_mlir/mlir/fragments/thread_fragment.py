"""A thread's fragment of a tile: its elements of the warp's accumulator fragments.

A row index of the tile splits into warp, fragment, half and group of lanes; a column index into
warp, fragment, thread of the group and element. Warp, group and thread are the thread's position.
The other factors are its fragment: a pair of adjacent elements for each row, which is a fragment's
half, and each fragment along the columns.

    vector<128x128xf32>, 2 by 2 warps     ->     8 rows by 8 columns of vector<2xf32>

Loads and stores use the memory's own layout with its dimensions split in this way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from typing import Any, TypeAlias, cast

from lego_mlir.algebra import Layout
from lego_mlir.algebra.subdivide import subdivide
from lego_mlir.analysis.instructions.mma_fragments import (
    ELEMENT,
    GROUP,
    HALF_ROW,
    THREAD,
    accumulator,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import MMA_COLUMNS, MMA_ROWS, WARPGROUP_WARPS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, vector
from lego_mlir.mlir.fragments.matrix_access import MatrixAccess
from lego_mlir.mlir.fragments.warps import Thread
from lego_mlir.mlir.tiles import accesses
from lego_mlir.mlir.tiles.accesses import Tile

Pair: TypeAlias = Any
"""Two adjacent elements: a vector of two, or two values."""

PairsByPosition: TypeAlias = Mapping[tuple[int, int], Pair]
"""The pairs of a fragment, by row and column."""

PAIR = 2

Axes: TypeAlias = tuple[int, ...]
"""The axis of the tile of each dimension of a vector: 0 for rows, 1 for columns."""


@dataclass(frozen=True, slots=True)
class FragmentValue:
    """A thread's fragment of one value.

    Attributes:
        pairs: the pairs, by row and column; on an axis that the value does not depend on only at 0.
        varies: the axes that the value depends on.
    """

    pairs: PairsByPosition
    varies: tuple[bool, bool]

    def at(self, row: int, column: int) -> Pair:
        """Return the pair at a row and column of the fragment."""
        return self.pairs[row * self.varies[0], column * self.varies[1]]

    def values(self, positions: Iterable[tuple[int, int]]) -> Iterator[tuple[Any, Any]]:
        """Yield the pairs at `positions` as two values each; a broadcast pair is unpacked once."""
        found: dict[tuple[int, int], tuple[Any, Any]] = {}
        for row, column in positions:
            key = row * self.varies[0], column * self.varies[1]
            if key not in found:
                found[key] = as_values(self.pairs[key])
            yield found[key]


class RestartedPairs(Mapping[tuple[int, int], Pair]):
    """Pairs that restart if a condition holds, each selected on access.

    Args:
        condition: an i1.
        start: the fragment if it holds.
        before: the fragment otherwise.
    """

    def __init__(self, condition: Any, start: FragmentValue, before: FragmentValue) -> None:
        self.condition = condition
        self.start = start
        self.before = before

    def __getitem__(self, position: tuple[int, int]) -> Pair:
        start, before = (
            as_vector(fragment.at(*position)) for fragment in (self.start, self.before)
        )
        return arith.SelectOp(self.condition, start, before).result

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self.before.pairs)

    def __len__(self) -> int:
        return len(self.before.pairs)


def is_undefined(fragment: FragmentValue) -> bool:
    """Return whether a value is poison."""
    if any(fragment.varies):
        return False
    pair = fragment.at(0, 0)
    return not isinstance(pair, tuple) and bool(pair.owner.name == "ub.poison")


def as_vector(pair: Pair) -> Any:
    """Return a pair as a vector of two."""
    if not isinstance(pair, tuple):
        return pair
    kind = ir.VectorType.get([PAIR], pair[0].type)
    made = ir.Operation.create("vector.from_elements", results=[kind], operands=list(pair))
    return made.results[0]


def as_values(pair: Pair) -> tuple[Any, Any]:
    """Return a pair as two values."""
    if isinstance(pair, tuple):
        return pair
    first, second = (_extracted(pair, k) for k in range(PAIR))
    return first, second


def _extracted(pair: Any, k: int) -> Any:
    # Without the bindings' class, which is slow: there are two of these for each of many pairs.
    return ir.Operation.create(
        "vector.extract",
        results=[ir.VectorType(pair.type).element_type],
        operands=[pair],
        attributes={"static_position": ir.DenseI64ArrayAttr.get([k])},
    ).results[0]


class ThreadFragment:
    """A thread's fragment of tiles of one shape.

    Args:
        thread: the thread's position.
        shape: the tile's rows and columns.
        warps: the layout from a warp's row and column to its id.
        has_stmatrix: whether the target has that instruction.

    Attributes:
        counts: the fragment's rows, and its pairs in a row.
    """

    def __init__(
        self, thread: Thread, shape: tuple[int, int], warps: Layout, *, has_stmatrix: bool
    ) -> None:
        sizes = accumulator().sizes
        inner = (sizes[HALF_ROW], sizes[GROUP]), (sizes[THREAD], sizes[ELEMENT])
        down, across = (n for n in warps.dims if isinstance(n, int))
        fragments = shape[0] // down // MMA_ROWS, shape[1] // across // MMA_COLUMNS
        self.counts = fragments[0] * sizes[HALF_ROW], fragments[1]
        self._fragments = fragments
        self._warps = down, across
        rows: tuple[int, ...] = (down, fragments[0])
        row: tuple[Any, ...] = (thread.warp[0], None)
        if thread.warpgroup is not None:
            group, warp = thread.warpgroup
            rows, row = (
                (down // WARPGROUP_WARPS, fragments[0], WARPGROUP_WARPS),
                (group, None, warp),
            )
        self._split = ((*rows, *inner[0]), (across, fragments[1], *inner[1]))
        self._position = (
            (*row, None, thread.group),
            (thread.warp[1], None, thread.thread, None),
        )
        self._thread = thread
        self._has_stmatrix = has_stmatrix

    def positions(self, varies: tuple[bool, bool] = (True, True)) -> Iterator[tuple[int, int]]:
        """Return the positions of the pairs of a value."""
        rows, columns = (n if v else 1 for n, v in zip(self.counts, varies, strict=True))
        return ((row, column) for row in range(rows) for column in range(columns))

    def varies(self, shape: Sequence[int], axes: Axes) -> tuple[bool, bool]:
        """Return whether a vector of this shape depends on rows and on columns."""
        long = {axis for n, axis in zip(shape, axes, strict=True) if n != 1}
        return 0 in long, 1 in long

    def load(self, tile: Tile, axes: Axes) -> FragmentValue:
        """Load the thread's fragment of a tile, or of a row or column of one."""
        layout, index, at = self._subdivided(tile, axes)
        value = accesses.load(layout, tile.buffer, index, tile.sizes)
        if dialect.OTHER in tile.op.attributes:
            value.owner.attributes[dialect.OTHER] = tile.op.attributes[dialect.OTHER]
        row = _reshaped(value, [prod(value.type.shape)])
        varies = self.varies(tile.shape, axes)
        pairs = {}
        for position in self.positions(varies):
            start = at(*position)
            if varies[1]:
                kind = ir.VectorType.get([PAIR], tile.element)
                op = vector.ExtractStridedSliceOp(kind, row, [start], [PAIR], [1])
                pairs[position] = op.result
            else:
                one = vector.ExtractOp(row, [], [start]).result
                pairs[position] = (one, one)
        return FragmentValue(pairs, varies)

    def store(self, fragment: FragmentValue, tile: Tile) -> None:
        """Store the thread's fragment of a tile."""
        if (writes := self.writers(tile, [0])) is not None:
            writes[0](fragment)
            return
        layout, index, at = self._subdivided(tile, (0, 1))
        sizes = [cast("int", layout.dims[k]) for k, i in enumerate(index) if i is None]
        kind = ir.VectorType.get([prod(sizes)], tile.element)
        zero = ir.FloatAttr.get if isinstance(tile.element, ir.FloatType) else ir.IntegerAttr.get
        splat = ir.DenseElementsAttr.get_splat(kind, zero(tile.element, 0))
        row = arith.ConstantOp(kind, splat).result
        for position in self.positions():
            pair = as_vector(fragment.at(*position))
            row = vector.InsertStridedSliceOp(pair, row, [at(*position)], [1]).result
        accesses.store(_reshaped(row, sizes), layout, tile.buffer, index, tile.sizes)

    def writers(
        self, tile: Tile, distances: Sequence[int]
    ) -> list[Callable[[FragmentValue], None]] | None:
        """Compute addresses for stmatrix, and return functions that make the stores.

        Args:
            tile: a tile in shared memory.
            distances: the distances, in elements, of the tiles to write from `tile`.

        Returns:
            A function for each distance; `None` if stmatrix cannot write the tile.
        """
        bits = tile.element.width
        is_plain = self._has_stmatrix and self._thread.warpgroup is None
        if not (is_plain and tile.is_shared and bits == 16):
            return None
        fragment = accumulator(2 - self._fragments[1] % 2)
        rows, columns = tile.whole
        try:
            matrices = MatrixAccess(tile.layout, (rows, columns), fragment, self._warps, bits)
        except LegoError:
            return None
        matrices.prepare(tile, self._thread.lane, self._thread.warp)
        return [partial(self._store_matrices, matrices.at_distance(n)) for n in distances]

    def _store_matrices(self, matrices: MatrixAccess, fragment: FragmentValue) -> None:
        i32 = ir.IntegerType.get_signless(32)
        rows, columns = matrices.counts
        halves, tiles = self.counts[0] // rows, self.counts[1] // columns
        for i, j in product(range(rows), range(columns)):
            registers = []
            for neighbour, half in product(range(tiles), range(halves)):
                pair = as_vector(fragment.at(i * halves + half, j * tiles + neighbour))
                packed = ir.Operation.create("llvm.bitcast", results=[i32], operands=[pair])
                registers.append(packed.results[0])
            matrices.store(i, j, registers)

    def _subdivided(self, tile: Tile, axes: Axes) -> tuple[Layout, tuple[Any, ...], Any]:
        """Return a tile's layout split by fragments, the thread's index, and a map of positions.

        The map takes a pair's row and column to the offset of its first element in the slice.
        """
        along = dict(zip(tile.whole, axes, strict=True))
        long = {k: axis for k, axis in along.items() if tile.layout.dims[k] != 1}
        split = subdivide(tile.layout, {k: self._split[axis] for k, axis in long.items()})
        entries = [
            self._position[long[k]] if k in long else 0 if i is None else i
            for k, i in enumerate(tile.index)
        ]
        index = split.index(*entries)
        strides, stride = {}, 1
        for k in reversed([k for k, i in enumerate(index) if i is None]):
            strides[k] = stride
            stride *= int(split.layout.dims[k])
        split_dims = {axis: split.new_dims[k] for k, axis in long.items()}

        def at(row: int, column: int) -> int:
            start = 0
            if 0 in split_dims:
                fragment, half = split_dims[0][1], split_dims[0][-2]
                halves = self._split[0][-2]
                start += row // halves * strides[fragment] + row % halves * strides[half]
            if 1 in split_dims:
                start += column * strides[split_dims[1][1]]
            return start

        return split.layout, index, at


def _reshaped(value: Any, sizes: Sequence[int]) -> Any:
    kind = ir.VectorType.get(list(sizes), ir.VectorType(value.type).element_type)
    return value if value.type == kind else vector.ShapeCastOp(kind, value).result
