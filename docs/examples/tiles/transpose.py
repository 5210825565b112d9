"""Transpose of a matrix whose sizes no tile divides: the compiler moves tiles between layouts."""

import numpy as np

import lego_mlir as lg

ROWS, COLUMNS, SIDE = 100, 130, 32


@lg.kernel(grid=(-(-COLUMNS // SIDE), -(-ROWS // SIDE)), warps=4)
def transpose(x: lg.Tensor["f32", (ROWS, COLUMNS)], y: lg.Tensor["f32", (COLUMNS, ROWS)]):
    n, m = lg.block_id("x"), lg.block_id("y")
    y.tile(SIDE, SIDE)[n, m] = x.tile(SIDE, SIDE)[m, n].T


x = np.random.default_rng(0).random((ROWS, COLUMNS), np.float32)
y = np.empty((COLUMNS, ROWS), np.float32)
transpose(x, y)
assert (y == x.T).all()
