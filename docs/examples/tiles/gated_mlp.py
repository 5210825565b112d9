"""The first half of a gated MLP, silu(x G) * (x U): two dots of one tile, and one epilogue."""

import numpy as np

import lego_mlir as lg

TOKENS, WIDTH, HIDDEN = 128, 256, 192
ROWS, COLUMNS, DEPTH = 128, 64, 64
WEIGHTS = lg.Tensor["f16", (HIDDEN, WIDTH)]


@lg.kernel(grid=(HIDDEN // COLUMNS, TOKENS // ROWS), warps=8, schedule="overlapped")
def gated(
    x: lg.Tensor["f16", (TOKENS, WIDTH)],
    gate: WEIGHTS,
    up: WEIGHTS,
    out: lg.Tensor["f16", (TOKENS, HIDDEN)],
):
    n, m = lg.block_id("x"), lg.block_id("y")
    zero = lg.zeros((ROWS, COLUMNS), "f32")

    @lg.fold(WIDTH // DEPTH, (zero, zero))
    def sums(k, gates, ups):
        tokens = x.tile(ROWS, DEPTH)[m, k]
        gates = lg.dot(tokens, gate.tile(COLUMNS, DEPTH)[n, k].T, gates)
        return gates, lg.dot(tokens, up.tile(COLUMNS, DEPTH)[n, k].T, ups)

    out.tile(ROWS, COLUMNS)[m, n] = (lg.silu(sums[0]) * sums[1]).to("f16")


rng = np.random.default_rng(0)
x = rng.standard_normal((TOKENS, WIDTH)).astype(np.float16)
gate, up = (rng.standard_normal((2, HIDDEN, WIDTH)) / WIDTH**0.5).astype(np.float16)
out = np.empty((TOKENS, HIDDEN), np.float16)
gated(x, gate, up, out)
g, u = (
    x.astype(np.float32) @ gate.T.astype(np.float32),
    x.astype(np.float32) @ up.T.astype(np.float32),
)
np.testing.assert_allclose(out, g / (1 + np.exp(-g)) * u, rtol=3e-3, atol=3e-3)
