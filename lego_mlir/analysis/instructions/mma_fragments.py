"""The fragments of tensor-core instructions `mma.m16n8`, and how `ldmatrix` fills them, as layouts.

The lanes of a warp hold an operand together. Of operand A of m16n8k16, 16×16 of f16, lane
`4*group + thread` holds the elements

    row = 8*half_row + group        column = 8*half + 2*thread + element

with one 32-bit register for each (half, half_row), of two elements. Group, thread, half, half_row
and element are the dimensions of one array, and so the fragment is a layout: a reordering of them,

    OrderBy(RegP([8, 4, 2, 2, 2], [3, 0, 2, 1, 4])).GroupBy([32, 8])

from (lane, element of the lane) to the row-major position in the tile.

`ldmatrix` fills a register of all lanes from an 8×8 matrix, whose rows are 16 bytes each in shared
memory; lane `8*matrix + row` says where a row begins. The rows of what a fragment's registers hold
are the same array once more, seen as (matrix, group, thread and element); and with `.trans`, where
memory has the columns in one piece, as (matrix, thread and element, group). So both
are the fragment's own dimensions in another order.

Source: PTX ISA, "Matrix fragments for mma.m16n8k8", "k16", "k32"; "ldmatrix".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from lego_mlir.algebra import Layout, OrderBy, RegP
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import MMA_COLUMNS, MMA_ROWS

GROUP, THREAD, ELEMENT = "group", "thread", "element"
"""Dimensions: a lane's group, its number in the group, an element's number in its register."""

HALF_ROW = "half_row"
"""Dimension: the upper or the lower eight of sixteen rows."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """The distribution of a matrix over the lanes of a warp.

    Attributes:
        shape: shape of the matrix.
        sizes: sizes of group, thread, each dimension of registers, and element, in this order.
        rows: dimensions that make up the row, slowest first.
        columns: dimensions that make up the column.
    """

    shape: tuple[int, int]
    sizes: Mapping[str, int]
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def __hash__(self) -> int:
        return hash((self.shape, *self.sizes.items(), self.rows, self.columns))

    @property
    def registers(self) -> tuple[str, ...]:
        """The dimensions of the registers, slowest first."""
        return tuple(name for name in self.sizes if name not in (GROUP, THREAD, ELEMENT))

    @property
    def register_count(self) -> int:
        """Registers of a lane; each is one 8×8 matrix of the warp."""
        return prod(self.sizes[name] for name in self.registers)

    @property
    def elements(self) -> int:
        """Elements of a lane."""
        return self.register_count * self.sizes[ELEMENT]

    @property
    def layout(self) -> Layout:
        """The layout from (lane, element of the lane) to the row-major position in the matrix."""
        return self._viewed_as((GROUP, THREAD), (*self.registers, ELEMENT))

    def matrix_rows(self, *, transposed: bool) -> Layout:
        """Return the layout of the rows that ldmatrix reads: (lane, element of row) to position.

        Lane `8*m + r` has the address of row r of the matrix in register m.

        Args:
            transposed: for `ldmatrix.trans`, where rows in memory are columns of the fragment.

        Raises:
            LegoError: `transposed`, and elements do not have 16 bits.
        """
        if not transposed:
            return self._viewed_as((*self.registers, GROUP), (THREAD, ELEMENT))
        if self.sizes[ELEMENT] != 2:
            bits = 32 // self.sizes[ELEMENT]
            raise LegoError(f"ldmatrix.trans takes elements of 16 bits, not {bits}")
        return self._viewed_as((*self.registers, THREAD, ELEMENT), (GROUP,))

    def _viewed_as(self, *dimensions: tuple[str, ...]) -> Layout:
        """Return the layout from an index of these dimensions to the row-major position."""
        names = [name for group in dimensions for name in group]
        order = [names.index(name) for name in (*self.rows, *self.columns)]
        view = [prod(self.sizes[name] for name in group) for group in dimensions]
        return OrderBy(RegP([self.sizes[name] for name in names], order)).GroupBy(view)


def accumulator(tiles: int = 1) -> Fragment:
    """Return the accumulator fragment of `mma.m16n8`, 16×8, for every K and every 32-bit type.

    A 32-bit element has a register of its own. Rounded to 16 bits, two neighbours share one, as
    `stmatrix` takes them.

    Args:
        tiles: neighbours along the columns; `stmatrix` writes up to two.
    """
    sizes = {GROUP: 8, THREAD: 4, "tile": tiles, HALF_ROW: 2, ELEMENT: 2}
    columns = ("tile", THREAD, ELEMENT)
    return Fragment((MMA_ROWS, MMA_COLUMNS * tiles), sizes, (HALF_ROW, GROUP), columns)


def operand_a(bits: int) -> Fragment:
    """Return the fragment of operand A of `mma.m16n8`, 16×K with K = 256 / bits.

    Args:
        bits: of an element: 8, 16 or 32 (tf32).

    Raises:
        LegoError: there is no such element.
    """
    packed = _packed(bits)
    sizes = {GROUP: 8, THREAD: 4, "half": 2, HALF_ROW: 2, ELEMENT: packed}
    columns = ("half", THREAD, ELEMENT)
    return Fragment((MMA_ROWS, 8 * packed), sizes, (HALF_ROW, GROUP), columns)


def operand_b(bits: int, tiles: int = 1, steps: int = 1) -> Fragment:
    """Return the fragment of `steps`·K × `tiles`·8 of operand B of `mma.m16n8`, K = 256 / bits.

    One instruction takes one tile of one step, which is two matrices; `ldmatrix` reads up to four.

    Args:
        bits: of an element: 8, 16 or 32 (tf32).
        tiles: neighbours along the columns.
        steps: neighbours along the rows.

    Raises:
        LegoError: there is no such element.
    """
    packed = _packed(bits)
    sizes = {GROUP: 8, THREAD: 4, "tile": tiles, "half": 2 * steps, ELEMENT: packed}
    shape = (8 * packed * steps, MMA_COLUMNS * tiles)
    return Fragment(shape, sizes, ("half", THREAD, ELEMENT), ("tile", GROUP))


def _packed(bits: int) -> int:
    """Return how many elements a 32-bit register of an operand holds."""
    if bits not in (8, 16, 32):
        raise LegoError(f"mma.m16n8 takes elements of 8, 16 or 32 bits, not {bits}")
    return 32 // bits
