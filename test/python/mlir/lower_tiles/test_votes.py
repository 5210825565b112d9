"""Votes of warps, in the simulator: on truth values, and on what exceeds a bound of its row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tile_kernels import kernel, load, outputs, store, tile

from lego_mlir.analysis.distributed import coalesced, mma_accumulator, reduced

WARPS, ROWS, COLUMNS = 4, 16, 16
LAYOUT = mma_accumulator((WARPS * ROWS, COLUMNS), (WARPS, 1))
OF_ROWS = reduced(LAYOUT, 1)
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38]


def voted(x: np.ndarray, bounds: np.ndarray, predicate: str = "ogt") -> np.ndarray:
    """Return what each warp's vote is on whether an element compares so with its row's bound."""
    wide, narrow = tile(LAYOUT, "f32"), tile(OF_ROWS, "f32")
    arguments = {"x": x, "b": bounds, "y": np.full_like(x, np.nan)}
    body = f"""
    %v = {load(arguments, "x", wide)}
    %n = {load(arguments, "b", narrow)}
    %w = "lego.broadcast"(%n) : ({narrow}) -> {wide}
    %c = arith.cmpf {predicate}, %v, %w : {wide}
    %any = "lego.vote"(%c) : ({tile(LAYOUT, "i1")}) -> i1
    %yes = arith.constant 1.0 : f32
    %no = arith.constant 0.0 : f32
    %truth = arith.select %any, %yes, %no : f32
    %f = "lego.full"(%truth) : (f32) -> {wide}
    {store(arguments, "y", "%f", wide)}
    """
    found = outputs(kernel(arguments, WARPS, body), arguments, "late")["y"]
    assert np.isin(found, [0, 1]).all()
    by_warp = found.reshape(WARPS, -1)
    assert (by_warp == by_warp[:, :1]).all()  # all lanes of a warp agree
    return by_warp[:, 0] == 1


@given(st.integers(0, 1 << 32), st.floats(0, 4), st.sampled_from([0, 1, 3]))
@settings(max_examples=12, deadline=None)
def test_a_warp_knows_what_exceeds_bounds(seed: int, bound: float, specials: int) -> None:
    draw = np.random.default_rng(seed)
    x = draw.standard_normal(LAYOUT.shape).astype(np.float32)
    bounds = np.full((len(x), 1), bound, np.float32)
    for tensor in (x, bounds):
        at = draw.integers(0, tensor.size, specials)
        tensor.reshape(-1)[at] = draw.choice(SPECIAL, specials)
    with np.errstate(invalid="ignore"):
        above = (x > bounds).reshape(WARPS, -1).any(axis=1)
    is_plain = ~(np.signbit(bounds) | np.isnan(bounds)).reshape(WARPS, -1).any(axis=1)
    is_plain &= ~np.isnan(x).reshape(WARPS, -1).any(axis=1)
    found = voted(x, bounds)
    assert (found >= above).all()
    assert (found == above)[is_plain].all()


@pytest.mark.parametrize("predicate", ["olt", "oge"])
def test_other_comparisons_vote_by_their_truth_values(predicate: str) -> None:
    x = np.ones(LAYOUT.shape, np.float32)
    x[ROWS + 3, 5] = -7 if predicate == "olt" else 9
    bounds = np.full((len(x), 1), -3.0 if predicate == "olt" else 9.0, np.float32)
    assert voted(x, bounds, predicate).tolist() == [False, True, False, False]


def test_a_vote_is_on_truth_values() -> None:
    layout = coalesced((64,), 4, 2)
    kind, truths = tile(layout, "f32"), tile(layout, "i1")
    arguments = {"x": np.zeros(64, np.float32), "y": np.full(64, np.nan, np.float32)}
    arguments["x"][[3, 40]] = 5
    body = f"""
    %v = {load(arguments, "x", kind)}
    %five = arith.constant dense<5.0> : {kind}
    %c = arith.cmpf oeq, %v, %five : {kind}
    %any = "lego.vote"(%c) : ({truths}) -> i1
    %yes = arith.constant 1.0 : f32
    %no = arith.constant 0.0 : f32
    %truth = arith.select %any, %yes, %no : f32
    %f = "lego.full"(%truth) : (f32) -> {kind}
    {store(arguments, "y", "%f", kind)}
    """
    found = outputs(kernel(arguments, 2, body), arguments, "late")["y"]
    index = np.arange(64)
    warp = np.asarray(layout.inverse([index]).warp)
    expected = np.isin(warp, warp[[3, 40]])
    assert found.tolist() == expected.astype(np.float32).tolist()
