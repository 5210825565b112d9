"""A matrix transpose through shared memory. Every index in it comes from a layout.

    python docs/examples/transpose.py

The same kernel as transpose.mlir, which explains the layouts.
"""

import lego_mlir as lg
from lego_mlir import GenP, OrderBy, Row, swizzle

N, T, R = 1024, 32, 8

blocks = OrderBy(Row(N // T, N // T))
threads = OrderBy(Row(R, T))
rows = OrderBy(Row(T // R, R))
A = OrderBy(Row(N, N)).TileBy([N // T, N // T], [T, T])
B = OrderBy(Row(N, N)).TileBy([N // T, N // T], [T, T])
swizzled = OrderBy(GenP([T, T], swizzle))


@lg.kernel(grid=blocks.size, block=threads.size, reference="transpose")
def transpose(a: lg.Tensor["f32", A], b: lg.Tensor["f32", B]):
    m, n = blocks.inv(lg.block_id())
    row, col = threads.inv(lg.thread_id())
    tile = lg.shared("f32", swizzled)
    for step in lg.loop(T // R):
        i = rows.apply(step, row)
        tile[i, col] = a[m, n, i, col]
    lg.barrier()
    for step in lg.loop(T // R):
        i = rows.apply(step, row)
        b[n, m, i, col] = tile[col, i]


if __name__ == "__main__":
    result = transpose.run()
    print(f"{transpose} on {result.device}: {result.comparison}")
