"""Rows of a table at given indices, added to the rows of a matrix where a mask says so."""

import numpy as np

import lego_mlir as lg

ROWS, WORDS, DEPTH = 20, 50, 96


@lg.kernel(grid=-(-ROWS // 8), warps=2)
def embedding(
    table: lg.Tensor["f32", (WORDS, DEPTH)],
    words: lg.Tensor["i32", (ROWS,)],
    out: lg.Tensor["f32", (ROWS, DEPTH)],
):
    m = lg.block_id()
    at = words.tile(8)[m]
    rows = table[lg.restrict(at, at >= 0), :]  # a negative word has no row
    out.tile(8, DEPTH)[m, 0] = rows


rng = np.random.default_rng(0)
table = rng.random((WORDS, DEPTH), np.float32)
words = rng.integers(-1, WORDS, ROWS).astype(np.int32)
out = np.zeros((ROWS, DEPTH), np.float32)
embedding(table, words, out)
assert (out == np.where(words[:, None] >= 0, table[words], 0)).all()
