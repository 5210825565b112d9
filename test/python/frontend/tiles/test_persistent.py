"""Persistent kernels on tiles: rings that run on from one program to the next, in the simulator."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.step_checks import check_each_step

INPUTS = Path(__file__).resolve().parents[3] / "tile_steps" / "Inputs"
ORDERS = ("late", "early", "random")


def _gemm(m: int, n: int, k: int, **params: int) -> Any:
    """Return a GEMM of tiles of 64 rows and columns, k in steps of 64."""
    a_matrix, b_matrix, c_matrix = (
        lg.Tensor["f16", shape, 16] for shape in ((m, k), (k, n), (m, n))
    )

    @lg.kernel(grid=(-(-n // 64), -(-m // 64)), warps=4, schedule="persistent", params=params)
    def gemm(a: a_matrix, b: b_matrix, c: c_matrix) -> None:
        i, j = lg.block_id("y"), lg.block_id("x")

        @lg.fold(-(-k // 64), lg.zeros((64, 64), "f32"))
        def sums(step: Any, sums: Any) -> Any:
            return lg.dot(a.tile(64, 64)[i, step], b.tile(64, 64)[step, j], sums)

        c.tile(64, 64)[i, j] = sums.to("f16")

    return gemm


@pytest.mark.parametrize(
    ("shape", "ctas", "group", "more"),
    [
        ((128, 192, 192), 4, 2, {}),  # CTAs with one tile, and with two
        ((200, 136, 72), 2, 2, {"stages": 3}),  # padded, and the last group is smaller
        ((64, 320, 64), 1, 8, {"stages": 4}),  # one row, one iteration a tile: fewer than stages
        ((128, 128, 128), 132, 8, {"store_stages": 1}),  # a CTA for each tile
        ((200, 136, 72), 2, 2, {"store_stages": 2, "cluster": 2, "producer_warps": 1}),
        ((256, 64, 64), 4, 4, {"cluster": 4, "store_stages": 2, "store_parts": 4}),
    ],
)
def test_a_gemm_in_all_orders(
    shape: tuple[int, int, int], ctas: int, group: int, more: dict[str, int]
) -> None:
    kernel = _gemm(*shape, ctas=ctas, raster_group=group, **{"stages": 2} | more)
    lines = check_each_step(kernel.compilation())
    assert [line.partition(":")[0] for line in lines][-4:] == [
        "the schedule",
        *(f"lowering, run in the simulator ({order})" for order in ORDERS),
    ]
    assert all(line.endswith("every element is the same") for line in lines[-3:])


def test_the_grid_is_at_most_the_programs() -> None:
    assert _gemm(192, 128, 64, ctas=4, stages=2).compilation().artifact().launches[0].grid[0] == 4
    assert _gemm(192, 128, 64, ctas=9, stages=2).compilation().artifact().launches[0].grid[0] == 6


@pytest.mark.parametrize("causal", [False, True])
def test_attention_whose_tiles_have_as_many_keys_as_they_need(causal: bool) -> None:
    heads, length, depth, block = 1, 136, 64, 64
    blocks = -(-length // block)
    head = lg.Tensor["f16", (heads, length, depth)]
    schedule = str(INPUTS / "persistent_attention.mlir")
    params = {"ctas": 2, "producer_registers": 24, "consumer_registers": 240}

    @lg.kernel(grid=(blocks, heads), warps=4, schedule=schedule, params=params)
    def attention(q: head, k: head, v: head, out: head) -> None:
        m, h = blocks - 1 - lg.block_id("x"), lg.block_id("y")  # the longest rows first
        queries = q.tile(block, depth)[h, m, 0]
        rows = lg.iota((block, 1), 0) + m * block
        first = (
            lg.full((block, 1), -1e30, "f32"),
            lg.zeros((block, 1), "f32"),
            lg.zeros((block, depth), "f32"),
        )

        @lg.fold(m + 1 if causal else blocks, first)
        def state(n: Any, most: Any, total: Any, sums: Any) -> Any:
            scores = lg.dot(queries, k.tile(block, depth)[h, n, 0].T) * 0.125
            if causal:
                scores = lg.where(lg.iota((1, block), 1) + n * block <= rows, scores, -1e30)
            larger = lg.maximum(most, lg.max(scores, axis=1, keepdims=True))
            p, old = lg.exp(scores - larger), lg.exp(most - larger)
            sums = lg.dot(p.to("f16"), v.tile(block, depth)[h, n, 0], sums * old)
            return larger, total * old + lg.sum(p, axis=1, keepdims=True), sums

        out.tile(block, depth)[h, m, 0] = (state[2] / state[1]).to("f16")

    q, k, v = np.random.default_rng(0).standard_normal((3, heads, length, depth)).astype(np.float16)
    out = np.full_like(q, np.nan)
    attention(q, k, v, out)
    wide = (x.astype(np.float32) for x in (q, k))
    scores = np.einsum("hid,hjd->hij", *wide) * 0.125
    if causal:
        scores = np.where(np.tri(length), scores, -np.inf)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    expected = p / p.sum(axis=-1, keepdims=True) @ v.astype(np.float32)
    np.testing.assert_allclose(out, expected, rtol=5e-3, atol=5e-3)
    assert len(check_each_step(attention.compilation())) >= 4


SHORT, WIDE, TALL = (lg.Tensor["f16", shape, 16] for shape in ((100, 64), (64, 128), (100, 128)))


@pytest.mark.parametrize("columns", [64, 48])
def test_a_transposed_product_is_stored_where_c_has_rows(columns: int) -> None:
    @lg.kernel(grid=(-(-100 // columns), 2), warps=4, schedule="persistent", params={"ctas": 2})
    def gemm(a: SHORT, b: WIDE, c: TALL) -> None:
        i, j = lg.block_id("y"), lg.block_id("x")

        @lg.fold(1, lg.zeros((64, columns), "f32"))
        def sums(step: Any, sums: Any) -> Any:
            return lg.dot(b.tile(64, 64)[step, i].T, a.tile(columns, 64)[j, step].T, sums)

        c.tile(columns, 64)[j, i] = sums.to("f16").T

    assert len(check_each_step(gemm.compilation())) >= 4
