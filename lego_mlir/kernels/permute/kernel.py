"""Permutations of dimensions by vectors of up to 16 bytes, both ways.

A block moves a tile of the two dimensions along which input and output are contiguous. Every thread
reads small blocks of it, as many rows as the output's vectors are wide, transposes them in its
registers, and puts the rows that come out into shared memory, whose layout swaps chunks of a row
by XOR, so that neither side meets a bank twice. Then the tile leaves row by row.

Where rows of the output begin anywhere in memory, tiles are skewed: those of a row begin where a
vector does, and what they hold of the input is read element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.algebra import GenP, Layout, OrderBy, RegP, Row, Skew, swizzle
from lego_mlir.frontend import Kernel, TensorType, barrier, block_id, kernel, shared, thread_id
from lego_mlir.kernels.permute.problem import Mode, Move, source_view, target_view

_LINE = 128
"""Bytes that all banks of shared memory give at once."""

_WORD = 4
"""Bytes of a bank."""


@dataclass(frozen=True, slots=True)
class Tile:
    """What one block moves, and how.

    Attributes:
        down: elements along the output's contiguous dimension.
        across: elements along the input's contiguous dimension.
        high: of these, `down`, a thread transposes at once in its registers.
        wide: of these, `across`, it does, which an access of the input takes at once.
        tall: elements along `down` that an access of the output takes at once.
        repeats: blocks of high×wide elements that a thread moves.
        span: where rows of the output begin anywhere, each row's tiles begin at the next lower
            multiple of so many elements in memory; else 1.
    """

    down: int
    across: int
    high: int
    wide: int
    tall: int
    repeats: int
    span: int = 1

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.down * self.across // (self.high * self.wide * self.repeats)

    @property
    def steps(self) -> int:
        """Accesses of the output by a thread."""
        return self.high * self.wide * self.repeats // self.tall

    def staged(self, size: int) -> Layout:
        """The tile in shared memory, across×down, of elements of `size` bytes.

        Threads next to one another write into every `wide`-th row, at the same place of it or, if
        a row has fewer of them than there are banks, at places next to one another.
        """
        chunk = max(self.high, self.tall, _WORD // size)
        rows = max(1, _LINE // (self.down * size))  # of the tile, in a line
        lanes = _LINE // (chunk * size)
        together = max(1, lanes * self.wide // self.across)
        permutation = swizzle(chunk * together, max(1, self.wide // rows), lanes // together)
        return OrderBy(GenP([self.across // rows, self.down * rows], permutation))


@dataclass(frozen=True, slots=True)
class Strip:
    """What one block copies where both memories are contiguous along the same dimension.

    Attributes:
        rows: of threads, along the next dimension.
        columns: of threads, along the contiguous dimension.
        wide: elements that a thread moves, at once.
    """

    rows: int
    columns: int
    wide: int


def tiled(
    name: str, move: Move, tile: Tile, size: int, a: TensorType, b: TensorType, reference: str
) -> Kernel:
    """The kernel for a move that is no copy.

    Args:
        name: of the kernel.
        move: what it moves.
        tile: by which tiles.
        size: of an element, in bytes.
        a: the input.
        b: the output.
        reference: what it computes, by name.
    """
    outer, x, y = move.others, move.read, move.written
    lead, ones, zeros = [m.size for m in outer], [1] * len(outer), (0,) * len(outer)
    factors = [m.target % tile.span for m in (*outer, x)]
    room = tile.span - 1 if any(factors) else 0
    down, across = tiles(y.size + room, tile.down), tiles(x.size, tile.across)
    # Blocks follow one another along the rows of the output.
    blocks = OrderBy(RegP([*lead, down, across], [*range(len(lead)), len(lead) + 1, len(lead)]))
    readers = OrderBy(Row(tile.down // (tile.high * tile.repeats), tile.across // tile.wide))
    writers = OrderBy(Row(tile.across // tile.steps, tile.down // tile.tall))
    source = source_view([*outer, y, x]).TileBy(
        [*lead, down, across],
        [*ones, tile.repeats, 1],
        [*ones, *readers.dims],
        [*ones, tile.high, tile.wide],
        skew=_skew(factors, len(outer), tile.span),
    )
    target = target_view([*outer, x, y]).TileBy(
        [*lead, across, down],
        [*ones, tile.steps, 1],
        [*ones, *writers.dims],
        [*ones, 1, tile.tall],
        skew=_skew(factors, len(outer) + 1, tile.span),
    )
    staged = tile.staged(size)
    rows, columns = readers.dims
    filled = staged.TileBy([1, tile.repeats], [columns, rows], [tile.wide, tile.high])
    drained = staged.TileBy([tile.steps, 1], list(writers.dims), [1, tile.tall])

    def permute(a: Any, b: Any) -> None:
        *at, i, j = blocks.inv(block_id())
        row, column = readers.inv(thread_id())
        buffer = shared(filled_dtype, filled)
        read = a.view(source)[*at, i, j, *zeros, :, 0, *zeros, row, column, *zeros, :, :]
        for r in range(tile.repeats):
            buffer[0, r, column, row, :, :] = read[r].T
        barrier()
        row, column = writers.inv(thread_id())
        out = buffer.view(drained)[:, 0, row, column, 0, :]
        b.view(target)[*at, j, i, *zeros, :, 0, *zeros, row, column, *zeros, 0, :] = out

    filled_dtype = a.dtype
    permute.__name__ = name
    return kernel(
        grid=prod([*lead, down, across]),
        block=tile.threads,
        reference=reference,
        parameters={"a": a, "b": b},
        strict=True,
    )(permute)


def _skew(factors: Sequence[int], dim: int, span: int) -> Skew | None:
    """The skew of dimension `dim` by the factors of the others; `None` where they are all 0."""
    return Skew(dim, (*factors[:dim], 0, *factors[dim:]), span) if any(factors) else None


def tiles(size: int, tile: int) -> int:
    """How many tiles cover a dimension."""
    return -(-size // tile)


def copied(
    name: str, move: Move, strip: Strip, a: TensorType, b: TensorType, reference: str
) -> Kernel:
    """The kernel for a move along which both memories are contiguous.

    Args:
        name: of the kernel.
        move: what it moves.
        strip: what a block moves at a time.
        a: the input.
        b: the output.
        reference: what it computes, by name.
    """
    outer, x = move.others or (Mode(1, 0, 0),), move.read
    *lead, rows = (m.size for m in outer)
    ones, zeros = [1] * len(lead), (0,) * len(lead)
    covering = [*lead, tiles(rows, strip.rows), tiles(x.size, strip.columns * strip.wide)]
    blocks = OrderBy(Row(*covering))
    threads = OrderBy(Row(strip.rows, strip.columns))
    levels = covering, [*ones, *threads.dims], [*ones, 1, strip.wide]
    source = source_view([*outer, x]).TileBy(*levels)
    target = target_view([*outer, x]).TileBy(*levels)

    def copy(a: Any, b: Any) -> None:
        tile, thread = blocks.inv(block_id()), threads.inv(thread_id())
        here = (*tile, *zeros, *thread, *zeros, 0, slice(None))
        b.view(target)[here] = a.view(source)[here]

    copy.__name__ = name
    return kernel(
        grid=prod(covering),
        block=strip.rows * strip.columns,
        reference=reference,
        parameters={"a": a, "b": b},
        strict=True,
    )(copy)
