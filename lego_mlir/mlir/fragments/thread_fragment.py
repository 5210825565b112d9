"""A thread's share of a tile: the elements that its lane has of its warp's accumulator fragments.

A row of the tile is split into warp, fragment, half and group of lanes; a column into warp,
fragment, thread of the group and element. Warp, group and thread are the thread's own place; what
is left is its share: for each fragment and half, that is each of its rows, and each fragment along
the columns, a pair of neighbours.

    vector<128x128xf32>, 2 by 2 warps     ->     8 rows by 8 columns of vector<2xf32>

What lies in memory is read and written through its own layout, its dimensions split like this.
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
from lego_mlir.mlir.bindings import arith, ir, vector
from lego_mlir.mlir.fragments.matrix_access import MatrixAccess
from lego_mlir.mlir.fragments.warps import Thread
from lego_mlir.mlir.lowering.access_checks import OTHER
from lego_mlir.mlir.tiles import accesses
from lego_mlir.mlir.tiles.accesses import Tile

Pair: TypeAlias = Any
"""Two neighbours: a vector of two, or a pair of values."""

PairsByPosition: TypeAlias = Mapping[tuple[int, int], Pair]
"""The parts of a share, by row and column of it."""

PAIR = 2

Axes: TypeAlias = tuple[int, ...]
"""For each dimension of a vector which axis of the tile it runs along: 0 rows, 1 columns."""


@dataclass(frozen=True, slots=True)
class FragmentValue:
    """What a thread holds of one value.

    Attributes:
        pairs: by row and column; along an axis on which the value does not depend only at 0.
        varies: on which axes it depends.
    """

    pairs: PairsByPosition
    varies: tuple[bool, bool]

    def at(self, row: int, column: int) -> Pair:
        """The part at a row and column of the share."""
        return self.pairs[row * self.varies[0], column * self.varies[1]]

    def values(self, positions: Iterable[tuple[int, int]]) -> Iterator[tuple[Any, Any]]:
        """The parts at some places as pairs of values, one of several places taken apart once."""
        found: dict[tuple[int, int], tuple[Any, Any]] = {}
        for row, column in positions:
            key = row * self.varies[0], column * self.varies[1]
            if key not in found:
                found[key] = as_values(self.pairs[key])
            yield found[key]


class RestartedPairs(Mapping[tuple[int, int], Pair]):
    """Parts that begin anew where a condition holds, each chosen where it is asked for.

    Attributes:
        condition: an i1.
        start: what they begin with.
        before: what they are otherwise.
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
    """Whether nothing is known of a value."""
    if any(fragment.varies):
        return False
    pair = fragment.at(0, 0)
    return not isinstance(pair, tuple) and bool(pair.owner.name == "ub.poison")


def as_vector(pair: Pair) -> Any:
    """A part as a vector of two."""
    if not isinstance(pair, tuple):
        return pair
    kind = ir.VectorType.get([PAIR], pair[0].type)
    made = ir.Operation.create("vector.from_elements", results=[kind], operands=list(pair))
    return made.results[0]


def as_values(pair: Pair) -> tuple[Any, Any]:
    """A part as a pair of values."""
    if isinstance(pair, tuple):
        return pair
    first, second = (_extracted(pair, k) for k in range(PAIR))
    return first, second


def _extracted(pair: Any, k: int) -> Any:
    # Without the bindings' class: of these there are two for each of many parts.
    return ir.Operation.create(
        "vector.extract",
        results=[ir.VectorType(pair.type).element_type],
        operands=[pair],
        attributes={"static_position": ir.DenseI64ArrayAttr.get([k])},
    ).results[0]


class ThreadFragment:
    """A thread's share of tiles of one shape.

    Args:
        thread: whose.
        shape: rows and columns of the tile.
        warps: from a warp's place along both to its number.
        has_stmatrix: whether the target has that instruction.

    Attributes:
        counts: rows and columns of the share.
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
        """The rows and columns of the parts of a value."""
        rows, columns = (n if v else 1 for n, v in zip(self.counts, varies, strict=True))
        return ((row, column) for row in range(rows) for column in range(columns))

    def varies(self, shape: Sequence[int], axes: Axes) -> tuple[bool, bool]:
        """On which axes a vector of a shape depends."""
        long = {axis for n, axis in zip(shape, axes, strict=True) if n != 1}
        return 0 in long, 1 in long

    def load(self, tile: Tile, axes: Axes) -> FragmentValue:
        """Read the thread's share of a tile or of a row or column of one."""
        layout, index, at = self._subdivided(tile, axes)
        value = accesses.load(layout, tile.buffer, index)
        if OTHER in tile.op.attributes:
            value.owner.attributes[OTHER] = tile.op.attributes[OTHER]
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
        """Write the thread's share of a tile."""
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
        accesses.store(_reshaped(row, sizes), layout, tile.buffer, index)

    def writers(
        self, tile: Tile, distances: Sequence[int]
    ) -> list[Callable[[FragmentValue], None]] | None:
        """Makes the thread's stores by stmatrix, to addresses that are made here.

        Args:
            tile: in shared memory.
            distances: elements by which the tiles that are written are behind it.

        Returns:
            For each of them what makes the stores; `None` where stmatrix cannot write the tile.
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
        """A tile's layout split, the thread's index of it, and where a part is in the value.

        The last takes the row and column of a part to the number of its first element among those
        of the slice.
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
        places = {axis: split.places[k] for k, axis in long.items()}

        def at(row: int, column: int) -> int:
            start = 0
            if 0 in places:
                fragment, half = places[0][1], places[0][-2]
                halves = self._split[0][-2]
                start += row // halves * strides[fragment] + row % halves * strides[half]
            if 1 in places:
                start += column * strides[places[1][1]]
            return start

        return split.layout, index, at


def _reshaped(value: Any, sizes: Sequence[int]) -> Any:
    kind = ir.VectorType.get(list(sizes), ir.VectorType(value.type).element_type)
    return value if value.type == kind else vector.ShapeCastOp(kind, value).result
