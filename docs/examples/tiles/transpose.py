"""Transpose of any matrix: the compiler moves tiles between layouts."""

import numpy as np

import lego_mlir as lg

SIDE = 32


@lg.kernel(grid=lambda y: tuple(lg.ceildiv(n, SIDE) for n in y.shape), warps=4)
def transpose(x: lg.Tensor["f32", "M, N"], y: lg.Tensor["f32", "N, M"]):
    n, m = lg.block_id("x"), lg.block_id("y")
    y.tile(SIDE, SIDE)[n, m] = x.tile(SIDE, SIDE)[m, n].T


for rows, columns in ((100, 130), (64, 32)):
    x = np.random.default_rng(0).random((rows, columns), np.float32)
    y = np.empty((columns, rows), np.float32)
    transpose(x, y)
    assert (y == x.T).all()
