"""Permutations of dimensions by vectors of up to 16 bytes, both ways.

A block moves a tile of the two dimensions along which input and output are contiguous. Every thread
reads small blocks of it, as many rows as the output's vectors are wide, transposes them in its
registers, and puts the rows that come out into shared memory, whose layout swaps chunks of a row
by XOR, so that neither side meets a bank twice. Then the tile leaves row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.algebra import GenP, Layout, OrderBy, RegP, Row, swizzle
from lego_mlir.frontend import Kernel, TensorType, barrier, block_id, kernel, shared, thread_id
from lego_mlir.kernels.moves import Move, source_view, target_view

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
        high: of these, `down`, an access of the output takes at once.
        wide: of these, `across`, an access of the input takes at once.
        repeats: blocks of high×wide elements that a thread moves.
        by_columns: blocks follow one another along the rows of the output, not of the input.
    """

    down: int
    across: int
    high: int
    wide: int
    repeats: int
    by_columns: bool

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.down * self.across // (self.high * self.wide * self.repeats)

    def staged(self, size: int) -> Layout:
        """The tile in shared memory, across×down, of elements of `size` bytes.

        Threads next to one another write into every `wide`-th row, at the same place of it or, if
        a row has fewer of them than there are banks, at places next to one another.
        """
        chunk = max(self.high, _WORD // size)
        rows = max(1, _LINE // (self.down * size))  # of the tile, in a line
        lanes = _LINE // (chunk * size)
        together = max(1, lanes * self.wide // self.across)
        permutation = swizzle(chunk * together, max(1, self.wide // rows), lanes // together)
        return OrderBy(GenP([self.across // rows, self.down * rows], permutation))


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
    down, across = tiles(y.size, tile.down), tiles(x.size, tile.across)
    steps = tile.wide * tile.repeats
    blocks = grid(lead, down, across, by_columns=tile.by_columns)
    readers = OrderBy(Row(tile.down // (tile.high * tile.repeats), tile.across // tile.wide))
    writers = OrderBy(Row(tile.across // steps, tile.down // tile.high))
    source = source_view([*outer, y, x]).TileBy(
        [*lead, down, across],
        [*ones, tile.repeats, 1],
        [*ones, *readers.dims],
        [*ones, tile.high, tile.wide],
    )
    target = target_view([*outer, x, y]).TileBy(
        [*lead, across, down], [*ones, steps, 1], [*ones, *writers.dims], [*ones, 1, tile.high]
    )
    staged = tile.staged(size)
    rows, columns = readers.dims
    filled = staged.TileBy([1, tile.repeats], [columns, rows], [tile.wide, tile.high])
    drained = staged.TileBy([steps, 1], list(writers.dims), [1, tile.high])

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
    )(permute)


def tiles(size: int, tile: int) -> int:
    """How many tiles cover a dimension."""
    return -(-size // tile)


def grid(lead: Sequence[int], down: int, across: int, *, by_columns: bool) -> Layout:
    """From the number of a block to its tile: along the rows of the output, or of the input."""
    k = len(lead)
    order = [*range(k), k + 1, k] if by_columns else [*range(k + 2)]
    return OrderBy(RegP([*lead, down, across], order))


def copied(
    name: str, move: Move, wide: int, a: TensorType, b: TensorType, reference: str
) -> Kernel:
    """The kernel for a move along which both memories are contiguous.

    Args:
        name: of the kernel.
        move: what it moves.
        wide: elements that an access takes at once.
        a: the input.
        b: the output.
        reference: what it computes, by name.
    """
    threads, repeats = 256, 4
    outer, x = move.others, move.read
    lead, ones, zeros = [m.size for m in outer], [1] * len(outer), (0,) * len(outer)
    across = tiles(x.size, repeats * threads * wide)
    blocks = OrderBy(Row(*lead, across))
    levels = [*lead, across], [*ones, repeats], [*ones, threads], [*ones, wide]
    source = source_view([*outer, x]).TileBy(*levels)
    target = target_view([*outer, x]).TileBy(*levels)

    def copy(a: Any, b: Any) -> None:
        *at, j = blocks.inv(block_id())
        here = (*at, j, *zeros, slice(None), *zeros, thread_id(), *zeros, slice(None))
        b.view(target)[here] = a.view(source)[here]

    copy.__name__ = name
    return kernel(
        grid=prod([*lead, across]),
        block=threads,
        reference=reference,
        parameters={"a": a, "b": b},
    )(copy)
