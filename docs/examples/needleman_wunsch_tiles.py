"""Needleman-Wunsch for long sequences: a launch for each diagonal of tiles, a warp for each tile.

A lane has rows of a tile and steps through its columns one behind the lane above it, whose last
element it gets by a shuffle. The other warps of the CTA load similarities into shared memory, where
scores replace them, and store these.
"""

import numpy as np

import lego_mlir as lg
from lego_mlir import OrderBy, Row
from lego_mlir.index import maximum, minimum

LANES, ROWS, THREADS, WORDS = 32, 4, 128, 4  # lanes of a warp, rows of a lane, words of an access
TILE = LANES * ROWS


def from_lane_above(x):
    """Return the value of a register of the lane above."""
    return lg.inline_ptx("shfl.sync.up.b32 $0, $1, 1, 0, 0xffffffff;", x, result="i32")


def needleman_wunsch(size):
    """Return the kernel of one diagonal of tiles of size × size scores, a multiple of `TILE`."""
    tiles = size // TILE
    table = lg.Tensor["i32", OrderBy(Row(size + 1, size + 1))]  # with the borders
    similarities = lg.Tensor["i32", OrderBy(Row(size, size)), 16]
    by_words = OrderBy(Row(size, size // WORDS, WORDS))
    by_tiles = by_words.TileBy([tiles, tiles, 1], [TILE, TILE // WORDS, WORDS])
    positions = OrderBy(Row(tiles, TILE))  # of a tile's rows and columns in the table
    words, elements = OrderBy(Row(TILE, TILE // WORDS)), OrderBy(Row(TILE, TILE))
    of_threads = OrderBy(Row(words.size // THREADS, THREADS))
    each = OrderBy(Row(elements.size // THREADS, THREADS))
    rows_of_lanes = OrderBy(Row(LANES, ROWS))

    @lg.kernel(grid=tiles, block=THREADS)
    def align(
        scores: table,
        similarity: similarities,
        gap: lg.Scalar["i32"],
        diagonal: lg.Scalar["index"],
    ):
        i = lg.block_id() + maximum(diagonal - (tiles - 1), 0)
        j, lane = diagonal - i, lg.thread_id()

        @lg.if_((i < tiles) & (j >= 0))  # the first and the last diagonals have fewer tiles
        def _():
            down, right = minimum(i, tiles - 1).below(tiles), maximum(j, 0).below(tiles)
            best = lg.shared("i32", elements)
            vectors = best.view(OrderBy(Row(TILE, TILE // WORDS, WORDS)))
            for k in lg.loop(words.size // THREADS):
                row, word = words.inv(of_threads.apply(k, lane))
                vectors[row, word, :] = similarity.view(by_tiles)[down, right, 0, row, word, :]
            lg.barrier()

            @lg.if_(lane < LANES)
            def _():
                rows = [rows_of_lanes.apply(lane, k) for k in range(ROWS)]
                before = positions.apply(right, 0)  # the column of the border to the left
                left = tuple(scores[positions.apply(down, row) + 1, before] for row in rows)
                corner = scores[positions.apply(down, rows[0]), before]

                def step(number, *state):
                    left, corner, above = state[:ROWS], state[ROWS], state[ROWS + 1]
                    column = number - lane
                    is_inside = (column >= 0) & (column < TILE)
                    column = maximum(minimum(column, TILE - 1), 0).below(TILE)
                    border = scores[positions.apply(down, 0), positions.apply(right, column) + 1]
                    top = lg.where(lane == 0, border, above)
                    found, upper, diagonal = [], top, corner
                    for k in range(ROWS):
                        aligned = diagonal + best[rows[k], column]
                        value = maximum(aligned, maximum(upper, left[k]) - gap)
                        diagonal, upper = left[k], value
                        found.append(value)

                    @lg.if_(is_inside)
                    def _():
                        for k in range(ROWS):
                            best[rows[k], column] = found[k]

                    kept = [lg.where(is_inside, *pair) for pair in zip(found, left)]  # noqa: B905
                    corner = lg.where(is_inside, top, corner)
                    return (*kept, corner, from_lane_above(kept[-1]))

                lg.fold(TILE + LANES - 1, (*left, corner, corner))(step)

            lg.barrier()
            for k in lg.loop(elements.size // THREADS):
                row, column = elements.inv(each.apply(k, lane))
                at = positions.apply(down, row) + 1, positions.apply(right, column) + 1
                scores[at] = best[row, column]

    return align


def diagonals(size):
    """Return how many launches there are."""
    return 2 * (size // TILE) - 1


if __name__ == "__main__":
    n, gap = 2 * TILE, 10
    similarity = np.random.default_rng(0).integers(-9, 10, (n, n), np.int32)
    scores = np.zeros((n + 1, n + 1), np.int32)
    scores[0] = scores[:, 0] = -gap * np.arange(n + 1)
    expected = scores.copy()
    for i in range(n):
        for j in range(n):
            aligned = expected[i, j] + similarity[i, j]
            expected[i + 1, j + 1] = max(
                aligned, expected[i, j + 1] - gap, expected[i + 1, j] - gap
            )
    kernel = needleman_wunsch(n)
    for diagonal in range(diagonals(n)):
        kernel(scores, similarity, gap, diagonal)
    assert (scores == expected).all()
    print(f"all {scores.size} elements equal")
