"""Kernels on tiles with a schedule: pipelines and roles, in the simulator against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError
from lego_mlir.step_checks import check_each_step

LENGTH, DEPTH, BLOCK = 256, 64, 64
HEAD = lg.Tensor["f16", (LENGTH, DEPTH)]


def _attention(**options: Any) -> Any:
    """Return a kernel of attention forward, one pass over keys and values."""

    @lg.kernel(grid=LENGTH // BLOCK, warps=4, **options)
    def attention(q: HEAD, k: HEAD, v: HEAD, out: HEAD) -> None:
        m = lg.block_id()
        queries = q.tile(BLOCK, DEPTH)[m, 0]
        first = (
            lg.full((BLOCK, 1), -1e30, "f32"),
            lg.zeros((BLOCK, 1), "f32"),
            lg.zeros((BLOCK, DEPTH), "f32"),
        )

        @lg.fold(LENGTH // BLOCK, first)
        def state(n: Any, most: Any, total: Any, sums: Any) -> Any:
            scores = lg.dot(queries, k.tile(BLOCK, DEPTH)[n, 0].T) * DEPTH**-0.5
            larger = lg.maximum(most, lg.max(scores, axis=1, keepdims=True))
            p, old = lg.exp(scores - larger), lg.exp(most - larger)
            sums = lg.dot(p.to("f16"), v.tile(BLOCK, DEPTH)[n, 0], sums * old)
            return larger, total * old + lg.sum(p, axis=1, keepdims=True), sums

        out.tile(BLOCK, DEPTH)[m, 0] = (state[2] / state[1]).to("f16")

    return attention


@pytest.mark.parametrize(
    ("schedule", "stages"),
    [("pipelined", 1), ("pipelined", 3), ("attention", 1), ("attention", 2)],
)
def test_attention_with_a_producer(schedule: str, stages: int) -> None:
    params = {"stages": stages, "producer_registers": 24, "consumer_registers": 240}
    kernel = _attention(schedule=schedule, params=params)
    q, k, v = np.random.default_rng(0).standard_normal((3, LENGTH, DEPTH)).astype(np.float16)
    out = np.empty_like(q)
    kernel(q, k, v, out)
    scores = q.astype(np.float32) @ k.T.astype(np.float32) * DEPTH**-0.5
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, p / p.sum(axis=1, keepdims=True) @ v, rtol=5e-3, atol=5e-3)


def test_attention_in_all_orders() -> None:
    lines = check_each_step(_attention(schedule="pipelined").compilation())
    assert [line.partition(":")[0] for line in lines][-4:] == [
        "the schedule",
        *(f"lowering, run in the simulator ({order})" for order in ("late", "early", "random")),
    ]


def test_a_schedule_without_steps_for_tiles_is_refused() -> None:
    with pytest.raises(LegoError, match="which has no steps for kernels on tiles"):
        _attention(schedule="wgmma")
