"""Softmax of rows that are read in pieces: the sum is rescaled when the maximum grows."""

import numpy as np

import lego_mlir as lg

ROWS, COLUMNS, PIECE = 4, 5000, 1024
PIECES = -(-COLUMNS // PIECE)


@lg.kernel(grid=ROWS, warps=4)
def online_softmax(x: lg.Tensor["f32", (ROWS, COLUMNS)], y: lg.Tensor["f32", (ROWS, COLUMNS)]):
    row = lg.block_id()
    pieces, results = x.tile(PIECE), y.tile(PIECE)

    @lg.fold(PIECES, (float("-inf"), 0.0))
    def most_and_sum(k, most, total):
        piece = pieces[row, k]
        larger = lg.maximum(most, lg.max(piece))
        return larger, total * lg.exp(most - larger) + lg.sum(lg.exp(piece - larger))

    most, total = most_and_sum
    for k in lg.loop(PIECES):
        results[row, k] = lg.exp(pieces[row, k] - most) / total


x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS), np.float32)
y = np.empty_like(x)
online_softmax(x, y)
e = np.exp(x - x.max(axis=1, keepdims=True))
np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
