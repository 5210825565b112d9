"""The LU decomposition of a large matrix without pivoting, in place, in tiles of 64 × 64.

For each step along the diagonal: `diagonal` decomposes one tile, `perimeter` solves for the tiles
right of it and below it, and `interior` subtracts the products of these from all that is behind.
"""

from itertools import product

import numpy as np

import lego_mlir as lg
from lego_mlir import OrderBy, Row

TILE = 64  # rows and columns of a tile
BLOCK = 8  # of these, those that a thread has in registers
PAD = 4  # further elements of a row in shared memory, so that columns lie in several banks
WORD = 4  # elements of an access
MACRO = 2 * TILE  # rows and columns of what a CTA of `interior` updates
GROUPS = 16  # its threads, down and across

blocks = OrderBy(Row(TILE // BLOCK, BLOCK))
sides = OrderBy(Row(2, TILE))  # a thread's side of the diagonal, and its row or column
threads = OrderBy(Row(GROUPS, GROUPS))


def in_blocks(t):
    """See the rows of square matrices in shared memory as blocks."""
    sizes = (*t.shape[:-1], TILE // BLOCK, BLOCK)
    return t.window(sizes, lambda *index: (*index[:-2], BLOCK * index[-2] + index[-1]))


def reduced(b, values, own, other):
    """Subtract own(k) * other(k) from the vector `values` for all k before block b."""

    @lg.fold(blocks.apply(b, 0), values)
    def rest(k, rest):
        return lg.fma(-own(k), other(k), rest)

    return rest


def solved(b, values, other, divide):
    """Return the vector x of x T = values, where row i of block b of the triangle T is other(i).

    Args:
        b: the block.
        values: a vector.
        other: the block's elements of row k of the matrix that has T on its diagonal.
        divide: by the diagonal, or else it holds ones.
    """
    rows = [other(blocks.apply(b, i)) for i in range(BLOCK)]
    x = [values[i] for i in range(BLOCK)]
    for i, row in enumerate(rows):
        x[i] = x[i] / row[i] if divide else x[i]
        for j in range(i + 1, BLOCK):
            x[j] = lg.fma(-x[i], row[j], x[j])
    return x


def lud(size):
    """Return the kernels `diagonal`, `perimeter` and `interior` for a multiple of `MACRO`."""
    if size % MACRO:
        raise ValueError(f"lud takes a multiple of {MACRO}, not {size}")
    tiles, macros = size // TILE, size // MACRO
    matrix = lg.Tensor["f32", OrderBy(Row(size, size)), 16]
    step = lg.Scalar["index"]
    by_tile = OrderBy(Row(size, size)).TileBy([tiles, tiles], [TILE, TILE])

    @lg.kernel(grid=1, block=sides.size, pdl=True)
    def diagonal(a: matrix, at: step):
        side, t = sides.inv(lg.thread_id())
        own = a.view(by_tile)
        # L transposed, and U: a thread has a row of the one or a column of the other.
        both = lg.shared("f32", OrderBy(Row(2, TILE, TILE + PAD)))
        vectors = in_blocks(both)
        pivots = lg.shared("f32", OrderBy(Row(BLOCK, BLOCK)))

        def own_of(k):
            return both[side, k, t]

        def row_of(side, b):
            return lambda k: vectors[side, k, b, :]

        halves = OrderBy(Row(TILE // 2, 2))
        for n in range(TILE // 2):
            i = halves.apply(n, side)
            value = own[at, at, i, t]
            both[0, t, i] = value
            both[1, i, t] = value
        lg.barrier()
        for b in lg.loop(TILE // BLOCK):
            first = blocks.apply(b, 0)
            before = lg.concatenate([both[side, blocks.apply(b, j), t] for j in range(BLOCK)])
            rest = reduced(b, before, own_of, row_of(1 - side, b))
            row = [rest[j] for j in range(BLOCK)]
            for k in range(BLOCK):

                @lg.if_((side == 0) & (t == blocks.apply(b, k)))
                def _(k=k, row=row):
                    for j in range(k, BLOCK):
                        pivots[k, j] = row[j]

                lg.barrier()
                below = t > blocks.apply(b, k)
                pivot = [pivots[k, j] for j in range(k, BLOCK)]
                row[k] = lg.where(below, row[k] / pivot[0], row[k])
                factor = lg.where(below, row[k], 0.0)
                for j in range(k + 1, BLOCK):
                    row[j] = lg.fma(-factor, pivot[j - k], row[j])

            @lg.if_((side == 0) & (t >= first))
            def _(b=b, row=row):
                for j in range(BLOCK):
                    both[0, blocks.apply(b, j), t] = row[j]

            lg.barrier()

            @lg.if_((side == 1) & (t >= first))
            def _(b=b, rest=rest):
                column = solved(b, rest, row_of(0, b), divide=False)
                for j in range(BLOCK):
                    both[1, blocks.apply(b, j), t] = column[j]

            lg.barrier()
        for n in range(TILE // 2):
            i = halves.apply(n, side)
            own[at, at, i, t] = lg.where(i > t, both[0, t, i], both[1, i, t])

    @lg.kernel(grid=(tiles, 2), block=TILE, pdl=True)
    def perimeter(a: matrix, at: step):
        other, t = lg.block_id("x"), lg.thread_id()
        own = a.view(by_tile)

        def solve(down, across, transposed):
            """Solve for a tile: L x = a by columns, or x U = a by rows."""

            def turned(i, j):
                return (j, i) if transposed else (i, j)

            triangle = lg.shared("f32", OrderBy(Row(TILE, TILE + PAD)))
            # Neither 32 elements of a row nor of a column have a bank in common.
            x = lg.shared("f32", OrderBy(Row(TILE, TILE + 1)))
            vectors = in_blocks(triangle)
            for i in range(TILE):
                triangle[turned(i, t)] = own[at, at, i, t]
                x[turned(i, t)] = own[down, across, i, t]
            lg.barrier()
            for b in lg.loop(TILE // BLOCK):

                def row(k, b=b):
                    return vectors[k, b, :]

                before = lg.concatenate([x[t, blocks.apply(b, j)] for j in range(BLOCK)])
                rest = reduced(b, before, lambda k: x[t, k], row)
                for j, value in enumerate(solved(b, rest, row, divide=not transposed)):
                    x[t, blocks.apply(b, j)] = value
            lg.barrier()
            for i in range(TILE):
                own[down, across, i, t] = x[turned(i, t)]

        @lg.if_((other > at) & (lg.block_id("y") == 0))
        def _():
            solve(at, other, transposed=True)

        @lg.if_((other > at) & (lg.block_id("y") == 1))
        def _():
            solve(other, at, transposed=False)

    @lg.kernel(grid=(macros, macros), block=threads.size, pdl=True)
    def interior(a: matrix, at: step):
        t = lg.thread_id()
        y, x = lg.block_id("y"), lg.block_id("x")
        down, right = threads.inv(t)
        # A thread has rows that are GROUPS apart, and in each of them words that are GROUPS apart.
        rows, columns = MACRO // GROUPS, MACRO // GROUPS // WORD
        own = a.view(OrderBy(Row(macros, rows, GROUPS, macros, columns, GROUPS, WORD)))
        beside = a.view(OrderBy(Row(macros, MACRO, tiles, TILE // WORD, WORD)))
        above = a.view(OrderBy(Row(tiles, TILE, macros, MACRO // WORD, WORD)))
        last = OrderBy(Row(macros, 2)).apply

        @lg.if_((last(y, 1) > at) & (last(x, 1) > at))
        def _():
            left = lg.shared("f32", OrderBy(Row(MACRO, TILE // WORD + 1, WORD)))
            top = lg.shared("f32", OrderBy(Row(TILE, MACRO // WORD, WORD)))
            copies = OrderBy(Row(MACRO, TILE // WORD)), OrderBy(Row(TILE, MACRO // WORD))
            each = OrderBy(Row(copies[0].size // threads.size, threads.size))
            for n in range(each.dims[0]):
                (i, k), (j, word) = (layout.inv(each.apply(n, t)) for layout in copies)
                left[i, k, :] = beside[y, i, at, k, :]
                top[j, word, :] = above[at, j, x, word, :]
            factors = left.view(OrderBy(Row(rows, GROUPS, TILE // WORD + 1, WORD)))
            others = top.view(OrderBy(Row(TILE // WORD, WORD, columns, GROUPS, WORD)))
            places = [(y, i, down, x, j, right) for i in range(rows) for j in range(columns)]
            before = tuple(own[(*place, slice(None))] for place in places)
            lg.barrier()

            @lg.fold(TILE // WORD, before)
            def after(k, *after):
                found = list(after)
                words = [factors[i, down, k, :] for i in range(rows)]
                for n in range(WORD):
                    row = [others[k, n, j, right, :] for j in range(columns)]
                    for p, (_, i, _, _, j, _) in enumerate(places):
                        found[p] = lg.fma(-words[i][n], row[j], found[p])
                return tuple(found)

            # What a CTA has is two tiles wide and high, some of which may be decomposed already.
            for upper, beyond in product(range(2), repeat=2):

                @lg.if_((last(y, upper) > at) & (last(x, beyond) > at))
                def _(quarter=(upper, beyond)):
                    for place, value in zip(places, after, strict=True):
                        if (2 * place[1] // rows, 2 * place[4] // columns) == quarter:
                            own[(*place, slice(None))] = value

    return diagonal, perimeter, interior


if __name__ == "__main__":
    n = 2 * MACRO
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
