"""LU decomposition without pivoting of several matrices, each by a CTA in shared memory.

A thread has a row. In step k the rows below row k subtract a multiple of it, which becomes their
element of column k. A swizzle spreads each column over all banks.
"""

import numpy as np

import lego_mlir as lg
from lego_mlir import GenP, OrderBy, swizzle

N, MATRICES = 32, 3

swizzled = OrderBy(GenP([N, N], swizzle))
matrices = lg.Tensor["f32", (MATRICES, N, N)]


@lg.kernel(grid=MATRICES, block=N)
def decompose(a: matrices, lu: matrices):
    matrix, t = lg.block_id(), lg.thread_id()
    tile = lg.shared("f32", swizzled)
    for i in lg.loop(N):
        tile[i, t] = a[matrix, i, t]
    lg.barrier()
    for k in lg.loop(N - 1):

        @lg.if_(t > k)
        def _(k=k):
            factor = tile[t, k] / tile[k, k]
            tile[t, k] = factor
            for j in lg.loop(N, start=k + 1):
                tile[t, j] = lg.fma(-factor, tile[k, j], tile[t, j])

        lg.barrier()
    for i in lg.loop(N):
        lu[matrix, i, t] = tile[i, t]


if __name__ == "__main__":
    a = np.random.default_rng(0).random((MATRICES, N, N), np.float32) + N * np.eye(N, dtype="f4")
    lu = np.empty_like(a)
    decompose(a, lu)
    lower, upper = np.tril(lu, -1) + np.eye(N, dtype="f4"), np.triu(lu)
    np.testing.assert_allclose(lower @ upper, a, rtol=1e-4, atol=1e-4)
    print(f"all {a.size} elements within rounding")
