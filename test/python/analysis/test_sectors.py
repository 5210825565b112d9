from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lego_mlir.analysis import sectors
from lego_mlir.diagnostics import LegoError

LANE = np.arange(32)


@st.composite
def requests(draw: st.DrawFn) -> tuple[np.ndarray, int, np.ndarray]:
    """Three requests of one width: aligned offsets that collide often, and which lanes ask."""
    width = draw(st.sampled_from([1, 2, 4, 8, 16]))
    steps = draw(arrays(np.int64, (3, 32), elements=st.integers(0, draw(st.integers(1, 4096)))))
    return steps * width, width, draw(arrays(np.bool_, (3, 32)))


@given(requests())
def test_agrees_with_the_definition(request) -> None:
    offsets, width, mask = request
    result = sectors(offsets, width, mask)
    for i in range(3):
        requested = {
            byte
            for lane in range(32)
            if mask[i, lane]
            for byte in range(int(offsets[i, lane]), int(offsets[i, lane]) + width)
        }
        assert result.requested_bytes[i] == len(requested)
        assert result.touched[i] == len({byte // 32 for byte in requested})
        assert result.lines[i] == len({byte // 128 for byte in requested})
        assert result.half_lines[i] == len({byte // 64 for byte in requested})
        assert result.ideal_half_lines[i] == (len(requested) + 63) // 64
        assert result.ideal[i] == (len(requested) + 31) // 32
        assert result.ideal_lines[i] == (len(requested) + 127) // 128
    assert (result.excess >= 0).all()
    assert (result.lines >= result.ideal_lines).all()
    assert (result.efficiency <= 1).all()


@given(requests(), st.permutations(range(32)), st.integers(0, 64))
def test_order_of_lanes_and_a_shift_by_lines_change_nothing(request, order, shift) -> None:
    offsets, width, mask = request
    before = sectors(offsets, width, mask)
    after = sectors(offsets[:, order] + 128 * shift, width, mask[:, order])
    assert (after.touched == before.touched).all()
    assert (after.lines == before.lines).all()


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_a_row_is_coalesced(width: int) -> None:
    result = sectors(LANE * width, width)
    assert result.touched == result.ideal == width
    assert result.lines == result.ideal_lines == max(1, width // 4)
    assert result.efficiency == 1


def test_a_column_is_not() -> None:
    result = sectors(4 * 1024 * LANE, 4)
    assert (result.touched, result.ideal, result.excess) == (32, 4, 28)
    assert (result.lines, result.ideal_lines) == (32, 1)
    assert result.efficiency == 1 / 8


def test_a_misplaced_row_costs_one_more() -> None:
    result = sectors(4 * LANE + 4, 4)
    assert (result.touched, result.ideal, result.lines, result.ideal_lines) == (5, 4, 2, 1)


def test_a_broadcast_is_one_sector() -> None:
    result = sectors(np.full(32, 64), 4)
    assert (result.touched, result.ideal, result.requested_bytes) == (1, 1, 4)


def test_inactive_lanes_cost_nothing() -> None:
    assert sectors(4096 * LANE, 4, LANE < 3).touched == 3
    nothing = sectors(4096 * LANE, 4, np.zeros(32, bool))
    assert (nothing.touched, nothing.ideal, nothing.lines, nothing.efficiency) == (0, 0, 0, 1)


@pytest.mark.parametrize("shape", [(0, 32), (2, 3, 32), (32,)])
def test_leading_axes(shape: tuple[int, ...]) -> None:
    result = sectors(np.zeros(shape, np.int32), 4)
    assert result.touched.shape == result.efficiency.shape == shape[:-1]


def test_the_widest_access_is_that_of_global_memory() -> None:
    result = sectors(32 * LANE, 32)
    assert (result.touched, result.ideal, result.requested_bytes) == (32, 32, 1024)
    assert sectors(64 * (LANE // 2), 32).touched == 16


def test_bad_input_is_an_error() -> None:
    with pytest.raises(LegoError, match="no lane accesses 64 bytes"):
        sectors(64 * LANE, 64)
    with pytest.raises(LegoError, match="lane 3 accesses 16 bytes at byte offset 24"):
        sectors(np.where(LANE == 3, 24, 0), 16)
