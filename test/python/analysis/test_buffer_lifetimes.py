"""Packing: what is needed at once never overlaps, and offsets are aligned."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.analysis.buffer_lifetimes import BufferLifetime, assign_offsets


def test_a_later_buffer_reuses_the_bytes_of_an_earlier_one() -> None:
    a, b, c = (
        BufferLifetime(65536, 128, 0, 4),
        BufferLifetime(65536, 128, 0, 4),
        BufferLifetime(32768, 128, 5, 7),
    )
    assert assign_offsets([a, b, c]) == [0, 65536, 0]


def test_a_small_buffer_fills_an_alignment_gap() -> None:
    assert assign_offsets(
        [
            BufferLifetime(100, 128, 0, 9),
            BufferLifetime(50, 1024, 0, 9),
            BufferLifetime(28, 4, 0, 9),
        ]
    ) == [0, 1024, 100]


def test_no_buffers_need_no_offsets() -> None:
    assert assign_offsets([]) == []


rooms = st.builds(
    lambda size, power, first, length: BufferLifetime(size, 1 << power, first, first + length),
    st.integers(1, 500),
    st.integers(0, 10),
    st.integers(0, 8),
    st.integers(0, 8),
)


@given(st.lists(rooms, max_size=8))
def test_live_buffers_never_overlap(given: list[BufferLifetime]) -> None:
    offsets = assign_offsets(given)
    assert len(offsets) == len(given)
    assert all(offset % room.alignment == 0 for offset, room in zip(offsets, given, strict=True))
    for moment in range(17):
        needed = [
            (offset, offset + room.size)
            for offset, room in zip(offsets, given, strict=True)
            if room.first_use <= moment <= room.last_use
        ]
        needed.sort()
        assert all(end <= start for (_, end), (start, _) in pairwise(needed))
