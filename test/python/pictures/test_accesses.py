"""Accesses in pictures: lanes, bank conflicts and sectors agree with counting them one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir import Col, OrderBy, Row, parse_layout
from lego_mlir.analysis.memory_costs.bank_conflicts import conflict_degrees, wavefronts
from lego_mlir.diagnostics import LegoError
from lego_mlir.pictures.accesses import access_of


def enumerated(offsets: list[int], width: int) -> list[int]:
    """Return the words that the busiest bank of each lane serves, phase by phase."""
    lanes = min(32, 128 // width)
    words = [{(o + b) // 4 for b in range(width)} for o in offsets]
    degrees = []
    for lane in range(32):
        first = lane // lanes * lanes
        phase = set().union(*words[first : first + lanes])
        load = Counter(word % 32 for word in phase)
        degrees.append(max(load[word % 32] for word in words[lane]))
    return degrees


@given(st.sampled_from([1, 2, 4, 8, 16]), st.lists(st.integers(0, 255), min_size=32, max_size=32))
def test_conflict_degrees_are_those_of_counting(width: int, places: list[int]) -> None:
    offsets = np.array(places) * width
    degrees = conflict_degrees(offsets, width)
    assert degrees.tolist() == enumerated(offsets.tolist(), width)
    lanes = min(32, 128 // width)
    executed = degrees.reshape(-1, lanes).max(axis=-1).sum()
    assert executed == wavefronts(offsets, width).executed


def test_an_inactive_lane_has_no_conflict() -> None:
    active = np.arange(32) < 2
    degrees = conflict_degrees(np.arange(32) * 128, 4, active)
    assert degrees.tolist() == [2, 2] + [0] * 30


@pytest.mark.parametrize(
    ("layout", "how", "caption"),
    [
        ("OrderBy(Row(32, 32))", ":, 3", "32 wavefronts, 1 without"),
        ("OrderBy(Row(32, 32))", "[3, :]", "1 wavefront, no bank conflicts"),
        ("OrderBy(GenP([32, 32], swizzle))", ":, 3", "1 wavefront, no bank conflicts"),
        ("OrderBy(Row(64, 32))", ":, -1", "2 requests of a warp"),
        ("OrderBy(Row(32, 32))", "::2, 0", "16 wavefronts, 1 without"),
    ],
)
def test_the_caption_counts_wavefronts(layout: str, how: str, caption: str) -> None:
    (grid,) = parse_layout(layout).draw(access=how, rows=8, columns=8).grids
    assert any(caption in text for text in grid.captions), grid.captions


@pytest.mark.parametrize(("block", "count"), [(Row, "4 sectors, the least"), (Col, "32 sectors")])
def test_the_caption_counts_sectors(block: type, count: str) -> None:
    (grid,) = OrderBy(block(32, 32)).draw(by="sector", access="0, :").grids
    assert any(count in text for text in grid.captions), grid.captions


def test_accessed_cells_have_their_lane_and_their_conflict() -> None:
    (grid,) = OrderBy(Row(32, 32)).draw(access=":, 1").grids
    for i, row in enumerate(grid.cells):
        for j, cell in enumerate(row):
            assert cell is not None
            assert cell.is_marked == cell.is_conflict == (j == 1)
            assert cell.is_faint == (j != 1)
            assert cell.text == (f"L{i} ×32" if j == 1 else str(32 * i + j))


def test_a_distributed_layout_accesses_register_by_register() -> None:
    accumulator = parse_layout(
        "OrderBy(Row(32, 4)).OrderBy(RegP([2, 8, 4, 2], [1, 2, 0, 3])).GroupBy([16, 8])"
    )
    memory = OrderBy(Row(16, 8))
    access = access_of(memory, accumulator, 4, 2)
    assert access.offsets.shape == (2, 32)
    for lane in range(32):
        for half in range(2):
            assert access.offsets[half, lane] == 8 * (8 * half + lane // 4) + 2 * (lane % 4)


@pytest.mark.parametrize(
    ("how", "vector", "says"),
    [
        (":", 1, "has 1 coordinates"),
        (": , 9", 1, "not below 8"),
        ("a, 0", 1, "'a' in the access"),
        (", 0", 1, "'' in the access"),
        ("::0, 0", 1, "step"),
        ("5:2, 0", 1, "no elements"),
        (":, 0", 2, "one after another"),
        ("0:3, 0", 2, "no vectors"),
        (parse_layout("OrderBy(Row(32, 2)).GroupBy([4, 16])"), 1, "is of a tile"),
        (parse_layout("OrderBy(Row(8, 8))"), 1, "does not say which thread"),
    ],
)
def test_what_is_no_access_is_an_error(how: object, vector: int, says: str) -> None:
    with pytest.raises(LegoError, match=says):
        OrderBy(Row(8, 8)).draw(access=how, vector=vector)
