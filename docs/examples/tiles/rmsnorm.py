"""RMSNorm of rows of f16: y = x / sqrt(mean(x^2) + epsilon) * w, computed in f32."""

import numpy as np

import lego_mlir as lg

ROWS, COLUMNS = 8, 1536


@lg.kernel(grid=ROWS, warps=4)
def rmsnorm(
    x: lg.Tensor["f16", (ROWS, COLUMNS)],
    w: lg.Tensor["f16", (COLUMNS,)],
    y: lg.Tensor["f16", (ROWS, COLUMNS)],
):
    row = x[lg.block_id(), :].to("f32")
    scale = lg.rsqrt(lg.sum(row * row) / COLUMNS + 1e-6)
    y[lg.block_id(), :] = (row * scale * w[:].to("f32")).to("f16")


rng = np.random.default_rng(0)
x = rng.standard_normal((ROWS, COLUMNS)).astype(np.float16)
w = rng.standard_normal(COLUMNS).astype(np.float16)
y = np.empty_like(x)
rmsnorm(x, w, y)
wide = x.astype(np.float32)
expected = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-6) * w
np.testing.assert_allclose(y, expected, rtol=2e-3, atol=1e-6)
