"""Blocked layouts: those that loads, stores and pointwise work want."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from lego_mlir.analysis.distributed.factors import Factor, replicas
from lego_mlir.analysis.distributed.layout import DistributedLayout
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES, SECTOR_BYTES, WARP_THREADS


def blocked(
    shape: Sequence[int],
    registers: Sequence[int],
    lanes: Sequence[int],
    warps: Sequence[int],
    *,
    ctas: Sequence[int] | None = None,
    order: Sequence[int] | None = None,
) -> DistributedLayout:
    """Return the blocked layout: blocks of registers in blocks of lanes in blocks of warps.

    Where the tile is larger than these blocks, each thread holds several blocks, and where it is
    smaller, or not divided by them, threads hold copies (papers/linear_layouts, Proposition 4.6,
    here for all sizes). CTAs hold contiguous parts of the tile.

    Args:
        shape: of the tile.
        registers: how many elements next to each other a thread holds, by dimension.
        lanes: the lanes of a warp by dimension; their product is 32.
        warps: the warps of a CTA by dimension.
        ctas: the CTAs of a cluster by dimension; by default there is one.
        order: the dimensions, slowest first, in which registers, lanes, warps and CTAs are
            numbered; by default the last dimension is the fastest.

    Raises:
        LegoError: not one size a dimension, or no such order.
    """
    rank = len(shape)
    order = range(rank) if order is None else order
    if sorted(order) != list(range(rank)):
        raise LegoError(f"{list(order)} is no order of the {rank} dimensions of {list(shape)}")
    ctas = [1] * rank if ctas is None else ctas
    parts = {"registers": registers, "lanes": lanes, "warps": warps, "ctas": ctas}
    for name, sizes in parts.items():
        if len(sizes) != rank or any(n < 1 for n in sizes):
            raise LegoError(
                f"{name} are {list(sizes)}, the tile is {list(shape)}: one number of at least 1 "
                "for each dimension"
            )
    # CTAs take their parts first, but with the greatest stride.
    held = [gcd(n, c) for n, c in zip(shape, ctas, strict=True)]
    left = [n // c for n, c in zip(shape, held, strict=True)]
    stride = [1] * rank

    def taken(sizes: Sequence[int]) -> list[Factor]:
        factors = []
        for dim in order:
            n = gcd(sizes[dim], left[dim])
            factors += [replicas(sizes[dim] // n), Factor(dim, n, stride[dim])]
            left[dim] //= n
            stride[dim] *= n
        return factors

    near, lane, warp = (
        # Copies in registers would only cost registers.
        [f for f in taken(registers) if f.dim >= 0],
        taken(lanes),
        taken(warps),
    )
    far = [Factor(dim, left[dim], stride[dim]) for dim in order]
    cta = []
    for dim in order:
        top = shape[dim] // held[dim]
        cta += [replicas(ctas[dim] // held[dim]), Factor(dim, held[dim], top)]
    return DistributedLayout.of(shape, ctas=cta, warps=warp, lanes=lane, registers=[*far, *near])


def coalesced(
    shape: Sequence[int],
    element_bytes: int,
    warps: int,
    *,
    ctas: int = 1,
    order: Sequence[int] | None = None,
    vector: int | None = None,
    contiguous: int = 1,
    whole: Sequence[int] = (),
) -> DistributedLayout:
    """Return the layout by which a load or a store of a tile in global memory is coalesced.

    Each lane holds vectors of up to 16 bytes along the dimension that is contiguous in memory,
    neighbouring lanes hold neighbouring vectors, and warps and CTAs divide the slowest dimensions,
    so that reductions along the fastest one stay inside of warps where they can. Vectors are
    shorter if otherwise threads would have nothing to do, or the same as others.

    A dimension that is to be `whole` is divided among warps last, and only as far as lanes still
    access whole sectors, so that reductions along it stay inside of warps, too.

    Args:
        shape: of the tile.
        element_bytes: of an element.
        warps: of a CTA.
        ctas: of the cluster.
        order: the dimensions as they lie in memory, slowest first; row-major by default.
        vector: the most elements that may be accessed at once; as many as 16 bytes by default.
        contiguous: how many of the fastest dimensions follow one another in memory, so that a
            vector may go on from one row to the next.
        whole: dimensions that a warp is to have all of.

    Raises:
        LegoError: a number is not at least 1, or there is no such order.
    """
    rank = len(shape)
    order = list(range(rank) if order is None else order)
    if sorted(order) != list(range(rank)):
        raise LegoError(f"{order} is no order of the {rank} dimensions of {list(shape)}")
    if min(element_bytes, warps, ctas) < 1:
        raise LegoError("element_bytes, warps and ctas are at least 1")
    sizes = list(shape)
    cta = _spread(ctas, sizes, order)
    elements = prod(sizes)
    most = MAX_ACCESS_BYTES // element_bytes if vector is None else vector
    vector = gcd(most, prod(sizes[d] for d in order[rank - contiguous :])) if rank else 1
    while vector > 1 and vector * warps * WARP_THREADS > elements:
        vector //= 2
    fastest = order[rank - contiguous :][::-1]
    # Of equally many accesses, the shorter ones need fewer registers than the same ones twice.
    shorter = [vector >> k for k in range(vector.bit_length())]
    vector = max(shorter, key=lambda n: _busy_threads(n, warps, sizes, order, fastest))
    registers = _spread(vector, sizes, fastest)
    if whole:
        # A sector of neighbouring lanes, then warps along the other dimensions, then the rest.
        near = _spread(max(1, SECTOR_BYTES // (vector * element_bytes)), sizes, order[::-1])
        warp = _spread(warps, sizes, [d for d in order if d not in whole])
        far = _spread(WARP_THREADS // prod(near), sizes, order[::-1])
        lane = [a * b for a, b in zip(near, far, strict=True)]
        rest = _spread(warps // prod(warp), sizes, order)
        warp = [a * b for a, b in zip(warp, rest, strict=True)]
    else:
        lane = _spread(WARP_THREADS, sizes, order[::-1])
        warp = _spread(warps, sizes, order)
    if not rank:
        return replicated(shape, warps, ctas=ctas)
    # What no dimension divides becomes copies, along the slowest dimension.
    for part, number in ((cta, ctas), (lane, WARP_THREADS), (warp, warps)):
        part[order[0]] *= number // prod(part)
    return blocked(shape, registers, lane, warp, ctas=cta, order=order)


def _busy_threads(
    vector: int, warps: int, sizes: Sequence[int], order: Sequence[int], fastest: Sequence[int]
) -> int:
    """Return how many threads hold elements that no other one does, if all have such vectors."""
    left = list(sizes)
    _spread(vector, left, fastest)
    lanes = _spread(WARP_THREADS, left, order[::-1])
    return prod(lanes) * prod(_spread(warps, left, order))


def _spread(number: int, sizes: list[int], order: Sequence[int]) -> list[int]:
    """Divide a number of threads among dimensions in this order; `sizes` become what is left."""
    found = [1] * len(sizes)
    for dim in order:
        found[dim] = gcd(number, sizes[dim])
        sizes[dim] //= found[dim]
        number //= found[dim]
    return found


def replicated(shape: Sequence[int], warps: int, *, ctas: int = 1) -> DistributedLayout:
    """Return the layout in which every thread holds the whole tile: of scalars, and of constants.

    Args:
        shape: of the tile; `()` for a scalar.
        warps: of a CTA.
        ctas: of the cluster.
    """
    return DistributedLayout.of(
        shape,
        ctas=[replicas(ctas)],
        warps=[replicas(warps)],
        lanes=[replicas(WARP_THREADS)],
        registers=[Factor(dim, n, 1) for dim, n in enumerate(shape)],
    )
