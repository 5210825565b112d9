"""Star and cube stencils of any radius over a field in rows or in bricks, without index arithmetic.

    python docs/examples/stencil.py

A thread computes a column of elements. A window gives it their neighbourhood: it says which element
of the field stands where in the thread's view, and that outside of the field there are zeros. An
element that several of the thread's results need is loaded once. The layout of the field is another
matter: in bricks, what is near in space is near in memory.
"""

from itertools import product

import numpy as np

import lego_mlir as lg
from lego_mlir import GenP, OrderBy, Row, bricks

ROWS, LANES = 4, 32  # threads of a CTA
COLUMN = 8  # elements of a thread


def weights(shape, radius):
    """Return the weight of each neighbour that a star or a cube has, by its offset."""
    offsets = product(range(-radius, radius + 1), repeat=3)
    kept = [d for d in offsets if shape == "cube" or sum(x != 0 for x in d) <= 1]
    return {d: 1.0 / (1 + sum(map(abs, d))) for d in kept}


def stencil(n, taps, layout):
    """Return the kernel of a stencil over a field of n x n x n elements.

    Args:
        n: a multiple of 32.
        taps: the weight of each neighbour, by its offset.
        layout: of the field.
    """
    field = lg.Tensor["f32", layout]
    threads = (n // COLUMN, n // ROWS, n // LANES, ROWS, LANES)
    columns = {}  # the weights of neighbours one above the other, by their other two offsets
    for (dz, *others), weight in taps.items():
        columns.setdefault(tuple(others), {})[dz] = weight

    def element(bz, by, bx, y, x, k):
        return COLUMN * bz + k, ROWS * by + y, LANES * bx + x

    @lg.kernel(grid=(threads[2], threads[1], threads[0]), block=(LANES, ROWS))
    def kernel(a: field, b: field):
        at = (*(lg.block_id(d) for d in "zyx"), lg.thread_id("y"), lg.thread_id("x"))
        sums = [0.0] * COLUMN
        for (dy, dx), column in columns.items():
            low, high = min(column), max(column)

            def neighbour(*index, dy=dy, dx=dx, low=low):
                z, y, x = element(*index)
                return z + low, y + dy, x + dx

            near = a.window((*threads, COLUMN + high - low), neighbour, "zero")
            values = near[(*at, slice(None))]
            for k, (dz, weight) in product(range(COLUMN), column.items()):
                value = values[k + dz - low]
                sums[k] = lg.fma(value, weight, sums[k])
        own = b.window((*threads, COLUMN), element)
        for k in range(COLUMN):
            own[(*at, k)] = sums[k]

    return kernel


def reference(field, taps):
    """Return what the stencil computes, by NumPy."""
    radius = max(max(map(abs, d)) for d in taps)
    padded = np.pad(field.astype(np.float64), radius)
    result = np.zeros(field.shape)
    for d, w in taps.items():
        part = tuple(slice(radius + x, radius + x + n) for x, n in zip(d, field.shape, strict=True))
        result += w * padded[part]
    return result


if __name__ == "__main__":
    n = 32
    layouts = {
        "rows": OrderBy(Row(n, n, n)),
        "bricks": OrderBy(GenP([n, n, n], bricks(COLUMN, ROWS, LANES))),
    }
    x = np.random.default_rng(0).random((n, n, n), np.float32)
    for shape, radius, name in product(("star", "cube"), (1, 2), layouts):
        taps = weights(shape, radius)
        result = stencil(n, taps, layouts[name]).run(x)
        np.testing.assert_allclose(result.outputs["b"], reference(x, taps), rtol=1e-5)
        points = f"{shape} of {len(taps)} points over {name}"
        print(f"{points} on {result.device}: all {x.size} elements within rounding")
