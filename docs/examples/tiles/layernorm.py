"""LayerNorm of rows: y = (x - mean) / sqrt(variance + epsilon) * w + b."""

import numpy as np

import lego_mlir as lg

ROWS, COLUMNS = 8, 777
MATRIX, LINE = lg.Tensor["f32", (ROWS, COLUMNS), 4], lg.Tensor["f32", (COLUMNS,)]


@lg.kernel(grid=ROWS, warps=4)
def layernorm(x: MATRIX, w: LINE, b: LINE, y: MATRIX):
    row = x[lg.block_id(), :]
    centered = row - lg.sum(row) / COLUMNS
    variance = lg.sum(centered * centered) / COLUMNS
    y[lg.block_id(), :] = centered * lg.rsqrt(variance + 1e-5) * w[:] + b[:]


rng = np.random.default_rng(0)
x = rng.standard_normal((ROWS, COLUMNS), np.float32)
w, b = rng.standard_normal((2, COLUMNS), np.float32)
y = np.empty_like(x)
layernorm(x, w, b, y)
centered = x - x.mean(axis=1, keepdims=True)
expected = centered / np.sqrt((centered**2).mean(axis=1, keepdims=True) + 1e-5) * w + b
np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
