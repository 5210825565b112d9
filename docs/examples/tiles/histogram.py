"""A histogram of bytes, by atomic additions at indices that tiles hold."""

import numpy as np

import lego_mlir as lg

COUNT, TILE = 5000, 1024


@lg.kernel(grid=-(-COUNT // TILE), warps=4)
def histogram(values: lg.Tensor["u8", (COUNT,)], counts: lg.Tensor["i32", (256,)]):
    bins = values.tile(TILE)[lg.block_id()].to("i32")
    lg.atomic_add(counts, bins, 1)


values = np.random.default_rng(0).integers(0, 256, COUNT).astype(np.uint8)
counts = np.zeros(256, np.int32)
histogram(values, counts)
assert (counts == np.bincount(values, minlength=256)).all()
