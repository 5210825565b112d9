"""Attention forward with a causal mask, one pass over keys and values, softmax online."""

import numpy as np

import lego_mlir as lg

LENGTH, DEPTH, BLOCK = 128, 64, 64
HEAD = lg.Tensor["f16", (LENGTH, DEPTH)]


@lg.kernel(grid=LENGTH // BLOCK, warps=4)
def attention(q: HEAD, k: HEAD, v: HEAD, out: HEAD):
    m = lg.block_id()
    queries = q.tile(BLOCK, DEPTH)[m, 0]
    rows = lg.iota((BLOCK, 1), 0) + m * BLOCK
    scale = DEPTH**-0.5

    @lg.fold(m + 1, (lg.full((BLOCK, 1), -1e30, "f32"), lg.zeros((BLOCK, 1), "f32"),
                     lg.zeros((BLOCK, DEPTH), "f32")))  # fmt: skip
    def state(n, most, total, sums):
        scores = lg.dot(queries, k.tile(BLOCK, DEPTH)[n, 0].T) * scale
        columns = lg.iota((1, BLOCK), 1) + n * BLOCK
        scores = lg.where(columns <= rows, scores, -1e30)
        larger = lg.maximum(most, lg.max(scores, axis=1, keepdims=True))
        p, old = lg.exp(scores - larger), lg.exp(most - larger)
        sums = lg.dot(p.to("f16"), v.tile(BLOCK, DEPTH)[n, 0], sums * old)
        return larger, total * old + lg.sum(p, axis=1, keepdims=True), sums

    out.tile(BLOCK, DEPTH)[m, 0] = (state[2] / state[1]).to("f16")


rng = np.random.default_rng(0)
q, k, v = rng.standard_normal((3, LENGTH, DEPTH)).astype(np.float16)
out = np.empty_like(q)
attention(q, k, v, out)
scores = q.astype(np.float32) @ k.T.astype(np.float32) * DEPTH**-0.5
p = np.exp(np.where(np.tri(LENGTH), scores, -np.inf))
np.testing.assert_allclose(out, p / p.sum(axis=1, keepdims=True) @ v, rtol=5e-3, atol=5e-3)
