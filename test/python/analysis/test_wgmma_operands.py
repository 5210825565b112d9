"""Matrix descriptors from layouts, against the simulator's reading of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from swizzled_tiles import by_columns, by_rows

from lego_mlir.algebra import Col, GenP, Layout, OrderBy, Row, bricks, swizzle
from lego_mlir.algebra.multibuffer import multibuffered
from lego_mlir.analysis.instructions.wgmma_operands import MatrixDescriptor, matrix_descriptor
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WGMMA_K_BYTES
from lego_mlir.sim.machine import matrix_descriptors


def whole(layout: Layout) -> object:
    return layout[(slice(None),) * len(layout.dims)]


def check(
    shared: Layout, element: int, extent: int, at: tuple[int, int], k: int
) -> MatrixDescriptor:
    """The hardware finds each 16-byte chunk where the layout puts it; the descriptor."""
    found = matrix_descriptor(whole(shared), element, extent, at, k)
    assert matrix_descriptors.problem(found.bits) is None
    chunk, depth = 16 // element, WGMMA_K_BYTES // element
    rows = np.arange(extent) + at[1 - k]
    columns = np.arange(depth) + at[k]
    index = np.meshgrid(rows, columns, indexing="ij")
    addresses = np.asarray(shared.apply(*(index if k == 1 else index[::-1]))) * element
    inside = np.arange(chunk) * element
    if found.major == "k":
        addresses = addresses.reshape(extent, depth // chunk, chunk)
    else:
        addresses = addresses.reshape(extent // chunk, chunk, depth).swapaxes(1, 2)
    np.testing.assert_array_equal(addresses, addresses[..., :1] + inside)
    for base in (0, found.alignment, 5 * found.alignment):
        word = found.bits + (base >> 4)
        offsets = matrix_descriptors.chunks(word, extent, found.major == "mn").astype(np.int64)
        np.testing.assert_array_equal(offsets, addresses[..., 0] + base)
    return found


def test_a_worked_example() -> None:
    found = check(by_rows(128, 64), 2, 64, (64, 16), 1)
    assert found == MatrixDescriptor(64 * 128 + 32, 0, 1024, 128, "k")
    assert found.bits == 1 << 62 | 64 << 32 | (64 * 128 + 32) >> 4
    assert found.alignment == 1024


def test_a_worked_example_contiguous_along_n() -> None:
    """B, row-major: panels of 64 columns, 64 of k deep."""
    found = check(by_rows(64, 256), 2, 256, (16, 0), 0)
    assert found == MatrixDescriptor(16 * 128, 64 * 128, 1024, 128, "mn")


@pytest.mark.parametrize("element", [1, 2, 4])
@pytest.mark.parametrize("mode", [128, 64, 32])
@pytest.mark.parametrize("panels", [1, 2])
def test_contiguous_along_k(element: int, mode: int, panels: int) -> None:
    depth = mode // element * panels
    for start in range(0, depth, WGMMA_K_BYTES // element):
        found = check(by_rows(128, depth, element, mode), element, 64, (64, start), 1)
        assert (found.major, found.swizzle) == ("k", mode)
        assert found == matrix_descriptor(
            whole(by_columns(depth, 128, element, mode)), element, 64, (start, 64), 0
        )


@pytest.mark.parametrize("mode", [128, 64, 32])
@pytest.mark.parametrize("panels", [1, 4])
def test_contiguous_along_m_or_n(mode: int, panels: int) -> None:
    extent = mode // 2 * panels
    for start in range(0, 64, 16):
        found = check(by_columns(extent, 64, 2, mode), 2, extent, (0, start), 1)
        assert (found.major, found.swizzle) == ("mn", mode)
        assert found == matrix_descriptor(
            whole(by_rows(64, extent, 2, mode)), 2, extent, (start, 0), 0
        )


@pytest.mark.parametrize("extent", range(8, 257, 8))
def test_every_extent(extent: int) -> None:
    check(by_rows(256, 64), 2, extent, (0, 48), 1)


def test_core_matrices_without_swizzle() -> None:
    """Bricks of 8 rows by 16 bytes, in either direction."""
    along_k = check(OrderBy(GenP([64, 64], bricks(8, 8))), 2, 64, (0, 32), 1)
    assert along_k == MatrixDescriptor(4 * 128, 128, 1024, 0, "k")
    along_m = check(OrderBy(GenP([64, 64], bricks(8, 8))).OrderBy(Col(64, 64)), 2, 64, (0, 16), 1)
    assert (along_m.swizzle, along_m.major) == (0, "mn")
    assert (along_m.leading, along_m.stride) == (1024, 128)
    check(OrderBy(GenP([64, 64], bricks(8, 16))), 1, 64, (0, 32), 1)


def test_the_stages_of_a_ring_buffer_have_equal_descriptors() -> None:
    stages = multibuffered(by_rows(64, 128), 3)
    size = 64 * 128 * 2
    first, *others = (
        matrix_descriptor(stages[n, :, :], 2, 64, (0, 80), 1)  # type: ignore[misc]
        for n in range(3)
    )
    assert [o.start - first.start for o in others] == [size, 2 * size]
    assert {(o.leading, o.stride, o.swizzle, o.major) for o in others} == {
        (first.leading, first.stride, first.swizzle, first.major)
    }


@st.composite
def _pieces(draw: st.DrawFn) -> tuple[Layout, int, int, tuple[int, int], int]:
    element = draw(st.sampled_from([1, 2]))
    mode = draw(st.sampled_from([32, 64, 128]))
    depth = WGMMA_K_BYTES // element
    along_k = element == 1 or draw(st.booleans())
    k = draw(st.integers(0, 1))
    if along_k:
        columns = mode // element * draw(st.integers(1, 2))
        rows = 8 * draw(st.integers(1, 16))
        extent = 8 * draw(st.integers(1, rows // 8))
        first = 8 * draw(st.integers(0, (rows - extent) // 8))
        start = depth * draw(st.integers(0, columns // depth - 1))
        shared = by_rows if k == 1 else by_columns
    else:
        rows = mode // element * draw(st.integers(1, 3))
        columns = depth * draw(st.integers(1, 4))
        extent, first = rows, 0
        start = depth * draw(st.integers(0, columns // depth - 1))
        shared = by_columns if k == 1 else by_rows
    sizes, at = ((rows, columns), (first, start)) if k == 1 else ((columns, rows), (start, first))
    return shared(*sizes, element, mode), element, extent, at, k


@given(_pieces())
def test_descriptors_of_random_slices(case: tuple[Layout, int, int, tuple[int, int], int]) -> None:
    check(*case)


@pytest.mark.parametrize(
    ("shared", "element", "extent", "at", "k", "message"),
    [
        (by_rows(64, 64), 2, 12, (0, 0), 1, "no slice of 12 by 16"),
        (by_rows(64, 64), 2, 64, (32, 0), 1, "no slice of 64 by 16 at .32, 0."),
        (by_rows(64, 64), 2, 64, (0, 56), 1, "no slice"),
        (by_rows(64, 64, 4, 32), 4, 64, (0, 60), 1, "no slice of 64 by 8"),
        (OrderBy(Row(64, 64)), 2, 64, (0, 0), 1, "16-byte chunks do not lie"),
        (OrderBy(GenP([64, 64], swizzle(8, 2, 8))), 2, 64, (0, 0), 1, "chunks do not lie"),
        (OrderBy(GenP([64, 64], swizzle(4, 1, 8))), 2, 64, (0, 0), 1, "chunks do not lie"),
        (by_columns(64, 64), 2, 32, (0, 0), 1, None),
        (by_columns(128, 64), 2, 96, (0, 0), 1, None),
        (by_columns(128, 64), 2, 64, (32, 0), 1, "chunks do not lie"),
    ],
)
def test_layouts_that_wgmma_cannot_read_are_refused(
    shared: Layout, element: int, extent: int, at: tuple[int, int], k: int, message: str | None
) -> None:
    if message is None:
        check(shared, element, extent, at, k)
        return
    with pytest.raises(LegoError, match=message):
        matrix_descriptor(whole(shared), element, extent, at, k)


@pytest.mark.parametrize("element", [1, 4])
def test_only_16_bit_elements_may_lie_along_m_or_n(element: int) -> None:
    shared = by_columns(128 // element, 64, element)
    with pytest.raises(LegoError, match=f"elements of {element} bytes only along k") as caught:
        matrix_descriptor(whole(shared), element, 128 // element, (0, 0), 1)
    assert caught.value.hint is not None
    assert "k is contiguous" in caught.value.hint
