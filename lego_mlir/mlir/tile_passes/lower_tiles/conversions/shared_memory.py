"""Conversions through shared memory: threads store what they hold, and load what they need.

    %room = "lego.alloc"() {layout = #M} : () -> memref<?xf32, #gpu.address_space<workgroup>>
    "lego.store_parts"(%room, %i, %j, %x0, %x1) {layout = #M, registers = ...}
    %y:2 = "lego.load_parts"(%room, %k, %l) {layout = #M, registers = ...}

The memory's layout, with its swizzle or padding, is the plan's, and so is the order of registers:
those that one access moves follow one another. `insert_barriers` has the barrier between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from lego_mlir.analysis.distributed import DistributedLayout, Factor, Place
from lego_mlir.analysis.distributed.conversions.shared_memory import SharedExchange, Side
from lego_mlir.analysis.distributed.factors import cut_all, weights
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.matrices import (
    load_by_matrices,
    store_by_matrices,
)
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import (
    Fragment,
    once,
    part_types,
    register_factors,
    repeated,
    same_registers,
    without_copies,
)
from lego_mlir.mlir.tile_passes.lower_tiles.memory import allocate, where
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads


def through_shared(
    tile: Fragment, layout: DistributedLayout, plan: SharedExchange, threads: Threads
) -> Callable[[], Fragment]:
    """Build the stores of a tile, and return what builds the loads in another layout of the CTA.

    So the stores of several tiles may come before the loads of any, with one barrier between.

    Args:
        tile: the tile.
        layout: of the result.
        plan: where elements lie in shared memory, and the accesses.
        threads: those of the kernel.
    """
    attribute = layout_attribute(plan.memory.layout)
    if build.is_bool(tile.parts[0]):
        bytes_ = Fragment(tile.layout, tuple(build.bool_to_byte(p) for p in tile.parts))
        loaded = through_shared(bytes_, layout, plan, threads)
        return lambda: Fragment(layout, tuple(build.byte_to_bool(p) for p in loaded().parts))
    buffer = allocate(attribute, tile.element)
    store_side(tile, buffer, attribute, plan.store, threads)
    return partial(_loaded, layout, tile.element, buffer, plan, threads)


def _loaded(
    layout: DistributedLayout, element: Any, buffer: Any, plan: SharedExchange, threads: Threads
) -> Fragment:
    """Build the loads of a tile from shared memory, by vectors or matrices."""
    attribute = layout_attribute(plan.memory.layout)
    if plan.load.matrices is not None:
        matrices = plan.load.matrices
        index = threads.coordinates(matrices.rows)
        return load_by_matrices(layout, element, buffer, attribute, matrices, index)
    own = without_copies(layout)
    vector = _without_copies(layout, plan.load.vectors[0])
    return repeated(load(own, element, buffer, attribute, vector, threads), layout)


def store_side(
    tile: Fragment,
    buffer: Any,
    memory: Any,
    side: Side,
    threads: Threads,
    outer: Sequence[Any] = (),
) -> None:
    """Build the stores of a tile to shared memory, by vectors or matrices.

    Args:
        tile: the tile.
        buffer: the memory.
        memory: the attribute of its layout.
        side: the accesses.
        threads: those of the kernel.
        outer: the index of the memory's dimensions before the tile's.
    """
    if side.matrices is not None:
        store_by_matrices(tile, buffer, memory, side.matrices, threads, outer)
        return
    vector = _without_copies(tile.layout, side.vectors[0])
    store(once(tile), buffer, memory, vector, threads, outer)


def _without_copies(layout: DistributedLayout, vector: tuple[int, ...]) -> tuple[int, ...]:
    """Return registers by their numbers in the layout without copies in registers."""
    renumbered = same_registers(layout, without_copies(layout))
    return tuple(renumbered[r] for r in vector)


def store(
    tile: Fragment,
    buffer: Any,
    memory: Any,
    vector: tuple[int, ...],
    threads: Threads,
    outer: Sequence[Any] = (),
) -> None:
    """Build the stores of a tile; of several threads with the same elements one stores them.

    Args:
        tile: each element once a thread.
        buffer: the memory.
        memory: the attribute of its layout.
        vector: the registers that the first access moves, in the order of memory.
        threads: those of the kernel.
        outer: the index of the memory's dimensions before the tile's.
    """
    ordered = arranged(tile.layout, vector)
    registers = same_registers(ordered, tile.layout)
    parts = tile.picked(ordered, registers).parts
    index = [*outer, *threads.coordinates(tile.layout)]
    factors = [(len(outer) + dim, n, stride) for dim, n, stride in register_factors(ordered)]
    with where(threads.is_first_copy(tile.layout)):
        tiles.store_parts(parts, buffer, index, memory, factors)


def load(
    layout: DistributedLayout,
    element: Any,
    buffer: Any,
    memory: Any,
    vector: tuple[int, ...],
    threads: Threads,
) -> Fragment:
    """Build the loads of a tile; arguments as `store`."""
    ordered = arranged(layout, vector)
    kinds = part_types(ordered, element)
    index = threads.coordinates(layout)
    parts = tiles.load_parts(kinds, buffer, index, memory, register_factors(ordered))
    loaded = Fragment(ordered, tuple(parts))
    return loaded.picked(layout, same_registers(layout, ordered))


@lru_cache(maxsize=1 << 10)
def arranged(layout: DistributedLayout, vector: tuple[int, ...]) -> DistributedLayout:
    """Return the layout with its registers in an order in which those of an access are the fastest.

    Args:
        layout: each element once a thread.
        vector: the registers of one access, in the order of memory, a power of two of them. The
            other accesses move registers at the same distances from one another.
    """
    factors = layout.places[Place.REGISTER]
    # A bit of the number in the vector is a bit of the register's number: a factor of size 2.
    fast = [vector[1 << k] - vector[0] for k in range(len(vector).bit_length() - 1)]
    slow: list[Factor] = []
    bits: dict[int, Factor] = {}
    for f, weight in zip(factors, weights(factors), strict=True):
        inside = [w // weight for w in fast if weight <= w < weight * f.size]
        borders = [f.stride * n for low in inside for n in (low, 2 * low)]
        pieces = cut_all([f], borders)
        assert pieces is not None  # bits of a vector are factors of size 2
        for piece in pieces:
            at = weight * (piece.stride // f.stride)
            if at in fast:
                bits[at] = piece
            else:
                slow.append(piece)
    ordered = (*slow, *(bits[w] for w in reversed(fast)))
    ctas, warps, lanes, _ = layout.places
    return DistributedLayout(layout.shape, (ctas, warps, lanes, ordered))
