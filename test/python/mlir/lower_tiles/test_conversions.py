"""Conversions of random layouts by every road: kernels run in the simulator, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_distributed import SHAPES, layouts
from tile_kernels import compiled, converted, fits, kernel, load, outputs, store, tile

from lego_mlir.analysis.distributed import (
    DistributedLayout,
    Factor,
    Road,
    blocked,
    coalesced,
    mma_accumulator,
    mma_operand_a,
    mma_operand_b,
    plan_conversion,
    replicas,
    replicated,
    transposed,
)
from lego_mlir.analysis.distributed.conversions.matrices import MatrixInstructions

WARPS = st.sampled_from([(), (2,), (3,), (2, 2), (2, 2, 2)])
TYPES = [np.int8, np.int16, np.float16, np.int32, np.float32, np.int64, np.float64]


@given(st.data(), WARPS, st.sampled_from(SHAPES), st.sampled_from(TYPES))
@settings(max_examples=40, deadline=None)
def test_random_pairs(
    data: st.DataObject, warps: tuple[int, ...], shape: tuple[int, ...], dtype: type
) -> None:
    source, target = (data.draw(layouts(shape, warps)) for _ in range(2))
    assume(fits(dtype, source, target))
    converted(source, target, dtype)


@given(st.data(), st.sampled_from(SHAPES), st.sampled_from(TYPES))
@settings(max_examples=20, deadline=None)
def test_random_pairs_of_one_warp(data: st.DataObject, shape: tuple[int, ...], dtype: type) -> None:
    """Here most roads are shuffles."""
    source, target = (data.draw(layouts(shape)) for _ in range(2))
    assume(fits(dtype, source, target))
    converted(source, target, dtype)


@given(st.data(), WARPS)
@settings(max_examples=8, deadline=None)
def test_booleans(data: st.DataObject, warps: tuple[int, ...]) -> None:
    source, target = (data.draw(layouts((12, 10), warps)) for _ in range(2))
    assume(fits(np.int32, source, target))
    x = (np.arange(120) * 7 % 3).astype(np.int32).reshape(12, 10)
    arguments = {"x": x, "y": np.zeros_like(x)}
    body = f"""
    %v = {load(arguments, "x", tile(source, "i32"))}
    %c = arith.constant dense<1> : {tile(source, "i32")}
    %m = arith.cmpi sge, %v, %c : {tile(source, "i32")}
    %n = "lego.convert"(%m) : ({tile(source, "i1")}) -> {tile(target, "i1")}
    %w = arith.extui %n : {tile(target, "i1")} to {tile(target, "i32")}
    {store(arguments, "y", "%w", tile(target, "i32"))}
    """
    found = outputs(kernel(arguments, source.warps, body), arguments)["y"]
    assert np.array_equal(found, x >= 1)


NAMED = {
    "transposition": (coalesced((64, 64), 4, 4), transposed(coalesced((64, 64), 4, 4)), np.float32),
    "transposition of bytes": (
        coalesced((64, 64), 1, 4),
        transposed(coalesced((64, 64), 1, 4)),
        np.int8,
    ),
    "to an accumulator": (coalesced((64, 64), 4, 4), mma_accumulator((64, 64), (2, 2)), np.float32),
    "to operand A": (coalesced((64, 64), 2, 4), mma_operand_a((64, 64), 16, (4, 1)), np.float16),
    "to operand B": (coalesced((64, 64), 2, 4), mma_operand_b((64, 64), 16, (4, 1)), np.float16),
    "transposition in a warp": (
        blocked((32, 32), (1, 1), (1, 32), (1, 1)),
        blocked((32, 32), (1, 1), (32, 1), (1, 1)),
        np.float32,
    ),
    "to all threads": (coalesced((128,), 4, 4), replicated((128,), 4), np.float32),
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("order", ["late", "early", "random:1"])
def test_named_layouts(name: str, order: str) -> None:
    source, target, dtype = NAMED[name]
    converted(source, target, dtype, order)


@pytest.mark.parametrize("name", NAMED)
def test_accesses_of_shared_memory_are_those_of_the_plan(name: str) -> None:
    source, target, dtype = NAMED[name]
    instructions = MatrixInstructions(load=True, store=True)  # those of the target
    plan = plan_conversion(source, target, np.dtype(dtype).itemsize, instructions)
    ptx = compiled(converted(source, target, dtype)).ptx
    if plan.road is Road.SHUFFLES:
        assert plan.exchange is not None
        assert ptx.count("shfl.sync") == plan.cost.shuffles
        return
    assert plan.shared is not None
    for side, verb in ((plan.shared.store, "st"), (plan.shared.load, "ld")):
        name = f"{verb}.shared" if side.matrices is None else f"{verb}matrix."
        assert ptx.count(name) == len(side.vectors)


def test_renamed_registers_are_no_instructions() -> None:
    source = blocked((2, 128), (2, 4), (1, 32), (1, 1))
    target = DistributedLayout.of(
        source.shape,
        warps=source.places[1],
        lanes=source.places[2],
        registers=source.places[3][::-1],
    )
    assert source != target
    plan = plan_conversion(source, target, 4)
    assert plan.registers is not None
    text = converted(source, target, np.float32)
    same = converted(source, source, np.float32)
    assert compiled(text).ptx == compiled(same).ptx


@pytest.mark.parametrize(
    ("shape", "warps", "dtype"),
    [((6, 2), 2, np.int8), ((3, 5), 3, np.int16), ((2, 3), 3, np.int8), ((10, 3), 3, np.int8)],
)
def test_memory_that_ends_inside_of_a_word(shape: tuple[int, int], warps: int, dtype: type) -> None:
    """LLVM reads neighbours as whole words, and three of these as four."""
    rows, columns = shape
    spread = Factor(1, columns, 1) if columns == warps else replicas(warps)
    rest = [] if columns == warps else [Factor(1, columns, 1)]
    source = DistributedLayout.of(
        shape, warps=[spread], lanes=[replicas(32)], registers=[Factor(0, rows, 1), *rest]
    )
    target = DistributedLayout.of(
        shape,
        warps=[replicas(warps)],
        lanes=[replicas(32)],
        registers=[Factor(0, rows, 1), Factor(1, columns, 1)],
    )
    converted(source, target, dtype)
