"""The order of a dimension in which one layout is another, by enumeration of threads."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.analysis.distributed import (
    DistributedLayout,
    Factor,
    mma_accumulator,
    mma_operand_a,
    wgmma_accumulator,
    wgmma_operand_a,
)
from lego_mlir.analysis.distributed.reordering import Reordering, reordering


def held(layout: DistributedLayout, order: np.ndarray | None = None) -> list[set[tuple[int, int]]]:
    """Return what each thread holds, where column j is called `order[j]`."""
    _, warps, lanes, registers = layout.sizes
    found = []
    for warp in range(warps):
        for lane in range(lanes):
            rows, columns = layout.apply(0, warp, lane, np.arange(registers)).coordinates
            columns = np.broadcast_to(columns, registers)
            columns = columns if order is None else order[columns]
            found.append(set(zip(np.broadcast_to(rows, registers), columns, strict=True)))
    return found


def new_index(by: Reordering) -> np.ndarray:
    """Return for each old index the new one."""
    old = np.arange(np.prod(by.sizes)).reshape(by.sizes)
    found = np.empty(old.size, np.int64)
    found[old.transpose(by.order).reshape(-1)] = np.arange(old.size)
    return found


@given(st.integers(1, 7), st.sampled_from([8, 16]), st.integers(1, 2), st.booleans())
def test_accumulators_become_operand_a(steps: int, bits: int, groups: int, by_wgmma: bool) -> None:
    depth = 32 * steps
    if by_wgmma:
        shape, grid = (64 * groups, depth), (groups, 1)
        given, needed = wgmma_accumulator(shape, grid), wgmma_operand_a(shape, bits, grid)
    else:
        shape, grid = (16 * groups, depth), (groups, 1)
        given, needed = mma_accumulator(shape, grid), mma_operand_a(shape, bits, grid)
    found = reordering(given, needed, 1)
    assert found is not None
    assert found.is_identity == (bits == 16)
    order = new_index(found)
    assert sorted(order) == list(range(depth))
    assert held(given, order) == held(needed)


def test_layouts_that_no_order_makes_equal() -> None:
    shape = (64, 32)
    given = wgmma_accumulator(shape)
    assert reordering(given, wgmma_operand_a((64, 64), 8), 1) is None
    by_rows = DistributedLayout.of(
        shape, warps=[Factor(0, 4, 16)], lanes=[Factor(1, 32, 1)], registers=[Factor(0, 16, 1)]
    )
    assert reordering(given, by_rows, 1) is None
    assert reordering(given, given, 0) == Reordering((4, 2, 8), (0, 1, 2))
