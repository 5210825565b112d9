"""Promoted accumulators, partial sums of which threads add up: correct, and more precise."""

from __future__ import annotations

import numpy as np
import pytest
from wgmma_kernels import Array, WgmmaKernel, check

from lego_mlir import runtime
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import dtypes
from lego_mlir.runtime.simulator import Simulator

EIGHT = WgmmaKernel(64, 32, 128, (64, 32, 128), (False, True), "f8E4M3FN")


def promoted(k: int, promote: int, **parameters: int) -> WgmmaKernel:
    """A GEMM of 8-bit floats whose output is the accumulator."""
    same = "%result = arith.addf %sum, %zero : vector<64x32xf32>"
    values = {"promote": promote, "stages": 3, **parameters}
    return WgmmaKernel(
        64,
        32,
        k,
        EIGHT.tile,
        EIGHT.column_major,
        EIGHT.element,
        "f32",
        epilogue=same,
        parameters=values,
    )


@pytest.mark.parametrize("order", ["late", "early", "random"])
@pytest.mark.parametrize(
    ("steps", "promote"), [(1, 1), (3, 1), (4, 2), (5, 2), (6, 3), (4, 3), (1, 4), (2, 9)]
)
def test_any_number_of_iterations(steps: int, promote: int, order: str) -> None:
    check(promoted(128 * steps, promote), order)


def test_with_two_warpgroups() -> None:
    problem = WgmmaKernel(128, 64, 320, (128, 64, 64), consumers=2, parameters={"promote": 2})
    check(problem, "random")


def largest_error(k: int, promote: int) -> float:
    """Return the largest relative error of sums of positive terms."""
    random = np.random.default_rng(k)
    shapes = (64, k), (k, 32)
    a, b = (dtypes.encode(random.uniform(0.5, 1, s), EIGHT.element) for s in shapes)
    run = runtime.run(promoted(k, promote).artifact(), {"a": a, "b": b}, Simulator())
    (found,) = run.outputs.values()
    x, y = (dtypes.decode(v, EIGHT.element).astype(np.float64) for v in (a, b))
    exact: Array = x @ y
    return float(np.max(np.abs(found / exact - 1)))


def test_errors_grow_with_k_unless_accumulators_are_promoted() -> None:
    short, long = 512, 4096
    alone = [largest_error(k, 0) for k in (short, long)]
    split_k = [largest_error(k, 1) for k in (short, long)]
    assert alone[1] > 3 * alone[0] > 1e-2
    assert split_k[1] < 1.1 * split_k[0] < 1e-2


def test_promoting_more_often_is_more_precise() -> None:
    errors = [largest_error(2048, promote) for promote in (1, 4, 16)]
    assert 2 * errors[0] < errors[1]
    assert 2 * errors[1] < errors[2]
    assert errors[2] == largest_error(2048, 0)


def test_a_negative_number_of_iterations_is_an_error() -> None:
    with pytest.raises(LegoError, match="specialize_warps: promote = -1"):
        promoted(512, -1).artifact()
