"""Attention as a program on tiles that says nothing of rings or roles: schedules make these."""

from typing import Any

import numpy as np
from attention_reference import drawn, reference

import lego_mlir as lg


def attention(
    shape: tuple[int, int, int],
    *,
    block: int = 64,
    warps: int = 4,
    causal: bool = False,
    is_reversed: bool = False,
    **options: Any,
) -> Any:
    """Return a kernel of attention forward, one pass over keys and values.

    Args:
        shape: of each tensor: heads, tokens, depth.
        block: tokens of a tile.
        warps: of a CTA.
        causal: a query sees the keys up to its own, and a tile of queries visits no others.
        is_reversed: the last queries, which see most keys, come first.
        options: of the kernel, such as its schedule.
    """
    heads, length, depth = shape
    head = lg.Tensor["f16", shape]
    blocks = -(-length // block)
    columns = -(-depth // 16) * 16

    @lg.kernel(grid=(blocks, heads), warps=warps, **options)
    def attention(q: head, k: head, v: head, out: head) -> None:
        m, h = lg.block_id("x"), lg.block_id("y")
        m = blocks - 1 - m if is_reversed else m
        queries = q.tile(block, columns)[h, m, 0]
        rows = lg.iota((block, 1), 0) + m * block
        first = (
            lg.full((block, 1), -1e30, "f32"),
            lg.zeros((block, 1), "f32"),
            lg.zeros((block, columns), "f32"),
        )

        @lg.fold(m + 1 if causal else blocks, first)
        def state(n: Any, most: Any, total: Any, sums: Any) -> Any:
            scores = lg.dot(queries, k.tile(block, columns)[h, n, 0].T) * depth**-0.5
            if causal:
                scores = lg.where(lg.iota((1, block), 1) + n * block <= rows, scores, -1e30)
            larger = lg.maximum(most, lg.max(scores, axis=1, keepdims=True))
            p, old = lg.exp(scores - larger), lg.exp(most - larger)
            sums = lg.dot(p.to("f16"), v.tile(block, columns)[h, n, 0], sums * old)
            return larger, total * old + lg.sum(p, axis=1, keepdims=True), sums

        out.tile(block, columns)[h, m, 0] = (state[2] / state[1]).to("f16")

    return attention


def check_against_numpy(kernel: Any, shape: tuple[int, int, int], *, causal: bool = False) -> None:
    """Run a kernel in the simulator on random tensors, and compare every element."""
    q, k, v = (drawn(*shape, seed=n) for n in range(3))
    out = np.full(shape, np.nan, np.float16)
    kernel(q, k, v, out, device="sim")
    by_token = (x.swapaxes(0, 1)[None] for x in (q, k, v))
    seen = (lambda b, h, i, j: j <= i) if causal else None
    expected, _ = reference(*by_token, mask=seen)
    np.testing.assert_allclose(out.swapaxes(0, 1)[None], expected, rtol=5e-3, atol=5e-3)
