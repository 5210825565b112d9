"""C = A B on tensor cores. The kernel computes a whole tile of C.

    python docs/examples/matmul.py

The same kernel as matmul.mlir, which explains the layouts. All others are derived: where tiles lie
in shared memory, and which thread holds what.
"""

import lego_mlir as lg
from lego_mlir import OrderBy, RegP, Row

M, N, K = 512, 512, 256
BM, BN, BK = 128, 128, 64

A = OrderBy(Row(M, K)).TileBy([M // BM, K // BK], [BM, BK])
B = OrderBy(Row(K, N)).TileBy([K // BK, N // BN], [BK, BN])
C = OrderBy(Row(M, N)).TileBy([M // BM, N // BN], [BM, BN])

blocks = OrderBy(RegP([M // BM // 4, 4, N // BN], [0, 2, 1])).GroupBy([M // BM, N // BN])


@lg.kernel(grid=blocks.size, warps=4, reference="matmul", schedule="cp_async")
def matmul(
    a: lg.Tensor["f16", A, 16],
    b: lg.Tensor["f16", B, 16],
    c: lg.Tensor["f16", C, 16],
):
    m, n = blocks.inv(lg.block_id())

    @lg.fold(K // BK, lg.zeros((BM, BN), "f32"))
    def total(k, total):
        return lg.dot(a[m, k, :, :], b[k, n, :, :], total)

    c[m, n, :, :] = total.to("f16")


if __name__ == "__main__":
    result = matmul.run()
    print(f"{matmul} on {result.device}: {result.comparison}")
