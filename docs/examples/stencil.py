"""Star and cube stencils of any radius over a field in rows or in bricks, without index arithmetic.

    python docs/examples/stencil.py

A CTA sweeps along z. It keeps planes of its elements and their neighbours in shared memory, of
which a thread reads what is around its own elements once, and adds it to its sums for all planes
that it is near to. These stay in registers, so each element of the field is read about once. The
next planes come meanwhile: of a field in rows by TMA into a ring buffer, of any other layout one
through registers. Windows say which element of the field stands where in a plane, and that outside
of the field there are zeros.

The layout of the field is another matter: in bricks, what is near in space is near in memory.
"""

from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

import lego_mlir as lg
from lego_mlir import GenP, OrderBy, Row, bricks

WORD = 4  # elements of an access


class Sweep(NamedTuple):
    """What a CTA computes, and its threads.

    Attributes:
        planes: that the CTA sweeps along z. If TMA copies them, it is any number: the tiles of a
            plane lie one behind the other, and a CTA goes on with the next one.
        rows: its threads along y.
        words: its threads along x, each with a word of `WORD` elements.
        each: rows of a thread.
        stages: planes of the ring buffer that TMA fills; 0 if planes pass through registers.
        ctas_per_sm: CTAs for which a multiprocessor has registers at least.
        alternating: whether every other CTA along z sweeps downwards. Two neighbours then read the
            planes around their boundary at about the same time, one of them from L2.
        short_ends: whether loops of their own, with about half of the multiply-adds, take the
            planes before and behind those of the CTA.
        together: rows of a plane, after each so many of which the threads wait for one another; 0
            if they do not. So warps fetch the same instructions where a loop has more than the
            instruction cache.
    """

    planes: int = 96
    rows: int = 8
    words: int = 16
    each: int = 3
    stages: int = 0
    ctas_per_sm: int = 1
    alternating: bool = False
    short_ends: bool = False
    together: int = 0


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
        n: the rows and elements of a row that a CTA computes divide it, and its planes if they pass
            through registers.
        taps: the weight of each neighbour, by its offset (z, y, x), at most `WORD` away.
        layout: of the field. Words along x are contiguous in it; for TMA, it has strides.
        sweep: what a CTA computes.
    """
    radius = radius_of(taps)
    own = sweep.rows * sweep.each, sweep.words
    tiled = [(n, own[0]), (n // WORD, own[1])] + [(n, sweep.planes)] * (not sweep.stages)
    if radius > WORD or any(size % part for size, part in tiled):
        raise ValueError(f"no stencil of radius {radius} over {n}³ elements by {sweep}")
    if sweep.alternating and (
        n % sweep.planes or taps != {(-z, y, x): weight for (z, y, x), weight in taps.items()}
    ):
        raise ValueError(
            "an alternating sweep needs the same weights above and below in taps, and planes that "
            f"divide {n}"
        )
    return (by_ring if sweep.stages else by_registers)(n, taps, layout, sweep)


class Plane:
    """What both kinds of sweep do with a plane in shared memory.

    Args:
        n: the elements along each dimension of the field.
        taps: the weight of each neighbour.
        layout: of the field.
        sweep: what a CTA computes.
        side: words that a plane has on either side of those of the CTA.
        done: the first sums that a step carries. A plane adds to those from 0 on. Those of -1 were
            done a step before: they are stored late, for LLVM would move sums that only a branch
            stores into the branch, and all words with them, which takes registers.
        parts: of the field along z, from which planes are counted.
    """

    def __init__(self, n, taps, layout, sweep, side, done=0, parts=1):
        self.taps, self.sweep, self.side, self.radius = taps, sweep, side, radius_of(taps)
        own = sweep.rows * sweep.each, sweep.words
        self.tiles = OrderBy(Row(n // own[0], n // WORD // own[1]))
        self.threads = OrderBy(Row(sweep.rows, sweep.words))
        self.size = OrderBy(Row(own[0] + 2 * self.radius, own[1] + 2 * side))  # of words
        self.count = 2 * self.radius + 1  # planes that a plane is near to
        self.keys = list(product(range(done, self.count), range(sweep.each)))
        self.field = lg.Tensor["f32", layout, WORD * 4]
        self.by_words = layout.GroupBy([n, n, n // WORD, WORD])
        self.parts, self.own = (parts, n // parts), own
        self.pairs = lg.ceildiv(n, 2 * sweep.planes)  # of parts, one upwards and one downwards

    def source(self, tensor):
        """Return the field by part, z from `radius` + 1 before, tile and place in its plane."""
        parts, planes = self.parts
        return tensor.view(self.by_words).window(
            (parts, planes + 2 * self.radius + 2, *self.tiles.dims, *self.size.dims, WORD),
            lambda part, z, ty, tx, y, x, e: (
                planes * part + z - self.radius - 1,
                self.own[0] * ty + y - self.radius,
                self.own[1] * tx + x - self.side,
                e,
            ),
            ("zero", "zero", "zero", "inside"),
        )

    def target(self, tensor):
        """Return the field by part, z, tile and what a thread has in it."""
        sweep, (parts, planes) = self.sweep, self.parts
        return tensor.view(self.by_words).window(
            (parts, planes, *self.tiles.dims, sweep.rows, sweep.each, sweep.words, WORD),
            lambda part, z, ty, tx, y, k, x, e: (
                planes * part + z,
                self.own[0] * ty + sweep.each * y + k,
                self.own[1] * tx + x,
                e,
            ),
        )

    def around(self, buffer, stages):
        """Return planes in shared memory by what is around the words of a thread."""
        sweep = self.sweep
        return buffer.window(
            (stages, sweep.rows, sweep.each + 2 * self.radius, sweep.words, 3, WORD),
            lambda stage, y, k, x, word, e: (
                stage,
                sweep.each * y + k,
                x + word + self.side - 1,
                e,
            ),
        )

    def phases(self, steps):
        """Return loops over so many planes: from, to, and the sums that each of them is near to."""
        radius, every = self.radius, range(self.count)
        if not self.sweep.short_ends:
            return [(0, steps, every)]
        # What is before and behind the CTA is near to less than half of the sums.
        return [
            (0, radius, every[radius + 1 :]),
            (radius, steps - radius, every),
            (steps - radius, steps, every[:radius]),
        ]

    def direction(self, part):
        """Return what picks one of two indices, by whether a part of the field is swept upwards."""
        if not self.sweep.alternating:
            return lambda up, down: up
        _, is_down = OrderBy(Row(self.pairs, 2)).inv(part)
        return lambda up, down: up + (down - up) * is_down

    def weights_near(self, near):
        """Return the weights of these sums, by the offsets along y, x, z."""
        by_row = {}
        for (dz, dy, dx), weight in self.taps.items():
            if self.radius - dz in near:
                by_row.setdefault(dy, {}).setdefault(dx, {})[dz] = weight
        return by_row

    def zeros(self):
        """Return sums of nothing."""
        return (lg.zeros((WORD,), "f32"),) * len(self.keys)

    def add(self, words, sums, by_row):
        """Add a plane to the sums of a thread.

        Args:
            words: returns a word around those of the thread, by its row, and 0 to 2 along x.
            sums: by step and row, changed in place.
            by_row: the weights.
        """
        for k in range(self.sweep.each + 2 * self.radius):
            self._add_row(partial(words, k), k - self.radius, sums, by_row)
            if self.sweep.together and k % self.sweep.together == self.sweep.together - 1:
                lg.barrier()

    def _add_row(self, words, y, sums, by_row):
        uses = {i: by_row[y - i] for i in range(self.sweep.each) if y - i in by_row}
        shifts = sorted({dx for use in uses.values() for dx in use})
        needed = range(3) if any(shifts) else [1] if shifts else []
        row = {word: words(word) for word in needed}
        for dx in shifts:
            elements = [divmod(WORD + dx + e, WORD) for e in range(WORD)]
            value = lg.concatenate([row[word][e] for word, e in elements]) if dx else row[1]
            for i, use in uses.items():
                for dz, weight in use.get(dx, {}).items():
                    at = self.radius - dz, i
                    sums[at] = lg.fma(value, weight, sums[at])

    def moved(self, sums):
        """Return the sums as the next step has them: the first are done, and there are new ones."""
        zero = lg.zeros((WORD,), "f32")
        return [sums.get((s + 1, i), zero) for s, i in self.keys]


def by_ring(n, taps, layout, sweep):
    """Return the kernel that TMA brings planes for. Arguments are those of `stencil`."""
    plane = Plane(n, taps, layout, sweep, side=2, done=-1)  # rows begin at sectors of 32 bytes
    radius, share = plane.radius, sweep.planes
    tiles, slices = plane.tiles, OrderBy(Row(*plane.size.dims, WORD))
    # The planes of a tile one behind the other, or where that is even, a share of all tiles first.
    parts = (n // share, tiles.size, share) if n % share == 0 else (1, tiles.size, n)
    total = n * tiles.size
    most = 1 if n % share == 0 else 1 + lg.ceildiv(share - 1, n)  # tiles that a CTA has part of

    @lg.kernel(
        grid=lg.ceildiv(total, share), block=plane.threads.size, ctas_per_sm=sweep.ctas_per_sm
    )
    def kernel(a: plane.field, b: plane.field):
        t = lg.thread_id()
        y, x = plane.threads.inv(t)
        source, target = plane.source(a), plane.target(b)
        ring = lg.ring("f32", slices, sweep.stages)
        around = plane.around(ring.tensor, ring.stages)
        begin = OrderBy(Row(lg.ceildiv(total, share), share)).apply(lg.block_id(), 0)
        end = lg.minimum(begin + share, total)

        def part(position, number):
            """Sweep along what is left of a tile; return its end, and the next plane's number.

            Args:
                position: of the first plane.
                number: of the first plane in the ring.
            """
            chunk, tile, z = OrderBy(Row(*parts)).inv(lg.minimum(position, total - 1))
            first = OrderBy(Row(parts[0], parts[2])).apply(chunk, z)
            length = share if most == 1 else lg.minimum(parts[2] - z, end - position)
            steps, tile = length + 2 * radius, tiles.inv(tile)
            along = plane.direction(chunk)

            def copy(step):
                @lg.if_((t == 0) & (step < steps))
                def _():
                    z = first + along(step + 1, steps - step)
                    place = 0, z, *tile, *(slice(None) for _ in slices.dims)
                    ring.copy(number + step, source, place)

            for step in range(ring.stages):
                copy(step)

            def store(step, sums):
                """Store the sums that were done when a step began."""
                done = step - 2 * radius - 1
                z = first + along(done, length - 1 - done)
                for i in range(sweep.each):
                    target[(0, z, *tile, y, i, x, slice(None))] = sums[-1, i]

            carried = plane.zeros()
            for start, stop, near in plane.phases(steps):
                by_row = plane.weights_near(near)

                @lg.fold(stop, carried, start=start)
                def carried(step, *carried, by_row=by_row, near=near):
                    sums = dict(zip(plane.keys, carried, strict=True))

                    if 0 in near:

                        @lg.if_(step > 2 * radius)
                        def _():
                            store(step, sums)

                    @lg.if_(step > 0)
                    def _():
                        copy(step + ring.stages - 1)  # all have read the plane before, or nearly

                    stage = ring.wait(number + step)
                    plane.add(lambda k, word: around[stage, y, k, x, word, :], sums, by_row)
                    ring.release(number + step)
                    return tuple(plane.moved(sums))

            store(steps, dict(zip(plane.keys, carried, strict=True)))
            return position + length, number + steps

        if most == 1:
            part(begin, 0)
        else:

            @lg.fold(most, (begin, begin - begin))
            def _(_, position, number):
                return lg.cond(
                    position < end, lambda: part(position, number), lambda: (position, number)
                )

    return kernel


def by_registers(n, taps, layout, sweep):
    """Return the kernel whose planes pass through registers. Arguments are those of `stencil`."""
    radius, planes = radius_of(taps), sweep.planes
    plane = Plane(n, taps, layout, sweep, side=1, parts=n // planes)
    size = plane.size
    copies = OrderBy(Row(lg.ceildiv(size.size, plane.threads.size), plane.threads.size))
    steps = planes + 2 * radius
    turns = OrderBy(Row(lg.ceildiv(steps, 2) + 1, 2))  # planes take turns in shared memory
    ctas = (*plane.tiles.dims[::-1], n // planes)

    @lg.kernel(grid=ctas, block=plane.threads.size, ctas_per_sm=sweep.ctas_per_sm)
    def kernel(a: plane.field, b: plane.field):
        part, *tile = (lg.block_id(d) for d in "zyx")
        t = lg.thread_id()
        y, x = plane.threads.inv(t)
        source, target = plane.source(a), plane.target(b)
        buffer = lg.shared("f32", OrderBy(Row(2, *size.dims, WORD)))
        around = plane.around(buffer, 2)
        along = plane.direction(part)
        numbers = [copies.apply(k, t) for k in range(copies.dims[0])]

        def loaded(step):
            """Return what the thread copies of a plane; that behind the last one is not used."""
            places = [size.inv(lg.minimum(number, size.size - 1)) for number in numbers]
            z = along(step + 1, steps - step)
            return [source[(part, z, *tile, *place, slice(None))] for place in places]

        carried = (*plane.zeros(), *loaded(0))
        for start, stop, near in plane.phases(steps):
            by_row = plane.weights_near(near)

            @lg.fold(stop, carried, start=start)
            def carried(step, *carried, by_row=by_row, near=near):
                sums = dict(zip(plane.keys, carried, strict=False))
                _, stage = turns.inv(step)
                for number, word in zip(numbers, carried[len(sums) :], strict=True):

                    @lg.if_(number < size.size)
                    def _(number=number, word=word):
                        buffer[(stage, *size.inv(number), slice(None))] = word

                following = loaded(step + 1)
                lg.barrier()
                plane.add(lambda k, word: around[stage, y, k, x, word, :], sums, by_row)
                if 0 in near:

                    @lg.if_(step >= 2 * radius)
                    def _():
                        z = along(step - 2 * radius, steps - 1 - step)
                        for i in range(sweep.each):
                            target[(part, z, *tile, y, i, x, slice(None))] = sums[0, i]

                return (*plane.moved(sums), *following)

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
        sweep = Sweep(16, 4, 8, 2, stages=3 if name == "rows" else 0)
        result = stencil(n, taps, layouts[name], sweep).run(x)
        np.testing.assert_allclose(result.outputs["b"], reference(x, taps), rtol=1e-5)
        points = f"{shape} of {len(taps)} points over {name}"
        print(f"{points} on {result.device}: all {x.size} elements within rounding")
