"""Star and cube stencils of any radius over a field in rows or in bricks, without index arithmetic.

    python docs/examples/stencil.py

A CTA sweeps along z. It keeps one plane of its elements and their neighbours in shared memory, of
which a thread reads what is around its own elements once, and adds it to its sums for all planes
that it is near to. These stay in registers, so each element of the field is read about once. The
next planes come meanwhile: one through registers, or several by asynchronous copies, which need
fewer registers. Windows say which element of the field stands where in a plane, and that outside
of the field there are zeros.

The layout of the field is another matter: in bricks, what is near in space is near in memory.
"""

from itertools import product
from typing import NamedTuple

import numpy as np

import lego_mlir as lg
from lego_mlir import GenP, OrderBy, Row, bricks

WORD = 4  # elements of an access


class Sweep(NamedTuple):
    """What a CTA computes, and its threads.

    Attributes:
        planes: that the CTA sweeps along z.
        rows: its threads along y.
        words: its threads along x, each with a word of `WORD` elements.
        each: rows of a thread.
        stages: planes that shared memory holds if they are copied there asynchronously, all but one
            of them ahead, a power of two; 0 if they pass through registers.
        ctas_per_sm: CTAs for which a multiprocessor has registers at least.
        alternating: whether every other CTA along z sweeps downwards. Two neighbours then read the
            planes around their boundary at about the same time, one of them from L2.
        short_ends: whether loops of their own, with about half of the multiply-adds, take the
            planes before and behind those of the CTA.
    """

    planes: int = 96
    rows: int = 8
    words: int = 16
    each: int = 3
    stages: int = 0
    ctas_per_sm: int = 1
    alternating: bool = False
    short_ends: bool = False


def weights(shape, radius):
    """Return the weight of each neighbour that a star or a cube has, by its offset."""
    offsets = product(range(-radius, radius + 1), repeat=3)
    kept = [d for d in offsets if shape == "cube" or sum(x != 0 for x in d) <= 1]
    return {d: 1.0 / (1 + sum(map(abs, d))) for d in kept}


def radius_of(taps):
    """Return how far the neighbours are."""
    return max(max(map(abs, d)) for d in taps)


def stencil(n, taps, layout, sweep=Sweep()):  # noqa: B008
    """Return the kernel of a stencil over a field of n × n × n elements.

    Args:
        n: the planes, rows and elements of a row that a CTA computes divide it.
        taps: the weight of each neighbour, by its offset (z, y, x), at most `WORD` away.
        layout: of the field. Words along x are contiguous in it.
        sweep: what a CTA computes.
    """
    planes, each = sweep.planes, sweep.each
    ahead = max(sweep.stages, 2) - 1  # planes that are on their way
    radius = radius_of(taps)
    own = planes, sweep.rows * each, sweep.words
    if radius > WORD or any(size % part for size, part in zip((n, n, n // WORD), own, strict=True)):
        raise ValueError(f"no stencil of radius {radius} over {n}³ elements by {sweep}")
    if sweep.alternating and taps != {(-z, y, x): weight for (z, y, x), weight in taps.items()}:
        raise ValueError("taps: an alternating sweep needs the same weights above and below")
    field = lg.Tensor["f32", layout, WORD * 4]
    by_words = layout.GroupBy([n, n, n // WORD, WORD])
    ctas = tuple(size // part for size, part in zip((n, n, n // WORD), own, strict=True))
    threads = OrderBy(Row(sweep.rows, sweep.words))
    plane = OrderBy(Row(own[1] + 2 * radius, own[2] + 2))  # of words: a CTA's, and those around
    copies = OrderBy(Row(lg.ceildiv(plane.size, threads.size), threads.size))
    steps = planes + 2 * radius
    turns = OrderBy(Row(lg.ceildiv(steps, ahead + 1) + 1, ahead + 1))  # planes take stages in turn
    ways = OrderBy(Row(lg.ceildiv(ctas[0], 2), 2))  # upwards, and downwards
    count = 2 * radius + 1  # planes that a plane is near to, and the first of their sums is done
    phases = [(0, steps, range(count))]
    if sweep.short_ends:  # what is before and behind the CTA is near to less than half of the sums
        phases = [
            (0, radius, range(radius + 1, count)),
            (radius, steps - radius, range(count)),
            (steps - radius, steps, range(radius)),
        ]

    @lg.kernel(grid=ctas[::-1], block=threads.size, ctas_per_sm=sweep.ctas_per_sm)
    def kernel(a: field, b: field):
        cta, t = tuple(lg.block_id(d) for d in "zyx"), lg.thread_id()
        y, x = threads.inv(t)
        source = a.view(by_words).window(
            (*ctas, steps + 2, *plane.dims, WORD),
            lambda bz, by, bx, z, y, x, e: (
                own[0] * bz + z - radius - 1,
                own[1] * by + y - radius,
                own[2] * bx + x - 1,
                e,
            ),
            ("zero", "zero", "zero", "inside"),
        )
        target = b.view(by_words).window(
            (*ctas, planes, sweep.rows, each, sweep.words, WORD),
            lambda bz, by, bx, z, y, k, x, e: (
                own[0] * bz + z,
                own[1] * by + each * y + k,
                own[2] * bx + x,
                e,
            ),
        )
        buffer = lg.shared("f32", OrderBy(Row(ahead + 1, *plane.dims, WORD)))
        around = buffer.window(
            (ahead + 1, sweep.rows, each + 2 * radius, sweep.words, 3, WORD),
            lambda stage, y, k, x, word, e: (stage, each * y + k, x + word, e),
        )
        _, is_down = ways.inv(cta[0])

        def along(up, down):
            return up + (down - up) * is_down if sweep.alternating else up

        numbers = [copies.apply(k, t) for k in range(copies.dims[0])]

        def loaded(step):
            places = [plane.inv(lg.minimum(number, plane.size - 1)) for number in numbers]
            z = along(step + 1, steps - step)
            return [source[(*cta, z, *place, slice(None))] for place in places]

        def copy(step):
            """Begin the copy of a plane, a group of copies; an empty one behind the last plane."""
            _, stage = turns.inv(step)
            z = along(step + 1, lg.maximum(steps - step, 0))
            for k, number in enumerate(numbers):
                is_whole = (k + 1) * threads.size <= plane.size

                @lg.if_(step < steps if is_whole else (step < steps) & (number < plane.size))
                def _(number=number):
                    place = plane.inv(number)
                    to, at = (stage, *place, slice(None)), (*cta, z, *place, slice(None))
                    lg.copy_async(buffer, to, source, at)

            lg.commit_group()

        def add_row(stage, k, by_row, sums):
            """Add a row of the plane to the sums of a thread's rows, by step and row."""
            uses = {i: by_row[k - i - radius] for i in range(each) if k - i - radius in by_row}
            shifts = sorted({dx for use in uses.values() for dx in use})
            needed = range(3) if any(shifts) else [1] if shifts else []
            row = {word: around[stage, y, k, x, word, :] for word in needed}
            for dx in shifts:
                elements = [divmod(WORD + dx + e, WORD) for e in range(WORD)]
                value = lg.concatenate([row[word][e] for word, e in elements]) if dx else row[1]
                for i, use in uses.items():
                    for dz, weight in use.get(dx, {}).items():
                        at = radius - dz, i
                        sums[at] = lg.fma(value, weight, sums[at])

        zero = lg.zeros((WORD,), "f32")
        keys = list(product(range(count), range(each)))
        first = [] if sweep.stages else loaded(0)
        for step in range(ahead if sweep.stages else 0):
            copy(step)

        def swept(step, carried, by_row, has_result):
            """Return the sums and what is on its way, after a plane."""
            sums = dict(zip(keys, carried, strict=False))
            _, stage = turns.inv(step)
            if sweep.stages:
                lg.wait_group(ahead - 1)
                lg.barrier()
                copy(step + ahead)  # all have read what was there
                following = []
            else:
                for number, word in zip(numbers, carried[len(keys) :], strict=True):

                    @lg.if_(number < plane.size)
                    def _(number=number, word=word):
                        buffer[(stage, *plane.inv(number), slice(None))] = word

                following = loaded(step + 1)
                lg.barrier()
            for k in range(each + 2 * radius):
                add_row(stage, k, by_row, sums)

            if has_result:

                @lg.if_(step >= 2 * radius)
                def _():
                    z = along(step - 2 * radius, steps - 1 - step)
                    for i in range(each):
                        place = (*cta, z, y, i, x)
                        target[(*place, slice(None))] = sums[0, i]

            later = [sums.get((s + 1, i), zero) for s, i in keys]
            return (*later, *following)

        carried = (*[zero] * len(keys), *first)
        for start, stop, near in phases:
            by_row = {}  # the weights, by the offsets along y, x, z
            for (dz, dy, dx), weight in taps.items():
                if radius - dz in near:
                    by_row.setdefault(dy, {}).setdefault(dx, {})[dz] = weight

            @lg.fold(stop, carried, start=start)
            def carried(step, *carried, by_row=by_row, near=near):
                return swept(step, carried, by_row, 0 in near)

    return kernel


def reference(field, taps):
    """Return what the stencil computes, by NumPy."""
    radius = radius_of(taps)
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
        "bricks": OrderBy(GenP([n, n, n], bricks(8, 4, 32))),
    }
    x = np.random.default_rng(0).random((n, n, n), np.float32)
    for shape, radius, name in product(("star", "cube"), (1, 2), layouts):
        taps = weights(shape, radius)
        result = stencil(n, taps, layouts[name], Sweep(16, 4, 8, 2)).run(x)
        np.testing.assert_allclose(result.outputs["b"], reference(x, taps), rtol=1e-5)
        points = f"{shape} of {len(taps)} points over {name}"
        print(f"{points} on {result.device}: all {x.size} elements within rounding")
