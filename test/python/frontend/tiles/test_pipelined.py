"""Kernels on tiles with a schedule: pipelines and roles, in the simulator against NumPy."""

from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError
from lego_mlir.step_checks import check_each_step

BLOCK = 64
REGISTERS = {"producer_registers": 24, "consumer_registers": 240}


def _attention(heads: int, length: int, depth: int, *, causal: bool = False, **options: Any) -> Any:
    """Return a kernel of attention forward, one pass over keys and values."""
    head = lg.Tensor["f16", (heads, length, depth)]
    blocks = -(-length // BLOCK)
    columns = -(-depth // 16) * 16

    @lg.kernel(grid=(blocks, heads), warps=4, **options)
    def attention(q: head, k: head, v: head, out: head) -> None:
        m, h = lg.block_id("x"), lg.block_id("y")
        queries = q.tile(BLOCK, columns)[h, m, 0]
        rows = lg.iota((BLOCK, 1), 0) + m * BLOCK
        first = (
            lg.full((BLOCK, 1), -1e30, "f32"),
            lg.zeros((BLOCK, 1), "f32"),
            lg.zeros((BLOCK, columns), "f32"),
        )

        @lg.fold(m + 1 if causal else blocks, first)
        def state(n: Any, most: Any, total: Any, sums: Any) -> Any:
            scores = lg.dot(queries, k.tile(BLOCK, columns)[h, n, 0].T) * depth**-0.5
            if causal:
                scores = lg.where(lg.iota((1, BLOCK), 1) + n * BLOCK <= rows, scores, -1e30)
            larger = lg.maximum(most, lg.max(scores, axis=1, keepdims=True))
            p, old = lg.exp(scores - larger), lg.exp(most - larger)
            sums = lg.dot(p.to("f16"), v.tile(BLOCK, columns)[h, n, 0], sums * old)
            return larger, total * old + lg.sum(p, axis=1, keepdims=True), sums

        out.tile(BLOCK, columns)[h, m, 0] = (state[2] / state[1]).to("f16")

    return attention


@pytest.mark.parametrize(
    ("schedule", "stages", "shape", "causal"),
    [
        ("pipelined", 1, (1, 256, 64), False),
        ("pipelined", 3, (2, 200, 64), False),  # the last blocks are padded
        ("pipelined", 2, (2, 128, 60), False),  # TMA takes no rows of 120 bytes
        ("attention", 1, (1, 256, 64), True),
        ("attention", 2, (2, 200, 64), False),
        ("attention", 2, (1, 128, 60), True),
    ],
)
def test_attention_with_a_producer(
    schedule: str, stages: int, shape: tuple[int, int, int], causal: bool
) -> None:
    params = {"stages": stages, **REGISTERS}
    kernel = _attention(*shape, causal=causal, schedule=schedule, params=params)
    q, k, v = np.random.default_rng(0).standard_normal((3, *shape)).astype(np.float16)
    out = np.empty_like(q)
    kernel(q, k, v, out)
    wide = (x.astype(np.float32) for x in (q, k))
    scores = np.einsum("hid,hjd->hij", *wide) * shape[2] ** -0.5
    if causal:
        scores = np.where(np.tri(shape[1]), scores, -np.inf)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    expected = p / p.sum(axis=-1, keepdims=True) @ v.astype(np.float32)
    np.testing.assert_allclose(out, expected, rtol=5e-3, atol=5e-3)


def test_attention_in_all_orders() -> None:
    lines = check_each_step(_attention(1, 256, 64, schedule="attention").compilation())
    assert [line.partition(":")[0] for line in lines][-4:] == [
        "the schedule",
        *(f"lowering, run in the simulator ({order})" for order in ("late", "early", "random")),
    ]


def test_a_schedule_without_steps_for_tiles_is_refused() -> None:
    with pytest.raises(LegoError, match="which has no steps for kernels on tiles"):
        _attention(1, 64, 64, schedule="wgmma")
