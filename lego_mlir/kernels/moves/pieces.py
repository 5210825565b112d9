"""What a movement moves: rows of outputs are pieces of rows of inputs, one behind another.

A concatenated row has a piece of each tensor; a padded one has padding, a row, and padding; a
rolled one has the end of a row, and then its beginning. Dimensions outside of the rows are axes:
they say which row of the input the pieces are from. All numbers here are in elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from math import gcd, prod

from lego_mlir.kernels.moves.axes import Axis

_TOGETHER = 1 << 21
"""Bytes of the rows that CTAs go over before the next ones: these stay in the L2 cache."""

_FEW = 4
"""Words per piece from which on those where pieces meet are made by CTAs of their own."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Elements of a row of an output that are neighbours in an input.

    Attributes:
        length: elements.
        source: the number of the input; `None` if the elements are 0.
        begin: the first element, in the input's row.
        step: from one to the next: 1, or -1 in reverse, or 0 if all are the first one.
    """

    length: int
    source: int | None = 0
    begin: int = 0
    step: int = 1


@dataclass(frozen=True, slots=True)
class Source:
    """An input: its elements, and those of a row."""

    total: int
    pitch: int


@dataclass(frozen=True, slots=True)
class Output:
    """A tensor that is written: the pieces of each row."""

    pieces: tuple[Piece, ...]

    @property
    def length(self) -> int:
        """Elements of a row."""
        return sum(piece.length for piece in self.pieces)

    @property
    def starts(self) -> list[int]:
        """Where the pieces begin in a row."""
        return list(accumulate((piece.length for piece in self.pieces), initial=0))[:-1]


@dataclass(frozen=True, slots=True)
class Movement:
    """A movement by words.

    Attributes:
        outputs: what is written: one tensor, or several whose rows are one piece each.
        sources: what is read.
        outer: the dimensions outside of rows, the same in all outputs.
        word: elements of a word.
        element: bytes of an element.
    """

    outputs: tuple[Output, ...]
    sources: tuple[Source, ...]
    outer: tuple[Axis, ...]
    word: int
    element: int

    @property
    def rows(self) -> int:
        """Rows of each output."""
        return prod(axis.written or 1 for axis in self.outer)

    @property
    def pieces(self) -> list[Piece]:
        """The pieces of all outputs; a piece's number is that in this list."""
        return [piece for out in self.outputs for piece in out.pieces]

    @property
    def firsts(self) -> list[int]:
        """The number of each output's first piece."""
        return list(accumulate((len(out.pieces) for out in self.outputs), initial=0))[:-1]

    @property
    def meetings(self) -> int:
        """The pieces of a row of an output, behind each of which another one begins."""
        return len(self.pieces) // len(self.outputs)

    @property
    def words(self) -> list[int]:
        """The words of each output, of which the last one may be cut."""
        return [-(-self.rows * out.length // self.word) for out in self.outputs]

    @property
    def rows_together(self) -> int:
        """The rows of all outputs that CTAs go over before the next ones: as many are words."""
        row = sum(out.length for out in self.outputs) * self.element
        return min(self.rows, max(1, _TOGETHER // (row * self.word)) * self.word)

    @property
    def groups(self) -> int:
        """How many times CTAs go over such rows."""
        return -(-self.rows // self.rows_together)

    @property
    def together(self) -> list[int]:
        """The words of each output in these rows."""
        return [-(-self.rows_together * out.length // self.word) for out in self.outputs]

    @property
    def is_fine(self) -> bool:
        """Whether so many words have several pieces that all are made alike."""
        begins = self.rows * len(self.pieces)
        return not self.has_whole_words and begins * _FEW > sum(self.words)

    @property
    def has_whole_words(self) -> bool:
        """Whether every word of the outputs lies in one piece."""
        return gcd(self._row_grain, *(n for out in self.outputs for n in out.starts)) == self.word

    @property
    def grain(self) -> int:
        """What divides where words of the outputs begin in words of the inputs."""
        found = self._row_grain
        has_rows = prod(axis.read or 1 for axis in self.outer) > 1
        for out in self.outputs:
            for piece, start in zip(out.pieces, out.starts, strict=True):
                if piece.source is not None:
                    pitch = self.sources[piece.source].pitch if has_rows else 0
                    back = self.word - 1 if piece.step < 0 else 0
                    found = gcd(found, pitch, piece.begin - piece.step * start - back)
        return found

    @property
    def _row_grain(self) -> int:
        """What divides where rows of the outputs begin, at most a word."""
        return gcd(self.word, *(out.length for out in self.outputs if self.rows > 1))


def pieces_of(axis: Axis) -> tuple[Piece, ...]:
    """Return the pieces of rows that are moved along one axis, whose sizes are known."""
    read, written = axis.read, axis.written
    assert read is not None
    assert written is not None
    if axis.step < 0:
        return (Piece(written, begin=axis.offset, step=-1),)
    low, first = max(0, -axis.offset), max(0, axis.offset)
    middle = Piece(min(written - low, read - first), begin=first)
    high = written - low - middle.length
    match axis.boundary:
        case "clamp":
            around = Piece(low, step=0), Piece(high, begin=read - 1, step=0)
        case "wrap":
            around = Piece(low, begin=read - low), Piece(high)
        case _:
            around = Piece(low, None), Piece(high, None)
    return tuple(piece for piece in (around[0], middle, around[1]) if piece.length)
