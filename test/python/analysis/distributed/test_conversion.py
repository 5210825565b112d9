"""Conversions move every element right: plans are run on arrays, for random pairs of layouts."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_distributed import pairs
from run_conversions import registers_of, run

from lego_mlir.analysis.distributed import (
    Conversion,
    DistributedLayout,
    Factor,
    Place,
    Road,
    blocked,
    coalesced,
    estimate_conversion,
    mma_accumulator,
    mma_operand_a,
    mma_operand_b,
    plan_conversion,
    replicated,
    road_of,
    transposed,
    wgmma_accumulator,
    wgmma_operand_a,
)
from lego_mlir.analysis.distributed.conversions.atoms import common_atoms, stays
from lego_mlir.analysis.distributed.conversions.exchange import plan_exchange
from lego_mlir.analysis.distributed.conversions.matrices import MatrixInstructions
from lego_mlir.analysis.distributed.conversions.shared_memory import plan_shared
from lego_mlir.diagnostics import LegoError

BYTES = st.sampled_from([1, 2, 4, 8])


def checked(
    source: DistributedLayout,
    target: DistributedLayout,
    size: int,
    instructions: MatrixInstructions = MatrixInstructions(),  # noqa: B008
) -> Conversion:
    """Plan a conversion and run it."""
    plan = plan_conversion(source, target, size, instructions)
    values = np.arange(prod(source.shape))
    found = run(plan, registers_of(source, values))
    assert np.array_equal(found, registers_of(target, values)), plan.explain()
    assert "\n" not in plan.explain()
    assert plan.explain().startswith(plan.road)
    return plan


@given(pairs(), BYTES)
@settings(max_examples=300)
def test_random_pairs(pair: tuple[DistributedLayout, DistributedLayout], size: int) -> None:
    checked(*pair, size)


@given(pairs(), BYTES)
@settings(max_examples=100)
def test_random_pairs_by_matrices(
    pair: tuple[DistributedLayout, DistributedLayout], size: int
) -> None:
    checked(*pair, size, MatrixInstructions(load=True, store=True))


OPERANDS = [
    mma_operand_a((64, 64), 16, (2, 2)),
    mma_operand_b((64, 64), 16, (2, 2)),
    transposed(mma_operand_b((64, 64), 16, (2, 2))),
    transposed(mma_operand_a((64, 64), 16, (2, 2))),
    mma_accumulator((64, 64), (2, 2)),
    wgmma_accumulator((64, 64)),
    mma_operand_a((64, 64), 8, (4, 1)),
    mma_operand_b((64, 64), 32, (1, 4)),
]


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("is_row_major", [True, False])
def test_operands_go_through_matrices(operand: DistributedLayout, is_row_major: bool) -> None:
    """From and to rows of 16 bytes: one instruction for four matrices, without conflicts."""
    size = {8: 1, 32: 4}.get(32 // _word_elements(operand), 2)
    order = (0, 1) if is_row_major else (1, 0)
    rows = coalesced((64, 64), size, 4, order=order)
    both = MatrixInstructions(load=True, store=True)
    for source, target in ((rows, operand), (operand, rows)):
        plan = checked(source, target, size, both)
        vectors = checked(source, target, size)
        assert plan.cost.wavefronts <= vectors.cost.wavefronts
        assert plan.cost.instructions <= vectors.cost.instructions
        assert plan.shared is not None
        for side in (plan.shared.store, plan.shared.load):
            assert side.wavefronts == side.ideal


def _word_elements(operand: DistributedLayout) -> int:
    return 4 if operand == OPERANDS[6] else 1 if operand == OPERANDS[7] else 2


def test_ldmatrix_reads_operand_b_transposed() -> None:
    """V of attention: k runs along columns in memory, and operand B wants k in a word."""
    rows = coalesced((64, 64), 2, 4)
    plan = checked(rows, mma_operand_b((64, 64), 16, (4, 1)), 2, MatrixInstructions(load=True))
    assert plan.shared is not None
    load = plan.shared.load
    assert load.matrices is not None
    assert load.matrices.is_transposed
    assert (len(load.vectors), load.width) == (16, 16)


@pytest.mark.parametrize("grid", [(2, 4), (4, 2)])
def test_an_accumulator_is_loaded_into_registers_in_order(grid: tuple[int, int]) -> None:
    """`stmatrix` stores it as fast as vectors do, whose loads would have to be transposed."""
    rows = coalesced((128, 256), 2, 8)
    both = MatrixInstructions(load=True, store=True)
    shared = checked(mma_accumulator((128, 256), grid), rows, 2, both).shared
    assert shared is not None
    assert shared.store.matrices is not None
    assert sorted(shared.load.vectors) == [tuple(range(k, k + 8)) for k in range(0, 128, 8)]
    assert shared.load.scattered_words == 0


@given(pairs(), BYTES)
@settings(max_examples=100)
def test_the_road_is_as_short_as_the_elements_need(
    pair: tuple[DistributedLayout, DistributedLayout], size: int
) -> None:
    source, target = pair
    road = plan_conversion(source, target, size).road
    assert road_of(source, target, size) is road
    before, after = (x.elements() for x in pair)

    def inside(axes: int) -> bool:
        """Whether each group of threads has all that it needs."""
        groups = prod(source.sizes[:axes])
        return all(
            set(b.tolist()) <= set(a.tolist())
            for a, b in zip(before.reshape(groups, -1), after.reshape(groups, -1), strict=True)
        )

    assert (road is Road.CLUSTER) == (not inside(1))
    if not inside(2):
        assert road in (Road.SHARED, Road.CLUSTER)
    if road in (Road.NONE, Road.REGISTERS):
        assert inside(3)
    elif road is Road.SHUFFLES:
        assert inside(2)


@given(pairs(), BYTES)
@settings(max_examples=100)
def test_the_swizzle_has_no_conflicts(
    pair: tuple[DistributedLayout, DistributedLayout], size: int
) -> None:
    atoms = common_atoms(*pair)
    if atoms is not None:
        shared = plan_shared(*pair, atoms, size)
        assert shared.store.wavefronts == shared.store.ideal
        assert shared.load.wavefronts == shared.load.ideal


@given(pairs(), BYTES)
@settings(max_examples=50)
def test_the_swizzle_is_never_worse_than_padding(
    pair: tuple[DistributedLayout, DistributedLayout], size: int
) -> None:
    atoms = common_atoms(*pair)
    if atoms is not None:
        swizzled, padded = (plan_shared(*pair, a, size) for a in (atoms, None))
        costs = [p.store.wavefronts + p.load.wavefronts for p in (swizzled, padded)]
        assert costs[0] <= costs[1]
        assert swizzled.shared_bytes == prod(pair[0].shape) * size // swizzled.memory.ctas


@given(pairs(), BYTES)
@settings(max_examples=100)
def test_rounds_are_those_of_the_paper(
    pair: tuple[DistributedLayout, DistributedLayout], size: int
) -> None:
    """Without copies, in 2^|R| rounds (section 5.4) every lane gets a word each."""
    source, target = pair
    atoms = common_atoms(source, target)
    if atoms is None or source.replicas > 1 or target.replicas > 1:
        return
    if stays(source, target, (Place.CTA, Place.WARP)):
        exchange = plan_exchange(source, target, atoms, size)
        assert exchange is not None
        words = target.registers // exchange.packed * max(1, size // 4)
        assert exchange.shuffles <= words
        assert sum(len(r.words) for r in exchange.rounds) * max(1, size // 4) == words


def test_equal_layouts_and_other_names() -> None:
    a = wgmma_accumulator((64, 176))
    assert checked(a, a, 4).road is Road.NONE
    assert checked(a, wgmma_operand_a((64, 176), 16), 2).road is Road.NONE
    c, p = mma_accumulator((64, 64), (4, 1)), mma_operand_a((64, 64), 16, (4, 1))
    assert checked(c, p, 2).road is Road.NONE
    there = DistributedLayout.of((32, 6), lanes=[Factor(0, 32, 1)], registers=[Factor(1, 6, 1)])
    back = DistributedLayout.of(
        (32, 6), lanes=[Factor(0, 32, 1)], registers=[Factor(1, 2, 1), Factor(1, 3, 2)]
    )
    assert checked(there, back, 4).road is Road.NONE
    moved = checked(there, back, 2)
    assert (moved.road, moved.cost.instructions) == (Road.REGISTERS, 3)


def test_what_every_thread_has_it_chooses_from() -> None:
    plan = checked(replicated((64, 2), 4), coalesced((64, 2), 4, 4), 4)
    assert (plan.road, plan.cost.shuffles) == (Road.REGISTERS, 0)


def test_a_transposition_of_a_bit_takes_half_of_the_registers() -> None:
    """The paper's Ship: 1.5 selects and 0.5 shuffles for each register."""
    a = DistributedLayout.of((2, 32), lanes=[Factor(1, 32, 1)], registers=[Factor(0, 2, 1)])
    lanes = [Factor(1, 16, 2), Factor(0, 2, 1)]
    b = DistributedLayout.of((2, 32), lanes=lanes, registers=[Factor(1, 2, 1)])
    plan = checked(a, b, 4)
    assert (plan.road, plan.cost.shuffles, plan.cost.instructions) == (Road.SHUFFLES, 1, 4)
    assert plan.exchange is not None
    assert all(r.is_butterfly for r in plan.exchange.rounds)
    assert plan.explain() == "shuffles: 1 of 4 instructions, in 1 rounds, 1 elements a word"


def test_elements_share_words() -> None:
    a, b = mma_accumulator((16, 64)), blocked((16, 64), (1, 4), (8, 4), (1, 1))
    assert checked(a, b, 4).cost.shuffles == 2 * checked(a, b, 2).cost.shuffles > 0


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("columns", [80, 96, 176, 192])
def test_accumulators_to_rows(columns: int, size: int) -> None:
    source, target = wgmma_accumulator((64, columns)), coalesced((64, columns), size, 4)
    plan = checked(source, target, size)
    assert plan.road in (Road.SHARED, Road.SHUFFLES)
    checked(target, source, size)


def test_a_transpose_through_shared_memory() -> None:
    source = coalesced((64, 64), 4, 4)
    plan = checked(source, transposed(coalesced((64, 64), 4, 4)), 4)
    assert plan.road is Road.SHARED
    assert plan.shared is not None
    assert plan.shared.store.wavefronts == plan.shared.load.wavefronts == 128  # 16 KiB by 128 bytes
    assert "swizzle" in plan.shared.memory.text
    assert plan.cost.shared_bytes == 64 * 64 * 4
    assert plan.cost.barriers == 1
    assert " of which 0 for bank conflicts, 16384 bytes" in plan.explain()


def test_sizes_that_do_not_meet_are_padded() -> None:
    lanes = [Factor(1, 32, 1)]
    source = DistributedLayout.of(
        (6, 32), warps=[Factor(0, 2, 3)], lanes=lanes, registers=[Factor(0, 3, 1)]
    )
    target = DistributedLayout.of(
        (6, 32), warps=[Factor(0, 2, 1)], lanes=lanes, registers=[Factor(0, 3, 2)]
    )
    plan = checked(source, target, 4)
    assert plan.road is Road.SHARED


def test_between_ctas() -> None:
    source = coalesced((64, 32), 2, 2, ctas=2)
    target = coalesced((64, 32), 2, 2, ctas=2, order=(1, 0))
    plan = checked(source, target, 2)
    assert plan.road is Road.CLUSTER
    assert plan.cost.shared_bytes == 64 * 32
    assert plan.explain().startswith("cluster: between CTAs, ")


def test_errors() -> None:
    a = coalesced((64, 64), 4, 4)
    for call, message in (
        (lambda: plan_conversion(a, coalesced((64, 32), 4, 4), 4), "a tile [64, 64] is not conv"),
        (lambda: plan_conversion(a, coalesced((64, 64), 4, 8), 4), "of 4 warps in 1 CTAs is not"),
        (lambda: plan_conversion(a, a, 3), "an element has 1, 2, 4 or 8 bytes, not 3"),
    ):
        with pytest.raises(LegoError) as error:
            call()
        assert message in str(error.value)
    big = coalesced((256, 512), 4, 8)
    with pytest.raises(LegoError, match="does not fit the 232448 bytes of shared memory"):
        plan_conversion(big, coalesced((256, 512), 4, 8, order=(1, 0)), 4)


@given(pairs(), BYTES)
@settings(max_examples=100)
def test_an_estimate_is_the_least_that_a_plan_takes(
    pair: tuple[DistributedLayout, DistributedLayout], size: int
) -> None:
    estimate = estimate_conversion(*pair, size)
    for instructions in (MatrixInstructions(), MatrixInstructions(load=True, store=True)):
        plan = plan_conversion(*pair, size, instructions)
        assert estimate <= plan.cost.clocks
        if plan.shared is None:
            assert estimate == plan.cost.clocks or plan.road is Road.SHUFFLES
