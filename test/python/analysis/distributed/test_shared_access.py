"""Stores to shared memory of a given layout: every element once, by accesses that are wide."""

from __future__ import annotations

import numpy as np
import pytest

from lego_mlir.algebra import Layout
from lego_mlir.analysis.distributed import DistributedLayout, coalesced, wgmma_accumulator
from lego_mlir.analysis.distributed.conversions.matrices import MatrixInstructions
from lego_mlir.analysis.distributed.conversions.shared_access import estimate_store, plan_store
from lego_mlir.analysis.shared_tiles import swizzled_tile

MATRICES = MatrixInstructions(load=True, store=True)

ROWS = coalesced((64, 64), 2, 4)
COLUMNS = coalesced((64, 64), 2, 4, order=(1, 0))
BY_ROW, BY_COLUMN = (swizzled_tile((64, 64), dim, 2) for dim in (1, 0))


@pytest.mark.parametrize("layout", [ROWS, COLUMNS, wgmma_accumulator((64, 64))])
@pytest.mark.parametrize("memory", [BY_ROW, BY_COLUMN])
@pytest.mark.parametrize("instructions", [MATRICES, MatrixInstructions()])
def test_every_element_is_stored_once(
    layout: DistributedLayout, memory: Layout, instructions: MatrixInstructions
) -> None:
    side = plan_store(layout, memory, 2, instructions)
    registers = [r for vector in side.vectors for r in vector]
    assert sorted(registers) == list(range(layout.registers))
    if side.matrices is None:
        offsets = np.asarray(memory.offsets()).reshape(-1)[layout.elements()]
        for vector in side.vectors:
            held = offsets[..., list(vector)]
            assert (held == held[..., :1] + np.arange(len(vector))).all()


def test_rows_are_stored_by_16_bytes_without_conflicts() -> None:
    side = plan_store(ROWS, BY_ROW, 2)
    assert (side.width, side.wavefronts, side.ideal) == (16, 64, 64)


def test_an_accumulator_is_stored_by_matrices() -> None:
    for memory, is_transposed in ((BY_ROW, False), (BY_COLUMN, True)):
        side = plan_store(wgmma_accumulator((64, 64)), memory, 2, MATRICES)
        assert side.matrices is not None
        assert side.matrices.is_transposed == is_transposed
        assert side.wavefronts == side.ideal == 64


@pytest.mark.parametrize(
    ("layout", "memory", "least"),
    [(ROWS, BY_ROW, 64), (COLUMNS, BY_COLUMN, 64), (ROWS, BY_COLUMN, 128)],
)
def test_the_estimate_is_the_plan_without_conflicts(
    layout: DistributedLayout, memory: Layout, least: int
) -> None:
    assert estimate_store(layout, memory, 2) == least
    assert plan_store(layout, memory, 2).wavefronts >= least
