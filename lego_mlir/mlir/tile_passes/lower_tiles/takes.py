"""Elements of a tile at indices along a dimension: by shuffles, or through shared memory.

Where a warp holds all of the dimension, the lane that has an element and its register there are
digits of the index (papers/linear_layouts, section 5.5): a thread shuffles every register that may
be meant, and chooses by the index. If that costs more, the tile goes through shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.analysis.distributed import DistributedLayout, Factor, Place, reduced
from lego_mlir.analysis.distributed.conversions.atoms import Digit
from lego_mlir.analysis.distributed.conversions.exchange import LANE_BITS, WORD_BYTES, Choice
from lego_mlir.analysis.distributed.conversions.plan import BARRIER_CLOCKS, WARP_INSTRUCTIONS
from lego_mlir.analysis.distributed.factors import weights
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_ir.types import bytes_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.shared_memory import store
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.shuffles import (
    from_words,
    shuffle_word,
    to_words,
)
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import (
    Fragment,
    coordinates,
    of_elements,
    once,
    registers_at,
)
from lego_mlir.mlir.tile_passes.lower_tiles.memory import allocate
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads

_CONFLICTS = 4
"""Wavefronts of a load of 32 lanes from random banks: the expected maximum of 32 balls in 32 bins
is 3.5."""


def take(tile: Fragment, indices: Fragment, dim: int, threads: Threads) -> Fragment:
    """Build the elements of a tile at indices along a dimension.

    Args:
        tile: what is taken from.
        indices: of i32; the result has their layout.
        dim: the dimension.
        threads: those of the kernel.

    Raises:
        LegoError: elements may come from other CTAs of the cluster, or from other warps in one.
    """
    if _in_warps(tile.layout, indices.layout, dim) and _shuffles_pay(tile, indices, dim):
        return _by_shuffles(tile, indices, dim, threads)
    if threads.kernel.ctas > 1:
        raise LegoError(
            "elements of a tile that are taken at indices would go between threads through shared "
            "memory, of which each CTA of a cluster has its own",
            hint="gather from the tensor: x[indices]; or launch the kernel without a cluster",
        )
    return _through_shared(tile, indices, dim, threads)


def _in_warps(tile: DistributedLayout, indices: DistributedLayout, dim: int) -> bool:
    """Return whether the warp of each index has all the elements that it may mean."""
    is_divided = any(f.dim == dim for p in (Place.CTA, Place.WARP) for f in tile.places[p])
    return not is_divided and reduced(tile, dim) == reduced(indices, dim)


def _shuffles_pay(tile: Fragment, indices: Fragment, dim: int) -> bool:
    """Return whether shuffles take fewer clocks of the multiprocessor than shared memory.

    Every register that may be meant is shuffled; all but the first are compared and selected.
    """
    layout, taken = tile.layout, indices.layout.registers
    words = max(1, bytes_of(tile.element) // WORD_BYTES)
    candidates = prod(f.size for f in layout.places[Place.REGISTER] if f.dim == dim)
    selects = 2 * taken * (candidates - 1) * words
    shuffled = taken * candidates * words + -(-selects // WARP_INSTRUCTIONS)
    stored = (layout.registers + taken * _CONFLICTS) * words
    return layout.warps * shuffled < layout.warps * stored + BARRIER_CLOCKS


def _by_shuffles(tile: Fragment, indices: Fragment, dim: int, threads: Threads) -> Fragment:
    """Build the shuffles of all registers that an index may mean, and the choice among them."""
    layout = tile.layout
    lanes = layout.places[Place.LANE]
    moved = [(f, w) for f, w in zip(lanes, weights(lanes), strict=True) if f.dim == dim]
    free = set(range(LANE_BITS)) - {
        w.bit_length() - 1 + k for f, w in moved for k in range(f.size.bit_length() - 1)
    }
    own = Choice(0, tuple((1 << k, Digit(Place.LANE, 1 << k, 2), 0) for k in sorted(free)))
    base = threads.number(own)
    held = [f for f in layout.places[Place.REGISTER] if f.dim == dim]
    at = coordinates(indices.layout)
    words = [to_words(x) for x in tile.elements()]
    made: dict[Any, Any] = {}
    found = []
    for r, x in enumerate(indices.elements()):
        start = tuple(0 if d == dim else c[r] for d, c in enumerate(at))
        if (x, start) not in made:
            lane = base
            for f, weight in moved:
                digit = build.binary("muli", _digit(x, f), build.constant(build.i32(), weight))
                lane = build.binary("addi", lane, digit)

            def shuffled(offset: int, start: Any = start, lane: Any = lane) -> list[Any]:
                index = [[c + offset if d == dim else c] for d, c in enumerate(start)]
                (register,) = registers_at(layout, index)
                return [shuffle_word("idx", word, lane) for word in words[register]]

            made[x, start] = from_words(_chosen(x, held, 0, shuffled), tile.element)
        found.append(made[x, start])
    return of_elements(indices.layout, found)


def _chosen(
    x: Any, factors: Sequence[Factor], offset: int, shuffled: Callable[[int], list[Any]]
) -> list[Any]:
    """Build the words that an index means, of those at all values of its digits.

    Args:
        x: the index, an i32.
        factors: register factors of the dimension, whose digits are chosen.
        offset: along the dimension, by the digits that are chosen already.
        shuffled: builds the words at an offset.
    """
    if not factors:
        return shuffled(offset)
    first, *rest = factors
    options = [_chosen(x, rest, offset + k * first.stride, shuffled) for k in range(first.size)]
    digit, found = _digit(x, first), options[0]
    for k in range(1, first.size):
        is_k = build.compare("eq", digit, build.constant(build.i32(), k))
        found = [build.select(is_k, a, b) for a, b in zip(options[k], found, strict=True)]
    return found


def _digit(x: Any, factor: Factor) -> Any:
    """Build the digit of an index, an i32, that a factor counts."""
    high = build.binary("divui", x, build.constant(build.i32(), factor.stride))
    return build.binary("remui", high, build.constant(build.i32(), factor.size))


def _through_shared(tile: Fragment, indices: Fragment, dim: int, threads: Threads) -> Fragment:
    """Build a store of the tile in shared memory, and a load for each index."""
    if build.is_bool(tile.parts[0]):
        bytes_ = Fragment(tile.layout, tuple(build.bool_to_byte(p) for p in tile.parts))
        found = _through_shared(bytes_, indices, dim, threads)
        return Fragment(found.layout, tuple(build.byte_to_bool(p) for p in found.parts))
    memory = layout_attribute(OrderBy(Row(*tile.layout.shape)))
    buffer = _stored(tile, memory, threads)
    layout = indices.layout
    first, at = threads.coordinates(layout), coordinates(layout)
    attributes = dialect.access_attributes(memory)
    made: dict[Any, Any] = {}
    elements = []
    for r, x in enumerate(indices.elements()):
        start = tuple(c[r] for d, c in enumerate(at) if d != dim)
        if (x, start) not in made:
            index = [build.binary("addi", first[d], build.index(c[r])) for d, c in enumerate(at)]
            index[dim] = build.make("arith.index_cast", ir.IndexType.get(), x)
            made[x, start] = dialect.load(tile.element, buffer, index, attributes)
        elements.append(made[x, start])
    return of_elements(layout, elements)


def _stored(tile: Fragment, memory: Any, threads: Threads) -> Any:
    """Return the buffer that has a tile, in which an earlier take of this block has stored it.

    Otherwise build one. The steps of a binary search in a tile so store it once.
    """
    block = ir.InsertionPoint.current.block
    for found, where, buffer in threads.taken_from:
        if found is tile and where == block:
            return buffer
    buffer = allocate(memory, tile.element)
    store(once(tile), buffer, memory, (0,), threads)
    threads.taken_from.append((tile, block, buffer))
    return buffer
