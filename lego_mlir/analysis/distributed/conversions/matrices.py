"""Conversions' accesses of shared memory by `ldmatrix` and `stmatrix`.

An instruction moves up to four matrices of 8 rows of 16 bytes. Lane 8 m + r gives the address of
row r of matrix m. Of each matrix a lane holds one word of 32 bits:

    plain         lane 4 r + c holds word c of row r: the elements of a row are the word's own, and
                  those of lane bits 0 and 1; rows are lane bits 2 to 4
    transposed    lane 4 c + q holds column c of the rows 2 q and 2 q + 1, columns of 16 bits: the
                  elements of a row are those of 16 bits, and lane bits 2 to 4; rows are the word's
                  highest bit and lane bits 0 and 1

So a layout fits if it has elements in these bits, and the addresses are those of another layout:
one in which the lanes are (matrix, row) and each lane holds the 16 bytes of its row.

Source: PTX ISA, "ldmatrix" and "stmatrix" (figure of the fragment layout for 8x8 matrices).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from lego_mlir.analysis.distributed.conversions.atoms import Atom, Digit
from lego_mlir.analysis.distributed.factors import REPLICA, Factor, Place, replicas
from lego_mlir.analysis.distributed.layout import DistributedLayout

ROW_BYTES = 16
_WORD_BYTES = 4
_COLUMN_BYTES = 2
_MOST_MATRICES = 4
_LANE_BITS = 5


class MatrixInstructions(NamedTuple):
    """Which of the instructions a GPU has: `ldmatrix` from sm_75 on, `stmatrix` from sm_90 on."""

    load: bool = False
    store: bool = False


class _Bit(NamedTuple):
    """A digit of a register's or lane's number, and what it counts.

    Attributes:
        digit: its place, weight and size.
        factor: its dimension, size and stride.
    """

    digit: Digit
    factor: Factor

    @property
    def is_element(self) -> bool:
        """Whether it is a bit that tells elements apart."""
        return self.factor.size == 2 and self.factor.dim != REPLICA


@dataclass(frozen=True)
class Matrices:
    """The accesses of one side by matrices.

    Attributes:
        is_transposed: whether the instruction transposes.
        rows: which 16 bytes each lane gives the address of: a layout of the same tile, in whose
            registers the elements of a row follow one another.
        row: the digits of the layout that count the elements of a row, fastest first.
        phase: the digits that count rows: eight of them are accessed at a time.
        registers: for each instruction the layout's registers of its words, matrix by matrix.
        starts: for each instruction the register of `rows` that begins its rows.
    """

    is_transposed: bool
    rows: DistributedLayout
    row: tuple[Digit, ...]
    phase: frozenset[Digit]
    registers: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...]

    def reads_rows_of(self, low: list[Atom], side: int) -> bool:
        """Return whether a row's elements are the fastest ones of a memory.

        Args:
            low: the memory's fastest atoms.
            side: 0 if the layout is the source's, 1 if it is the target's.
        """
        digits = [(atom.source, atom.target)[side] for atom in low]
        return digits[: len(self.row)] == list(self.row)


def plan_matrices(
    layout: DistributedLayout, element_bytes: int, *, is_transposed: bool, is_store: bool
) -> Matrices | None:
    """Return how an instruction accesses all elements of a layout, or None if it cannot.

    Args:
        layout: of the tile in registers.
        element_bytes: 1, 2 or 4; for a transposition 1 or 2.
        is_transposed: whether the instruction transposes.
        is_store: whether elements are stored; then only one copy of each may be.
    """
    if element_bytes > (_COLUMN_BYTES if is_transposed else _WORD_BYTES):
        return None
    if is_store and layout.replicas > 1:
        return None
    if any(f.dim == REPLICA for f in layout.places[Place.REGISTER]):
        return None  # an instruction would move each copy
    lanes = _bits(layout, Place.LANE)
    held = _bits(layout, Place.REGISTER)
    word_bits = (_WORD_BYTES // element_bytes).bit_length() - 1
    word, others = held[:word_bits], held[word_bits:]
    row, rows = (
        ([*word[:-1], *lanes[2:]], [*word[-1:], *lanes[:2]])
        if is_transposed
        else ([*word, *lanes[:2]], lanes[2:])
    )
    if len(word) < word_bits or not all(b.is_element for b in (*word, *row)):
        return None
    matrix = [b for b in others if b.is_element][: _MOST_MATRICES.bit_length() - 1]
    rest = [b for b in others if b not in matrix]
    spare = _MOST_MATRICES >> len(matrix)
    found = DistributedLayout.of(
        layout.shape,
        ctas=layout.places[Place.CTA],
        warps=layout.places[Place.WARP],
        lanes=[replicas(spare), *(b.factor for b in reversed([*rows, *matrix]))],
        registers=[b.factor for b in reversed([*row, *rest])],
    )
    per_word, per_row = 1 << word_bits, ROW_BYTES // element_bytes
    count = prod(b.factor.size for b in rest)
    starts = tuple(per_row * k for k in range(count))
    registers = []
    for k in range(count):
        base = _number(rest, k)
        words = [base + _number(matrix, m) for m in range(1 << len(matrix))]
        registers.append(tuple(w + x for w in words for x in range(per_word)))
    return Matrices(
        is_transposed,
        found,
        tuple(b.digit for b in row),
        frozenset(b.digit for b in rows),
        tuple(registers),
        starts,
    )


def _bits(layout: DistributedLayout, place: Place) -> list[_Bit]:
    """Return the digits of a place, fastest first: bits, and odd ones above them."""
    found, weight = [], 1
    for f in reversed(layout.places[place]):
        left, stride = f.size, f.stride
        while left > 1:
            size = 2 if left % 2 == 0 else left
            found.append(_Bit(Digit(place, weight, size), Factor(f.dim, size, stride)))
            left, stride, weight = left // size, stride * size, weight * size
    return found


def _number(bits: list[_Bit], value: int) -> int:
    """Return the register of which these digits, fastest first, make up a number."""
    register = 0
    for bit in bits:
        value, digit = divmod(value, bit.factor.size)
        register += digit * bit.digit.weight
    return register
