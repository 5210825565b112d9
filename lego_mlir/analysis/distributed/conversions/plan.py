"""Conversions: how a tile gets from one distributed layout to another, and what that costs.

    none        the same values in the same threads: other names for registers
    registers   elements change their register, or a thread chooses among its registers
    shuffles    elements change their lane
    shared      elements change their warp, or shuffles cost more: store, barrier, load
    cluster     elements change their CTA. Where all CTAs of a group get all elements, each sends
                its own into the shared memory of all of them; else the loads read other CTAs'

The road is decided on the tables of factors; nothing is enumerated. What an interpreter or a pass
needs to run a conversion is in the plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from math import prod

from lego_mlir.analysis.distributed.conversions.atoms import (
    common_atoms,
    same_elements_in_threads,
    stays,
)
from lego_mlir.analysis.distributed.conversions.clusters import Kind, OfCluster, of_cluster
from lego_mlir.analysis.distributed.conversions.exchange import WORD_BYTES, Exchange, plan_exchange
from lego_mlir.analysis.distributed.conversions.matrices import MatrixInstructions
from lego_mlir.analysis.distributed.conversions.shared_memory import SharedExchange, plan_shared
from lego_mlir.analysis.distributed.factors import REPLICA, Place, size_of
from lego_mlir.analysis.distributed.layout import DistributedLayout, same_threads
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import BANK_LINE_BYTES, MAX_SHARED_BYTES

WARP_INSTRUCTIONS = 2
"""Selects and permutes of a warp that a multiprocessor issues in a clock, for 64 lanes (CUDA C++
Programming Guide, "Arithmetic Instructions": compare, minimum, maximum and logical operations)."""

BARRIER_CLOCKS = 32
"""Clocks that a store, a barrier and a load wait for each other at least: about the latency of
shared memory. It only decides between roads of about the same throughput."""


class Road(StrEnum):
    """What a conversion uses, cheapest first."""

    NONE = "none"
    REGISTERS = "registers"
    SHUFFLES = "shuffles"
    SHARED = "shared"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a conversion costs a CTA.

    Attributes:
        instructions: of each warp.
        shuffles: of each warp, among these instructions.
        wavefronts: of shared memory, of all warps.
        shared_bytes: of shared memory.
        barriers: of the CTA, or of the cluster.
        clocks: an estimate of the multiprocessor's throughput, for choices between roads.
    """

    instructions: int = 0
    shuffles: int = 0
    wavefronts: int = 0
    shared_bytes: int = 0
    barriers: int = 0
    clocks: int = 0


@dataclass(frozen=True)
class Conversion:
    """The plan of a conversion; one of `registers`, `exchange`, `shared` or `pieces` says how.

    Attributes:
        source: where elements are.
        target: where they go.
        element_bytes: of an element.
        road: what is used.
        cost: what it costs.
        registers: for each register of the target the register of the source, in all threads.
        exchange: choices of registers, and shuffles.
        shared: accesses of shared memory.
        pieces: in a cluster, what CTAs gather from one another; where each converts a piece of its
            own, that piece, of which the other attributes are.
    """

    source: DistributedLayout
    target: DistributedLayout
    element_bytes: int
    road: Road
    cost: Cost
    registers: tuple[int, ...] | None = None
    exchange: Exchange | None = None
    shared: SharedExchange | None = None
    pieces: OfCluster | None = None

    def explain(self) -> str:
        """Return one line: the road, why, and what it costs."""
        c = self.cost
        match self.road:
            case Road.NONE:
                return "none: registers are renamed"
            case Road.REGISTERS:
                return f"registers: {c.instructions} instructions, no element leaves its thread"
            case Road.SHUFFLES:
                assert self.exchange is not None
                rounds = sum(not r.is_local for r in self.exchange.rounds)
                return (
                    f"shuffles: {c.shuffles} of {c.instructions} instructions, in {rounds} rounds, "
                    f"{self.exchange.packed} elements a word"
                )
        if self.pieces is not None and self.shared is None:
            return (
                f"cluster: {c.instructions} sends and loads, one round trip between "
                f"{self.pieces.source.ctas} CTAs, {c.shared_bytes} bytes"
            )
        assert self.shared is not None
        store, load = self.shared.store, self.shared.load
        excess = store.wavefronts - store.ideal + load.wavefronts - load.ideal
        why = "between CTAs" if self.road is Road.CLUSTER else "between warps or lanes"
        return (
            f"{self.road}: {why}, {store.describe('store')}, {load.describe('load')}, "
            f"{c.wavefronts} wavefronts of which "
            f"{excess} for bank conflicts, {c.shared_bytes} bytes"
        )


@lru_cache(maxsize=1 << 10)
def plan_conversion(
    source: DistributedLayout,
    target: DistributedLayout,
    element_bytes: int,
    instructions: MatrixInstructions = MatrixInstructions(),  # noqa: B008 (a named tuple)
) -> Conversion:
    """Return how a tile in one layout becomes a tile in another.

    Plans are kept, for several passes ask for the same one.

    Args:
        source: where elements are.
        target: where they go; all of its copies are filled.
        element_bytes: 1, 2, 4 or 8.
        instructions: which matrix instructions there are.

    Raises:
        LegoError: the layouts are of different tiles or threads, there is no such element, or the
            tile is larger than shared memory.
    """
    if source.shape != target.shape:
        raise LegoError(
            f"a tile {list(source.shape)} is not converted to a layout of {list(target.shape)}"
        )
    if not same_threads(source, target):
        raise LegoError(
            f"a tile of {source.warps} warps in {source.ctas} CTAs is not converted to a layout of "
            f"{target.warps} warps in {target.ctas} CTAs",
            hint="threads without elements of their own hold copies: a factor of replicas",
        )
    if element_bytes not in (1, 2, 4, 8):
        raise LegoError(f"an element has 1, 2, 4 or 8 bytes, not {element_bytes}")
    if same_elements_in_threads(source, target):
        return _renamed(source, target, element_bytes)
    if source.ctas > 1:
        own = of_cluster(source, target)
        if own.kind is Kind.GATHER:
            return _gathered(source, target, element_bytes, own)
        if own.kind is Kind.WITHIN:
            found = plan_conversion(own.source, own.target, element_bytes, instructions)
            return replace(found, source=source, target=target, pieces=own)
    atoms = common_atoms(source, target)
    exchanged = None
    if atoms is not None and stays(source, target, (Place.CTA, Place.WARP)):
        exchange = plan_exchange(source, target, atoms, element_bytes)
        if exchange is not None:
            exchanged = _exchanged(source, target, element_bytes, exchange)
            if exchange.is_local:
                return exchanged
    is_cluster = not stays(source, target, (Place.CTA,))
    shared = plan_shared(source, target, atoms, element_bytes, instructions)
    stored = _through_memory(source, target, element_bytes, shared, is_cluster)
    too_large = shared.shared_bytes > MAX_SHARED_BYTES
    if exchanged is not None and (too_large or exchanged.cost.clocks <= stored.cost.clocks):
        return exchanged
    if too_large:
        raise LegoError(
            f"a conversion of {shared.shared_bytes} bytes does not fit the {MAX_SHARED_BYTES} "
            "bytes of shared memory",
            hint="convert smaller tiles",
        )
    return stored


def road_of(
    source: DistributedLayout,
    target: DistributedLayout,
    element_bytes: int,
    instructions: MatrixInstructions = MatrixInstructions(),  # noqa: B008 (a named tuple)
) -> Road:
    """Return the road of a conversion; its accesses are chosen only if the road depends on them.

    Arguments and errors are those of `plan_conversion`, but tiles may be too large for it.
    """
    is_of_threads = source.ctas == 1 and same_threads(source, target)
    if is_of_threads and not stays(source, target, (Place.WARP,)):
        return Road.SHARED
    return plan_conversion(source, target, element_bytes, instructions).road


def estimate_conversion(
    source: DistributedLayout, target: DistributedLayout, element_bytes: int
) -> int:
    """Return about how many clocks a conversion takes, without choosing its accesses.

    It serves to compare many layouts. Through shared memory it is the least that a conversion can
    take: without bank conflicts, of which a swizzle leaves few.

    Args:
        source: where elements are.
        target: where they go, of the same shape and threads.
        element_bytes: 1, 2, 4 or 8.
    """
    if same_elements_in_threads(source, target):
        return _renamed(source, target, element_bytes).cost.clocks
    if source.ctas > 1:
        own = of_cluster(source, target)
        if own.kind is Kind.GATHER:
            return _gathered(source, target, element_bytes, own).cost.clocks
        if own.kind is Kind.WITHIN:
            return estimate_conversion(own.source, own.target, element_bytes)
    # Each element is stored once. Lanes with copies of an element read it together.
    lanes = size_of(f for f in target.places[Place.LANE] if f.dim != REPLICA)
    moved = prod(source.shape) // source.ctas + target.registers * target.warps * lanes
    stored = moved * element_bytes // BANK_LINE_BYTES + BARRIER_CLOCKS
    atoms = common_atoms(source, target)
    if atoms is None or not stays(source, target, (Place.CTA, Place.WARP)):
        return stored
    exchange = plan_exchange(source, target, atoms, element_bytes)
    if exchange is None:
        return stored
    exchanged = _exchanged(source, target, element_bytes, exchange).cost.clocks
    return exchanged if exchange.is_local else min(exchanged, stored)


def _renamed(
    source: DistributedLayout, target: DistributedLayout, element_bytes: int
) -> Conversion:
    """Return the conversion in which all threads take the same registers."""
    registers = tuple(
        source.inverse(target.apply(0, 0, 0, r).coordinates).register
        for r in range(target.registers)
    )
    # Elements that share a word are taken out of it only if they get other neighbours.
    shared = max(1, WORD_BYTES // element_bytes)
    words = [registers[k : k + shared] for k in range(0, len(registers), shared)]
    moved = sum(
        1 for word in words if word[0] % shared or any(b != a + 1 for a, b in pairwise(word))
    )
    road = Road.REGISTERS if moved else Road.NONE
    cost = Cost(instructions=moved, clocks=-(-moved * source.warps // WARP_INSTRUCTIONS))
    return Conversion(source, target, element_bytes, road, cost, registers=registers)


def _exchanged(
    source: DistributedLayout, target: DistributedLayout, element_bytes: int, exchange: Exchange
) -> Conversion:
    """Return the conversion inside of warps, with its cost."""
    others = exchange.selects + exchange.permutes
    # A shuffle moves a word for each of 32 lanes a clock (Programming Guide, ibid.).
    clocks = source.warps * exchange.shuffles + -(-source.warps * others // WARP_INSTRUCTIONS)
    cost = Cost(exchange.shuffles + others, exchange.shuffles, clocks=clocks)
    road = Road.REGISTERS if exchange.is_local else Road.SHUFFLES
    return Conversion(source, target, element_bytes, road, cost, exchange=exchange)


def _gathered(
    source: DistributedLayout, target: DistributedLayout, element_bytes: int, own: OfCluster
) -> Conversion:
    """Return the conversion in which CTAs send their parts of a piece to one another."""
    size = prod(own.target.shape) * max(element_bytes, WORD_BYTES)
    copies = own.source.replicas
    sends = own.source.registers * -(-own.source.ctas // copies)
    loads = own.target.registers
    moved = size + loads * own.target.warps * max(element_bytes, WORD_BYTES)
    cost = Cost(
        instructions=sends + loads,
        wavefronts=-(-moved // BANK_LINE_BYTES),
        shared_bytes=size,
        clocks=-(-moved // BANK_LINE_BYTES) + BARRIER_CLOCKS,
    )
    return Conversion(source, target, element_bytes, Road.CLUSTER, cost, pieces=own)


def _through_memory(
    source: DistributedLayout,
    target: DistributedLayout,
    element_bytes: int,
    shared: SharedExchange,
    is_cluster: bool,
) -> Conversion:
    """Return the conversion through shared memory, with its cost."""
    count = shared.store.wavefronts + shared.load.wavefronts
    cost = Cost(
        instructions=len(shared.store.vectors) + len(shared.load.vectors),
        wavefronts=count,
        shared_bytes=shared.shared_bytes,
        barriers=1,
        clocks=count + BARRIER_CLOCKS,  # a wavefront takes a clock
    )
    road = Road.CLUSTER if is_cluster else Road.SHARED
    return Conversion(source, target, element_bytes, road, cost, shared=shared)
