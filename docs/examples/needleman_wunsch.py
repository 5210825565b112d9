"""Needleman-Wunsch: the best score of an alignment of two sequences, for every pair of prefixes.

A thread has a column. All threads compute one antidiagonal after another, whose elements depend on
the two before it. In shared memory the matrix lies by antidiagonals, so that what threads access
together is contiguous.
"""

import numpy as np

import lego_mlir as lg
from lego_mlir import GenP, OrderBy, antidiagonal

N, PAIRS, GAP = 48, 4, 2  # letters of a sequence, pairs of sequences, what a gap costs
MATCH, MISMATCH = 3, -1
SIDE = N + 1

by_antidiagonals = OrderBy(GenP([SIDE, SIDE], antidiagonal))
sequences = lg.Tensor["i32", (PAIRS, N)]


@lg.kernel(grid=PAIRS, block=SIDE)
def align(a: sequences, b: sequences, scores: lg.Tensor["i32", (PAIRS, SIDE, SIDE)]):
    pair, j = lg.block_id(), lg.thread_id()
    best = lg.shared("i32", by_antidiagonals)
    for d in lg.loop(2 * N + 1):  # the antidiagonal i + j = d

        @lg.if_((j <= d) & (d - j <= N))
        def _(d=d):
            i = d - j

            def extended():
                same = a[pair, i - 1] == b[pair, j - 1]
                aligned = best[i - 1, j - 1] + lg.where(same, lg.full((), MATCH, "i32"), MISMATCH)
                return lg.maximum(aligned, lg.maximum(best[i - 1, j], best[i, j - 1]) - GAP)

            inside = (i > 0) & (j > 0)
            best[i, j] = lg.cond(inside, extended, lambda: (i + j).to("i32") * -GAP)

        lg.barrier()
    for i in lg.loop(SIDE):
        scores[pair, i, j] = best[i, j]


def reference(a, b):
    best = -GAP * np.add.outer(np.arange(SIDE), np.arange(SIDE))
    for i in range(1, SIDE):
        for j in range(1, SIDE):
            aligned = best[i - 1, j - 1] + (MATCH if a[i - 1] == b[j - 1] else MISMATCH)
            best[i, j] = max(aligned, best[i - 1, j] - GAP, best[i, j - 1] - GAP)
    return best


if __name__ == "__main__":
    a, b = np.random.default_rng(0).integers(0, 4, (2, PAIRS, N), np.int32)
    scores = np.empty((PAIRS, SIDE, SIDE), np.int32)
    align(a, b, scores)
    assert all((scores[p] == reference(a[p], b[p])).all() for p in range(PAIRS))
    print(f"all {scores.size} elements equal")
