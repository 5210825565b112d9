"""Reductions give every thread the right result, for random layouts, run step by step."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_distributed import any_layouts
from run_conversions import registers_of, run

from lego_mlir.analysis.distributed import (
    DistributedLayout,
    Reduction,
    coalesced,
    plan_reduction,
    reduced,
    wgmma_accumulator,
)
from lego_mlir.analysis.distributed.reduction import Butterfly, Gather, Tree
from lego_mlir.diagnostics import LegoError


def run_reduction(plan: Reduction, held: np.ndarray) -> np.ndarray:
    """Run a sum."""
    for step in plan.steps:
        match step:
            case Tree():
                held = np.stack([held[..., list(g)].sum(axis=-1) for g in step.groups], axis=-1)
            case Butterfly():
                assert held.shape[-1] == step.registers
                for mask in step.masks:
                    held = held + held[:, :, np.arange(32) ^ mask]
            case Gather():
                held = run(step.conversion, held)
    return held


@given(any_layouts(), st.data(), st.sampled_from([1, 2, 4, 8]))
@settings(max_examples=200)
def test_random_layouts(layout: DistributedLayout, data: st.DataObject, size: int) -> None:
    dim = data.draw(st.integers(0, layout.rank - 1))
    plan = plan_reduction(layout, dim, size)
    values = np.random.default_rng(0).integers(0, 1 << 30, layout.shape)
    found = run_reduction(plan, registers_of(layout, values))
    assert plan.result == reduced(layout, dim)
    assert np.array_equal(found, registers_of(plan.result, values.sum(axis=dim, keepdims=True)))
    assert plan.explain().count("→") == max(0, len(plan.steps) - 1)


def test_rows_of_a_warp_and_of_a_block() -> None:
    row = plan_reduction(coalesced((4, 256), 4, 4), 1, 4)
    assert row.explain() == "7 operations in registers → 5 shuffles"
    assert row.result.registers == 1
    block = plan_reduction(coalesced((1, 4096), 4, 8), -1, 4)
    tree, shuffles, gather, last = block.steps
    assert isinstance(tree, Tree)
    assert tree.operations == 15
    assert isinstance(shuffles, Butterfly)
    assert shuffles.masks == (16, 8, 4, 2, 1)
    assert isinstance(gather, Gather)
    assert gather.conversion.cost.shared_bytes == 32
    assert isinstance(last, Tree)
    assert last.operations == 7


def test_rows_of_an_accumulator_take_two_shuffles_each() -> None:
    plan = plan_reduction(wgmma_accumulator((64, 176)), 1, 4)
    assert plan.explain() == "86 operations in registers → 4 shuffles"
    columns = plan_reduction(wgmma_accumulator((64, 176)), 0, 4)
    assert [type(s) for s in columns.steps] == [Tree, Butterfly, Gather, Tree]
    assert prod(columns.result.shape) == 176


def test_there_is_no_such_dimension() -> None:
    with pytest.raises(LegoError, match="there is no dimension 2 in a tile"):
        plan_reduction(wgmma_accumulator((64, 176)), 2, 4)
