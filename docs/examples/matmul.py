"""C = A B on tensor cores. The kernel computes a whole tile of C.

    python docs/examples/matmul.py

The same kernel as matmul.mlir, which explains the layouts. The schedule distributes the tiles to
warps and lanes, stages them in shared memory, and selects the instructions.
"""

import lego_mlir as lg
from lego_mlir import GenP, OrderBy, RegP, Row, swizzle

M, N, K = 512, 512, 256
BM, BN, BK = 128, 128, 64

A = OrderBy(Row(M, K)).TileBy([M // BM, K // BK], [BM, BK])
B = OrderBy(Row(K, N)).TileBy([K // BK, N // BN], [BK, BN])
C = OrderBy(Row(M, N)).TileBy([M // BM, N // BN], [BM, BN])

SHARED_A = OrderBy(GenP([BM, BK], swizzle(8, 1, 8)))
SHARED_B = OrderBy(GenP([BK, BN], swizzle(8, 1, 8)))
SHARED_C = OrderBy(GenP([BM, BN], swizzle(8, 1, 8)))

blocks = OrderBy(RegP([M // BM // 4, 4, N // BN], [0, 2, 1])).GroupBy([M // BM, N // BN])
warps = OrderBy(Row(2, 2))


@lg.kernel(grid=blocks.size, block=32 * warps.size, reference="matmul", schedule="hmma")
def matmul(
    a: lg.Tensor["f16", A, 16],
    b: lg.Tensor["f16", B, 16],
    c: lg.Tensor["f16", C, 16],
):
    m, n = blocks.inv(lg.block_id())

    @lg.fold(K // BK, lg.zeros((BM, BN), "f32"))
    def total(k, total):
        x = a.staged(SHARED_A)[m, k, :, :]
        y = b.staged(SHARED_B)[k, n, :, :]
        return lg.dot(x, y, total, warps=warps)

    c.staged(SHARED_C)[m, n, :, :] = total.to("f16")


if __name__ == "__main__":
    result = matmul.run()
    print(f"{matmul} on {result.device}: {result.comparison}")
