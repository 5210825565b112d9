from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lego_mlir.analysis import ideal_wavefronts, wavefronts
from lego_mlir.diagnostics import LegoError

LANE = np.arange(32)
PHASE_LANES = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}

widths = st.sampled_from([1, 2, 4, 8, 16])
masks = arrays(np.bool_, (3, 32))


@st.composite
def requests(draw: st.DrawFn) -> tuple[np.ndarray, int, np.ndarray]:
    """Three requests of one width: aligned offsets that collide often, and which lanes ask."""
    width = draw(widths)
    steps = draw(arrays(np.int64, (3, 32), elements=st.integers(0, draw(st.integers(1, 4096)))))
    return steps * width, width, draw(masks)


def wavefronts_of_one(offsets: np.ndarray, width: int, mask: np.ndarray) -> int:
    """The definition, lane by lane and byte by byte."""
    total = 0
    for start in range(0, 32, PHASE_LANES[width]):
        banks: dict[int, set[int]] = {}
        for lane in range(start, start + PHASE_LANES[width]):
            if mask[lane]:
                for byte in range(int(offsets[lane]), int(offsets[lane]) + width):
                    banks.setdefault(byte // 4 % 32, set()).add(byte // 4)
        total += max((len(words) for words in banks.values()), default=0)
    return total


@given(requests())
def test_agrees_with_the_definition(request) -> None:
    offsets, width, mask = request
    expected = [wavefronts_of_one(o, width, m) for o, m in zip(offsets, mask, strict=True)]
    result = wavefronts(offsets, width, mask)
    assert result.executed.tolist() == expected
    assert (result.excess >= 0).all()


@given(requests(), st.permutations(range(32)), st.integers(0, 64))
def test_order_in_a_phase_and_a_shift_of_128_bytes_change_nothing(request, order, shift) -> None:
    offsets, width, mask = request
    lanes = PHASE_LANES[width]
    order = np.array([i for i in order if i < lanes])
    within = (np.arange(0, 32, lanes)[:, None] + order).reshape(-1)
    moved = wavefronts(offsets[:, within] + 128 * shift, width, mask[:, within])
    assert (moved.executed == wavefronts(offsets, width, mask).executed).all()


@given(widths, masks)
def test_neighbouring_lanes_meet_the_ideal(width: int, mask: np.ndarray) -> None:
    result = wavefronts(np.broadcast_to(LANE * width, (3, 32)), width, mask)
    assert (result.excess == 0).all()
    assert (result.ideal == ideal_wavefronts(width, mask)).all()


def test_the_columns_of_a_tile() -> None:
    """32 x 32 f32, lane i reads row i of column j: the three layouts everyone knows."""
    row, column = LANE, np.arange(32)[:, None]
    plain = 4 * (32 * row + column)
    padded = 4 * (33 * row + column)
    swizzled = 4 * (32 * row + (column ^ row))
    assert (wavefronts(plain, 4).executed == 32).all()
    assert (wavefronts(plain, 4).excess == 31).all()
    assert (wavefronts(padded, 4).executed == 1).all()
    assert (wavefronts(swizzled, 4).executed == 1).all()


def test_half_words_compare_words() -> None:
    assert wavefronts(2 * LANE, 2).executed == 1  # a row of f16: two lanes a word
    assert wavefronts(LANE, 1).executed == 1  # a row of i8: four
    assert wavefronts(2 * 32 * LANE, 2).executed == 16  # a column of 32 x 32 f16: 2 banks
    assert wavefronts(2 * 64 * LANE, 2).executed == 32  # a column of 64 x 64 f16: one bank


def test_a_broadcast_is_free() -> None:
    for width in (1, 2, 4):
        assert wavefronts(np.zeros(32, int), width).executed == 1
    assert wavefronts(np.where(LANE < 16, 0, 128), 4).executed == 2  # two words of one bank


def test_atomics_share_no_word() -> None:
    """Each lane takes its word for itself; lanes of different banks go together."""
    for offsets, turns in ((0 * LANE, 32), (4 * LANE, 1), (4 * (LANE // 4), 4), (128 * LANE, 32)):
        result = wavefronts(offsets, 4, combine=False)
        assert (result.executed, result.ideal) == (turns, 1)
    assert wavefronts(0 * LANE, 4, LANE < 3, combine=False).executed == 3
    assert wavefronts(0 * LANE, 8, combine=False).executed == 32


def test_wide_accesses_go_by_phases() -> None:
    assert wavefronts(8 * LANE, 8).executed == 2
    assert wavefronts(16 * LANE, 16).executed == 4
    assert wavefronts(128 * LANE, 16).executed == 32  # 8 rows of 128 bytes: 8 ways, 4 phases
    swizzled = 128 * LANE + 16 * (LANE % 8)
    assert wavefronts(swizzled, 16).executed == 4  # the 128-byte swizzle
    # Two words of one bank collide within a phase only.
    assert wavefronts(np.where(LANE < 16, 128, 0), 8).executed == 2
    assert wavefronts(np.where(LANE == 1, 128, 0), 8).executed == 3


def test_inactive_lanes_cost_nothing() -> None:
    column = 128 * LANE
    assert wavefronts(column, 4, LANE < 5).executed == 5
    nothing = wavefronts(column, 4, np.zeros(32, bool))
    assert (nothing.executed, nothing.ideal) == (0, 0)
    assert wavefronts(np.where(LANE == 7, -1, 0), 4, LANE != 7).executed == 1
    assert wavefronts(16 * LANE, 16, LANE < 8).ideal == 1


def test_ideal_of_a_full_warp() -> None:
    assert [int(ideal_wavefronts(width)) for width in (1, 2, 4, 8, 16)] == [1, 1, 1, 2, 4]


@pytest.mark.parametrize("shape", [(0, 32), (2, 0, 32), (2, 3, 32), (32,)])
def test_leading_axes(shape: tuple[int, ...]) -> None:
    result = wavefronts(np.zeros(shape, np.uint32), 4)
    assert result.executed.shape == result.ideal.shape == result.excess.shape == shape[:-1]


@pytest.mark.parametrize(
    ("offsets", "width", "active", "message"),
    [
        (4 * LANE, 3, None, "no lane accesses 3 bytes at once"),
        (4 * LANE[:16], 4, None, r"shape \(16,\) is no warp-wide request"),
        (3, 4, None, r"shape \(\) is no warp-wide request"),
        (4.0 * LANE, 4, None, "integers, not float64"),
        (4 * LANE + 2, 4, None, "lane 0 accesses 4 bytes at byte offset 2"),
        (4 * LANE - 8, 4, None, "lane 0 accesses 4 bytes at byte offset -8"),
        (np.where(LANE == 9, 4, 0), 8, None, "lane 9 accesses 8 bytes at byte offset 4"),
        (4 * LANE, 4, LANE, "has element type int64"),
        (4 * LANE, 4, LANE[:5] < 3, r"has shape \(5,\), the offsets have \(32,\)"),
    ],
)
def test_bad_input_is_an_error(offsets, width, active, message) -> None:
    with pytest.raises(LegoError, match=message):
        wavefronts(offsets, width, active)


def test_bad_widths_and_masks_of_the_ideal_are_errors() -> None:
    with pytest.raises(LegoError, match="no lane accesses 32 bytes"):
        ideal_wavefronts(32)
    with pytest.raises(LegoError, match=r"shape \(31,\)"):
        ideal_wavefronts(4, np.ones(31, bool))
