"""The LU decomposition of a large matrix without pivoting, in place, in tiles of 64 × 64.

For each step along the diagonal: `diagonal` decomposes one tile, `perimeter` solves for the tiles
right of it and below it, and `interior` subtracts the products of these from all tiles behind. A
thread of `interior` has 8 × 8 elements in registers.
"""

import numpy as np

import lego_mlir as lg
from lego_mlir import Col, OrderBy, Row

TILE, OWN, WORDS = 64, 8, 4  # elements of a tile, of a thread, of an access, along a dimension
THREADS = TILE
GROUPS = 8  # of threads, each with some of the rows of a tile, where a tile is decomposed or solved

square = OrderBy(Row(TILE, TILE))
by_words = OrderBy(Row(TILE, TILE // WORDS, WORDS))
words = OrderBy(Row(TILE, TILE // WORDS))
threads = OrderBy(Row(GROUPS, TILE))
rows = OrderBy(Row(TILE // GROUPS, GROUPS))
AT_ONCE = 4  # words of each tile that a thread loads before it waits for them
pieces = OrderBy(Row(TILE * TILE // WORDS // THREADS // AT_ONCE, AT_ONCE))
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

    def each_row(group, work):
        """Do something with each row of a tile that a group of threads has."""
        for n in range(TILE // GROUPS):
            work(rows.apply(n, group))

    @lg.kernel(grid=1, block=threads.size)
    def diagonal(a: matrix, at: step):
        group, t = threads.inv(lg.thread_id())
        own = a.view(by_element)
        tile = lg.shared("f32", square)

        def load(i):
            tile[i, t] = own[at, at, i, t]

        def store(i):
            own[at, at, i, t] = tile[i, t]

        each_row(group, load)
        lg.barrier()
        for k in lg.loop(TILE - 1):

            @lg.if_((group == 0) & (t > k))
            def _(k=k):
                tile.exclusive()[t, k] = tile[t, k] / tile[k, k]

            lg.barrier()

            def subtract(i, k=k):
                @lg.if_((i > k) & (t > k))
                def _():
                    tile[i, t] = tile[i, t] - tile[i, k] * tile[k, t]

            each_row(group, subtract)
            lg.barrier()
        each_row(group, store)

    @lg.kernel(grid=(tiles, 2), block=threads.size)
    def perimeter(a: matrix, at: step):
        other, (group, t) = lg.block_id("x"), threads.inv(lg.thread_id())
        own = a.view(by_element)

        def solved(down, across, solve):
            """Solve for a tile by the pivot's, and store it; both are in shared memory."""
            pivot, x = lg.shared("f32", square), lg.shared("f32", square)

            def load(i):
                pivot[i, t] = own[at, at, i, t]
                x[i, t] = own[down, across, i, t]

            def store(i):
                own[down, across, i, t] = x[i, t]

            each_row(group, load)
            lg.barrier()
            for k in lg.loop(TILE):
                solve(pivot, x, k)
                lg.barrier()
            each_row(group, store)

        def by_lower(lower, x, k):  # L x = a: subtract row k from the rows below
            def subtract(i):
                @lg.if_(i > k)
                def _():
                    x[i, t] = x[i, t] - lower[i, k] * x[k, t]

            each_row(group, subtract)

        def by_upper(upper, x, k):  # x U = a: divide column k, subtract it from the others
            def divide(i):
                @lg.if_(t == k)
                def _():
                    x[i, t] = x[i, t] / upper[k, k]

            def subtract(i):
                @lg.if_(t > k)
                def _():
                    x[i, t] = x[i, t] - x[i, k] * upper[k, t]

            each_row(group, divide)
            lg.barrier()
            each_row(group, subtract)

        @lg.if_((other > at) & (lg.block_id("y") == 0))
        def _():
            solved(at, other, by_lower)

        @lg.if_((other > at) & (lg.block_id("y") == 1))
        def _():
            solved(other, at, by_upper)

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
            for piece in lg.loop(words.size // THREADS // AT_ONCE):
                numbers = [pieces.apply(piece, k) for k in range(AT_ONCE)]
                places = [words.inv(rounds.apply(k, t)) for k in numbers]
                loaded = [(own[at, column, 0, *p, :], own[row, at, 0, *p, :]) for p in places]
                for (i, word), (above, beside) in zip(places, loaded, strict=True):
                    vectors[i, word, :] = above
                    for n in range(WORDS):
                        left[i, OrderBy(Row(TILE // WORDS, WORDS)).apply(word, n)] = beside[n]

            def place(i, h):
                line = OrderBy(Row(TILE // OWN, OWN)).apply(down, i)
                word = OrderBy(Row(TILE // OWN, OWN // WORDS)).apply(right, h)
                return row, column, 0, line, word, slice(None)

            # The rows of a thread and its columns, as vectors.
            columns = left.view(OrderBy(Row(TILE, TILE // OWN, OWN // WORDS, WORDS)))
            rows = top.view(OrderBy(Row(TILE, TILE // OWN, OWN // WORDS, WORDS)))
            own_places = [place(i, h) for i in range(OWN) for h in range(OWN // WORDS)]
            before = tuple(own[index] for index in own_places)
            lg.barrier()

            @lg.fold(TILE, before)
            def rest(k, *rest):
                factors = [columns[k, down, h, :] for h in range(OWN // WORDS)]
                others = [rows[k, right, h, :] for h in range(OWN // WORDS)]
                found = []
                for i in range(OWN):
                    factor = factors[i // WORDS][i % WORDS]
                    for h, other in enumerate(others):
                        found.append(rest[i * (OWN // WORDS) + h] - other * factor)
                return tuple(found)

            for index, value in zip(own_places, rest, strict=True):
                own[index] = value

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
