"""The LU decomposition of a large matrix without pivoting, in place, in tiles of 64 × 64.

For each step along the diagonal: `diagonal` decomposes one tile, `perimeter` solves for the tiles
right of it and below it, and `interior` subtracts the products of these from all tiles behind. A
thread of `interior` has 8 × 8 elements in registers.
"""

import numpy as np

import lego_mlir as lg
from lego_mlir import Col, GenP, OrderBy, Row, swizzle

TILE, OWN, WORDS = 64, 8, 4  # elements of a tile, of a thread, of an access, along a dimension
THREADS = TILE

square = OrderBy(Row(TILE, TILE))
by_words = OrderBy(Row(TILE, TILE // WORDS, WORDS))
words = OrderBy(Row(TILE, TILE // WORDS))
rounds = OrderBy(Row(words.size // THREADS, THREADS))


def lud(size):
    """Return the kernels `diagonal`, `perimeter` and `interior` for a multiple of `TILE`."""
    tiles = size // TILE
    matrix = lg.Tensor["f32", OrderBy(Row(size, size)), 16]
    step = lg.Scalar["index"]
    by_element = OrderBy(Row(size, size)).TileBy([tiles, tiles], [TILE, TILE])
    by_vector = OrderBy(Row(size, size // WORDS, WORDS)).TileBy(
        [tiles, tiles, 1], [TILE, TILE // WORDS, WORDS]
    )

    @lg.kernel(grid=1, block=THREADS)
    def diagonal(a: matrix, at: step):
        t = lg.thread_id()
        own = a.view(by_element)
        tile = lg.shared("f32", square)
        for i in lg.loop(TILE):
            tile[i, t] = own[at, at, i, t]
        lg.barrier()
        for k in lg.loop(TILE - 1):

            @lg.if_(t > k)
            def _(k=k):
                tile[t, k] = tile[t, k] / tile[k, k]

            lg.barrier()

            @lg.if_(t > k)
            def _(k=k):
                for i in lg.loop(TILE, start=k + 1):
                    tile[i, t] = tile[i, t] - tile[i, k] * tile[k, t]

            lg.barrier()
        for i in lg.loop(TILE):
            own[at, at, i, t] = tile[i, t]

    @lg.kernel(grid=(tiles, 2), block=THREADS)
    def perimeter(a: matrix, at: step):
        other, t = lg.block_id("x"), lg.thread_id()
        own = a.view(by_element)

        @lg.if_(other > at)
        def _():
            pivot = lg.shared("f32", square)
            x = lg.shared("f32", OrderBy(GenP([TILE, TILE], swizzle())))
            for i in lg.loop(TILE):
                pivot[i, t] = own[at, at, i, t]

            @lg.if_(lg.block_id("y") == 0)
            def _():  # a tile right of the diagonal, L x = a: a thread has a column
                for i in lg.loop(TILE):
                    x[i, t] = own[at, other, i, t]
                lg.barrier()
                for i in lg.loop(TILE, start=1):

                    @lg.fold(i, x[i, t])
                    def rest(k, rest, i=i):
                        return rest - pivot[i, k] * x[k, t]

                    x[i, t] = rest
                for i in lg.loop(TILE):
                    own[at, other, i, t] = x[i, t]

            @lg.if_(lg.block_id("y") == 1)
            def _():  # a tile below the diagonal, x U = a: a thread has a row
                for i in lg.loop(TILE):
                    x[i, t] = own[other, at, i, t]
                lg.barrier()
                for j in lg.loop(TILE):

                    @lg.fold(j, x[t, j])
                    def rest(k, rest, j=j):
                        return rest - x[t, k] * pivot[k, j]

                    x[t, j] = rest / pivot[j, j]
                lg.barrier()
                for i in lg.loop(TILE):
                    own[other, at, i, t] = x[i, t]

    @lg.kernel(grid=(tiles, tiles), block=THREADS)
    def interior(a: matrix, at: step):
        t = lg.thread_id()
        row, column = lg.block_id("y"), lg.block_id("x")
        down, right = OrderBy(Row(TILE // OWN, TILE // OWN)).inv(t)
        own = a.view(by_vector)

        @lg.if_((row > at) & (column > at))
        def _():
            left, top = lg.shared("f32", OrderBy(Col(TILE, TILE))), lg.shared("f32", square)
            vectors = top.view(by_words)
            for k in lg.loop(words.size // THREADS):
                i, word = words.inv(rounds.apply(k, t))
                vectors[i, word, :] = own[at, column, 0, i, word, :]
                piece = own[row, at, 0, i, word, :]
                for n in range(WORDS):
                    left[i, OrderBy(Row(TILE // WORDS, WORDS)).apply(word, n)] = piece[n]
            lg.barrier()
            # The rows of a thread and its columns, as vectors.
            columns = left.view(OrderBy(Row(TILE, TILE // OWN, OWN // WORDS, WORDS)))
            rows = top.view(OrderBy(Row(TILE, TILE // OWN, OWN // WORDS, WORDS)))
            zeros = tuple(lg.zeros((WORDS,), "f32") for _ in range(OWN * OWN // WORDS))

            @lg.fold(TILE, zeros)
            def sums(k, *sums):
                factors = [columns[k, down, h, :] for h in range(OWN // WORDS)]
                others = [rows[k, right, h, :] for h in range(OWN // WORDS)]
                found = []
                for i in range(OWN):
                    factor = factors[i // WORDS][i % WORDS]
                    for h, other in enumerate(others):
                        before = sums[i * (OWN // WORDS) + h]
                        found.append(before + other * factor)
                return tuple(found)

            for i in range(OWN):
                line = OrderBy(Row(TILE // OWN, OWN)).apply(down, i)
                for h in range(OWN // WORDS):
                    word = OrderBy(Row(TILE // OWN, OWN // WORDS)).apply(right, h)
                    old = own[row, column, 0, line, word, :]
                    own[row, column, 0, line, word, :] = old - sums[i * (OWN // WORDS) + h]

    return diagonal, perimeter, interior


if __name__ == "__main__":
    n = 3 * TILE
    whole = np.random.default_rng(0).random((n, n), np.float32) + n * np.eye(n, dtype=np.float32)
    a = whole.copy()
    diagonal, perimeter, interior = lud(n)
    for k in range(n // TILE):
        diagonal(a, k)
        if k < n // TILE - 1:
            perimeter(a, k)
            interior(a, k)
    lower, upper = np.tril(a, -1) + np.eye(n), np.triu(a)
    np.testing.assert_allclose(lower @ upper, whole, rtol=1e-4, atol=1e-4)
    print(f"all {a.size} elements within rounding")
