"""Random distributed layouts of a tile, by hypothesis: replicas, mixed radix, any order."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from lego_mlir.analysis.distributed import DistributedLayout, Factor, replicas

SHAPES = [(1,), (8, 8), (6, 32), (4, 12, 8), (16, 24), (64,), (12, 10), (2, 1, 48), (32, 32)]


def primes(n: int) -> list[int]:
    """Return the prime factors of n, smallest first."""
    found, p = [], 2
    while n > 1:
        while n % p == 0:
            found.append(p)
            n //= p
        p += 1
    return found


@st.composite
def layouts(
    draw: st.DrawFn,
    shape: Sequence[int],
    warps: Sequence[int] = (),
    ctas: Sequence[int] = (),
    copies: bool = True,
) -> DistributedLayout:
    """Return a layout of a tile by warps and CTAs whose numbers are given by their prime factors.

    Each dimension is cut into its prime factors, in any order, and each of them goes to any place
    that has room; what is left of a place holds copies.
    """
    atoms = []
    for dim, n in enumerate(shape):
        stride = 1
        for p in draw(st.permutations(primes(n))):
            atoms.append(Factor(dim, p, stride))
            stride *= p
    room = [list(ctas), list(warps), [2] * 5]
    places: list[list[Factor]] = [[], [], [], []]
    for atom in draw(st.permutations(atoms)):
        fitting = [k for k in range(3) if atom.size in room[k]]
        place = draw(st.sampled_from([3, *fitting, *(k for k in fitting if k == 2)]))
        if place < 3:
            room[place].remove(atom.size)
        places[place].append(atom)
    for k in range(3):
        places[k] += [replicas(p) for p in room[k]]
    if copies and draw(st.integers(0, 5)) == 0:
        places[3].append(replicas(draw(st.sampled_from([2, 3]))))
    mixed = [draw(st.permutations(p)) for p in places]
    return DistributedLayout.of(
        shape, ctas=mixed[0], warps=mixed[1], lanes=mixed[2], registers=mixed[3]
    )


THREADS = st.sampled_from([((), ()), ((2, 2), ()), ((2,), (2,)), ((3,), ()), ((2, 2, 2), (3,))])


@st.composite
def any_layouts(draw: st.DrawFn) -> DistributedLayout:
    """Return a layout of one of `SHAPES`."""
    warps, ctas = draw(THREADS)
    return draw(layouts(draw(st.sampled_from(SHAPES)), warps, ctas))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[DistributedLayout, DistributedLayout]:
    """Return two layouts of one tile by the same threads."""
    warps, ctas = draw(THREADS)
    shape = draw(st.sampled_from(SHAPES))
    return draw(layouts(shape, warps, ctas)), draw(layouts(shape, warps, ctas))
