"""Fragments of mma.m16n8 as layouts: against the linear layouts, the PTX ISA's tables, ldmatrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.analysis import linear
from lego_mlir.analysis.instructions.mma_fragments import (
    Fragment,
    accumulator,
    operand_a,
    operand_b,
)
from lego_mlir.diagnostics import LegoError


def coordinates(fragment: Fragment) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of every (lane, element)."""
    flat = fragment.layout.apply(*np.indices((32, fragment.elements)))
    return np.divmod(flat, fragment.shape[1])


@pytest.mark.parametrize(
    ("fragment", "known"),
    [
        (accumulator(), linear.mma_accumulator()),
        *((operand_a(bits), linear.mma_lhs(bits)) for bits in (8, 16, 32)),
        *((operand_b(bits), linear.mma_rhs(bits)) for bits in (8, 16, 32)),
    ],
)
def test_the_catalogue_of_linear_layouts_has_the_same(
    fragment: Fragment, known: linear.LinearLayout
) -> None:
    lane, element = np.indices((32, fragment.elements))
    expected = known.apply(lane=lane, register=element)
    rows, columns = coordinates(fragment)
    np.testing.assert_array_equal(rows, expected["dim0"])
    np.testing.assert_array_equal(columns, expected["dim1"])


# PTX ISA, "Matrix fragments for mma.m16n8k16 with floating point type" and "mma.m16n8k32":
# row and column of element a_i, b_i, c_i in lane 4*group + thread.
@pytest.mark.parametrize(
    ("fragment", "row", "column"),
    [
        (
            operand_a(16),
            lambda g, t, i: g + 8 * (i in (2, 3, 6, 7)),
            lambda g, t, i: 2 * t + i % 2 + 8 * (i >= 4),
        ),
        (operand_b(16), lambda g, t, i: 2 * t + i % 2 + 8 * (i >= 2), lambda g, t, i: g),
        (
            operand_a(8),
            lambda g, t, i: g + 8 * (4 <= i < 8 or i >= 12),
            lambda g, t, i: 4 * t + i % 4 + 16 * (i >= 8),
        ),
        (operand_b(8), lambda g, t, i: 4 * t + i % 4 + 16 * (i >= 4), lambda g, t, i: g),
        (accumulator(), lambda g, t, i: g + 8 * (i >= 2), lambda g, t, i: 2 * t + i % 2),
    ],
)
def test_fragments_match_the_tables_of_the_ptx_isa(
    fragment: Fragment, row: Callable[..., int], column: Callable[..., int]
) -> None:
    rows, columns = coordinates(fragment)
    for lane in range(32):
        group, thread = divmod(lane, 4)
        for i in range(fragment.elements):
            assert (rows[lane, i], columns[lane, i]) == (
                row(group, thread, i),
                column(group, thread, i),
            )


@pytest.mark.parametrize(("tiles", "steps"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("bits", [8, 16])
def test_neighbouring_operands_b_are_each_a_fragment(bits: int, tiles: int, steps: int) -> None:
    wide, one = operand_b(bits, tiles, steps), operand_b(bits)
    rows, columns = coordinates(wide)
    expected_rows, expected_columns = coordinates(one)
    for k in range(tiles * steps):
        tile, step = divmod(k, steps)
        part = slice(k * one.elements, (k + 1) * one.elements)
        np.testing.assert_array_equal(rows[:, part], expected_rows + step * one.shape[0])
        np.testing.assert_array_equal(columns[:, part], expected_columns + tile * 8)


def read_matrices(rows: np.ndarray, bits: int, transposed: bool) -> np.ndarray:
    """What ldmatrix gives (lane, register) from the elements of the rows of each 8×8 matrix.

    PTX ISA, "ldmatrix": thread 4*r + c gets the 32 bits at byte 4*c of row r; transposed, the
    16-bit elements 2*c and 2*c + 1 of column r.
    """
    packed = 32 // bits
    matrices = rows.reshape(-1, 8, rows.shape[-1])
    found = np.zeros((32, len(matrices), packed), np.int64)
    for lane in range(32):
        group, thread = divmod(lane, 4)
        for number, matrix in enumerate(matrices):
            part = slice(packed * thread, packed * (thread + 1))
            found[lane, number] = matrix[part, group] if transposed else matrix[group, part]
    return found.reshape(32, -1)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "fragment",
    [
        operand_a(16),
        operand_b(16),
        operand_b(16, 2),
        operand_b(16, 1, 2),
        accumulator(),
        accumulator(2),
    ],
    ids=lambda f: str(f.shape),
)
def test_ldmatrix_of_the_rows_gives_the_fragment(fragment: Fragment, transposed: bool) -> None:
    rows = fragment.matrix_rows(transposed=transposed)
    read = read_matrices(rows.apply(*np.indices(rows.dims)), 16, transposed)
    expected = fragment.layout.apply(*np.indices((32, fragment.elements)))
    np.testing.assert_array_equal(read, expected)


@pytest.mark.parametrize("bits", [8, 32])
def test_ldmatrix_of_other_elements(bits: int) -> None:
    for fragment in (operand_a(bits), operand_b(bits), operand_b(bits, 2)):
        rows = fragment.matrix_rows(transposed=False)
        assert rows.dims[1] * bits == 128
        read = read_matrices(rows.apply(*np.indices(rows.dims)), bits, False)
        expected = fragment.layout.apply(*np.indices((32, fragment.elements)))
        np.testing.assert_array_equal(read, expected)
        with pytest.raises(LegoError, match=f"16 bits, not {bits}"):
            fragment.matrix_rows(transposed=True)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_row_of_ldmatrix_is_one_piece_of_the_matrix(transposed: bool) -> None:
    for fragment in (operand_a(16), operand_b(16), operand_b(16, 2)):
        rows = fragment.matrix_rows(transposed=transposed)
        flat = rows.apply(*np.indices(rows.dims))
        row, column = OrderBy(Row(*fragment.shape)).inv(flat)
        along, across = (
            (row, column) if transposed == (fragment.rows[0] != "half") else (column, row)
        )
        np.testing.assert_array_equal(np.diff(along, axis=1), 1)
        np.testing.assert_array_equal(np.diff(across, axis=1), 0)


def test_fragments_are_bijections() -> None:
    for fragment in (
        accumulator(),
        operand_a(8),
        operand_a(16),
        operand_b(16, 2),
        operand_b(8, 1, 2),
    ):
        assert fragment.layout.verify()


def test_there_are_no_elements_of_64_bits() -> None:
    with pytest.raises(LegoError, match="not 64"):
        operand_a(64)
