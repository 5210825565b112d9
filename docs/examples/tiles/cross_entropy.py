"""Cross-entropy of rows of logits: log(sum(exp(x))) - x[label]."""

import numpy as np

import lego_mlir as lg

ROWS, CLASSES = 8, 5003


@lg.kernel(grid=ROWS, warps=8)
def cross_entropy(
    logits: lg.Tensor["f32", (ROWS, CLASSES)],
    labels: lg.Tensor["i32", (ROWS,)],
    losses: lg.Tensor["f32", (ROWS,)],
):
    i = lg.block_id()
    row = logits[i, :]
    most = lg.max(row)
    label = labels[i].below(CLASSES)
    losses[i] = lg.log(lg.sum(lg.exp(row - most))) + most - logits[i, label]


rng = np.random.default_rng(0)
logits = rng.standard_normal((ROWS, CLASSES), np.float32)
labels = rng.integers(0, CLASSES, ROWS, np.int32)
losses = np.empty(ROWS, np.float32)
cross_entropy(logits, labels, losses)
expected = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(ROWS), labels]
np.testing.assert_allclose(losses, expected, rtol=1e-5)
