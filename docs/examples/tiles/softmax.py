"""Softmax of each row: y = exp(x - max) / sum."""

import numpy as np

import lego_mlir as lg

ROWS, COLUMNS = 16, 1000


@lg.kernel(grid=lambda x: x.shape[0], warps=4)
def softmax(x: lg.Tensor["f32", (ROWS, COLUMNS)], y: lg.Tensor["f32", (ROWS, COLUMNS)]):
    row = x[lg.block_id(), :]
    e = lg.exp(row - lg.max(row))
    y[lg.block_id(), :] = e / lg.sum(e)


x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS), np.float32)
y = np.empty_like(x)
softmax(x, y)
e = np.exp(x - x.max(axis=1, keepdims=True))
np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
