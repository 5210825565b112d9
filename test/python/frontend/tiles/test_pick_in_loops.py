# ruff: noqa: F821
"""A tensor that is picked in a pipelined loop, its tiles by way of ring buffers."""

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import parse_layout

M = N = 64
K, BK = 128, 32
A = parse_layout(f"OrderBy(Row({M}, {K}))")
B = parse_layout(f"OrderBy(Row({K}, {N}))")
C = parse_layout(f"OrderBy(Row({M}, {N}))")


def picked(number):
    """A GEMM of two CTAs whose operand A is, in each iteration, the one of a number."""

    @lg.kernel(grid=2, warps=4, schedule="cp_async")
    def gemm(
        a0: lg.Tensor["f16", A, 16],
        a1: lg.Tensor["f16", A, 16],
        b: lg.Tensor["f16", B, 16],
        c0: lg.Tensor["f32", C, 16],
        c1: lg.Tensor["f32", C, 16],
    ):
        block = lg.block_id()

        @lg.fold(K // BK, lg.zeros((M, N), "f32"))
        def total(k, total):
            x = lg.pick(number(block, k), [a0, a1], A).tile(M, BK)[0, k]
            return lg.dot(x, b.tile(BK, N)[k, 0], total, instruction="mma.sync")

        lg.pick(block, [c0, c1], C)[:, :] = total

    return gemm


@pytest.mark.parametrize(
    "number",
    [lambda block, k: block, lambda block, k: (block + k) % 2],
    ids=["by the CTA", "by the iteration"],
)
def test_a_pick_in_a_pipelined_loop(number):
    random = np.random.default_rng(0)
    a = [random.integers(-2, 3, (M, K)).astype("f2") for _ in range(2)]
    b = random.integers(-2, 3, (K, N)).astype("f2")
    c = [np.zeros((M, N), "f4") for _ in range(2)]
    picked(number)(*a, b, *c, device="sim")
    for block in range(2):
        parts = [
            a[number(block, k)][:, k * BK : (k + 1) * BK].astype("f4") @ b[k * BK : (k + 1) * BK]
            for k in range(K // BK)
        ]
        np.testing.assert_array_equal(c[block], sum(parts))
