"""Running sums of rows, and a linear recurrence y[k] = a[k] y[k-1] + b[k]."""

import numpy as np

import lego_mlir as lg

ROWS, COLUMNS = 4, 1000
MATRIX = lg.Tensor["f32", (ROWS, COLUMNS)]


@lg.kernel(grid=ROWS, warps=4)
def scans(a: MATRIX, b: MATRIX, sums: MATRIX, recurrence: MATRIX):
    i = lg.block_id()
    sums[i, :] = lg.cumsum(b[i, :])
    steps = a[i, :], b[i, :]
    _, y = lg.scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), steps, identity=(1.0, 0.0))
    recurrence[i, :] = y


rng = np.random.default_rng(0)
a, b = rng.random((2, ROWS, COLUMNS), np.float32)
sums, recurrence = np.empty_like(a), np.empty_like(a)
scans(a, b, sums, recurrence)
np.testing.assert_allclose(sums, np.cumsum(b, axis=1), rtol=1e-5)
expected, y = np.empty_like(a), np.zeros(ROWS, np.float32)
for k in range(COLUMNS):
    expected[:, k] = y = a[:, k] * y + b[:, k]
np.testing.assert_allclose(recurrence, expected, rtol=1e-4)
