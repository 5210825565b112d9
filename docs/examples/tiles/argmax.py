"""The index of the greatest element of each row, and how many rows agree with labels."""

import numpy as np

import lego_mlir as lg

ROWS, COLUMNS = 37, 300


@lg.kernel(grid=-(-ROWS // 16), warps=4)
def accuracy(
    x: lg.Tensor["f32", (ROWS, COLUMNS)],
    labels: lg.Tensor["i32", (ROWS,)],
    places: lg.Tensor["i32", (ROWS,)],
    right: lg.Tensor["i32", (1,)],
):
    m = lg.block_id()
    found = lg.argmax(x.tile(16, COLUMNS)[m, 0], axis=1)
    places.tile(16)[m] = found
    lg.atomic_add(right, 0, lg.sum(found == labels.tile(16)[m]))


rng = np.random.default_rng(0)
x = rng.integers(0, 100, (ROWS, COLUMNS)).astype(np.float32)
labels = np.where(rng.random(ROWS) < 0.5, x.argmax(axis=1), 0).astype(np.int32)
places, right = np.empty(ROWS, np.int32), np.zeros(1, np.int32)
accuracy(x, labels, places, right)
assert (places == x.argmax(axis=1)).all()
assert right[0] == (labels == x.argmax(axis=1)).sum()
