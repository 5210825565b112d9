"""A GEMM: C = A B, whose dots run on in the next iteration, from ring buffers that TMA fills."""

import numpy as np

import lego_mlir as lg

M, N, K = 256, 192, 320
ROWS, COLUMNS, DEPTH = 128, 96, 64


@lg.kernel(grid=(N // COLUMNS, M // ROWS), warps=8, schedule="overlapped")
def matmul(a: lg.Tensor["f16", (M, K)], b: lg.Tensor["f16", (K, N)], c: lg.Tensor["f16", (M, N)]):
    n, m = lg.block_id("x"), lg.block_id("y")

    @lg.fold(K // DEPTH, lg.zeros((ROWS, COLUMNS), "f32"))
    def sums(k, before):
        return lg.dot(a.tile(ROWS, DEPTH)[m, k], b.tile(DEPTH, COLUMNS)[k, n], before)

    c.tile(ROWS, COLUMNS)[m, n] = sums.to("f16")


rng = np.random.default_rng(0)
a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))
c = np.empty((M, N), np.float16)
matmul(a, b, c)
np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=2e-3, atol=0.05)
