"""Softmax of each row, y = exp(x - max) / sum, for any number of rows of up to 1024 elements."""

import numpy as np

import lego_mlir as lg


@lg.kernel(grid=lambda x: x.shape[0], warps=4)
def softmax(x: lg.Tensor["f32", "M, N<=128|1024"], y: lg.Tensor["f32", "M, N"]):
    row = x[lg.block_id(), :]
    e = lg.exp(row - lg.max(row))
    y[lg.block_id(), :] = e / lg.sum(e)


for shape in ((16, 1000), (3, 128)):
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    y = np.empty_like(x)
    softmax(x, y)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
