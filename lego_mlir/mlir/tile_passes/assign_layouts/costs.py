"""What a choice of layouts costs, in clocks of a multiprocessor.

The figures only compare alternatives: a conversion with an access of memory that is not coalesced,
a reduction across warps with one inside of them, work that several threads repeat with work that
they share. They are throughputs, so that a clock means the same in all of them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from lego_mlir.algebra import Layout
from lego_mlir.analysis.distributed import (
    REPLICA,
    DistributedLayout,
    Place,
    estimate_conversion,
    plan_reduction,
    plan_scan,
    plan_sort,
)
from lego_mlir.analysis.distributed.conversions.clusters import Kind, of_cluster
from lego_mlir.analysis.distributed.conversions.exchange import WORD_BYTES
from lego_mlir.analysis.distributed.conversions.plan import BARRIER_CLOCKS
from lego_mlir.analysis.distributed.conversions.shared_access import estimate_store
from lego_mlir.analysis.distributed.factors import digits
from lego_mlir.analysis.distributed.reduction import Butterfly, Gather, Tree
from lego_mlir.analysis.distributed.wgmma_grids import warpgroup_grid
from lego_mlir.analysis.memory_costs.sectors import sectors
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import BANK_LINE_BYTES, WARP_THREADS, WGMMA_ROWS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.operations import is_pointwise
from lego_mlir.mlir.tile_ir.types import Placement, bytes_of, element_of, shape_of
from lego_mlir.mlir.tile_passes.assign_layouts.graph import EXPENSIVE, Node, Use
from lego_mlir.mlir.tile_passes.assign_layouts.keys import DotKey, Key
from lego_mlir.mlir.tile_passes.assign_layouts.memory_anchors import Accesses, TileAccess, middle

IMPOSSIBLE = 1 << 40
"""The cost of what cannot be done."""

_WARPS_A_CLOCK = 4
"""Warps of which a multiprocessor issues an instruction in a clock."""

_LINE_CLOCKS = 2
"""Clocks that a request takes for each line of 128 bytes that it touches, besides its sectors. With
these a whole line takes 4 clocks: about what a multiprocessor gets of the L2 cache's bandwidth."""

_SECTORS_A_CLOCK = 2
"""Sectors of a line that a multiprocessor gets in a clock."""

_SPECIAL = 8
"""How many additions a function, or a division, takes."""

_MMA_A_CLOCK = 1024
"""Multiplications and additions of 16 bits that tensor cores do in a clock."""

_WGMMA_BYTES_A_CLOCK = 4096
"""The same of wgmma, times the bytes of an element: 8-bit elements are twice as fast."""

_LOAD_CLOCKS = 256
"""Clocks from a load to the use of its result, if the L2 cache has it."""

_CONVERTED = 1
"""The least that a conversion costs, so that none is made for nothing."""


class Costs:
    """What the nodes of a kernel cost.

    Args:
        accesses: reads its loads and stores.
    """

    def __init__(self, accesses: Accesses) -> None:
        self._accesses = accesses

    def of_node(self, node: Node, key: Key) -> int:
        """Return what a node itself costs with a key."""
        return 0 if node.tie else node.weight * self._clocks(node.op, key)

    def _clocks(self, op: Any, key: Key) -> int:
        if isinstance(key, DotKey):
            return warpgroup_clocks(key, bytes_of(element_of(op.operands[0])))
        if isinstance(key, Layout):
            return 0  # a view of shared memory
        match op.name:
            case dialect.LOAD | dialect.STORE:
                return memory_clocks(self._accesses.of(op), key)
            case tiles.REDUCE | tiles.REDUCE_WITH:
                sizes = [bytes_of(element_of(v)) for v in op.operands]
                return sum(reduction_clocks(key, tiles.dim_of(op), n) for n in sizes)
            case tiles.SCAN | tiles.SCAN_WITH:
                sizes = [bytes_of(element_of(v)) for v in op.operands]
                return sum(scan_clocks(key, tiles.dim_of(op), n) for n in sizes)
            case tiles.SORT_WITH:
                sizes = [bytes_of(element_of(v)) for v in op.operands]
                return sort_clocks(key, tiles.dim_of(op), tuple(sizes))
            case tiles.DOT:
                depth = shape_of(op.operands[0])[1]
                return key.registers * key.warps * WARP_THREADS * depth // _MMA_A_CLOCK
            case tiles.TAKE | tiles.GATHER | tiles.SCATTER:
                return key.registers * key.warps
            case _ if is_pointwise(op):
                weight = _SPECIAL if op.name.startswith(EXPENSIVE) else 1
                return weight * key.registers * key.warps // _WARPS_A_CLOCK
        return 0


@lru_cache(maxsize=1 << 12)
def warpgroup_clocks(key: DotKey, size: int) -> int:
    """Return what a dot by wgmma of elements of so many bytes costs.

    Each instruction reads operand B, and operand A if it is in shared memory.
    """
    rows, columns = key.accumulator.shape
    depth = int(key.b.dims[0])
    grid = warpgroup_grid(key.accumulator)
    assert grid is not None, "the key of a dot has an accumulator"
    of_a = WGMMA_ROWS if isinstance(key.a, Layout) else 0
    instructions = rows // WGMMA_ROWS * grid[1]
    read = instructions * (columns // grid[1] + of_a) * depth * size // BANK_LINE_BYTES
    return max(read, rows * columns * depth * size // _WGMMA_BYTES_A_CLOCK)


@lru_cache(maxsize=1 << 14)
def conversion_clocks(source: Placement, target: Placement, size: int) -> int:
    """Return what a conversion of elements of so many bytes costs; 0 between equal layouts."""
    if source == target:
        return 0
    match source, target:
        case DistributedLayout(), DistributedLayout():
            if source.ctas > 1 and of_cluster(source, target).kind is Kind.EXCHANGE:
                return IMPOSSIBLE
            return estimate_conversion(source, target, size) + _CONVERTED
        case DistributedLayout(), Layout():
            return estimate_store(source, target, size) + BARRIER_CLOCKS
        case Layout(), DistributedLayout():
            return target.registers * target.warps * WARP_THREADS * size // BANK_LINE_BYTES
    return IMPOSSIBLE


def copy_clocks(use: Use) -> int:
    """Return what it costs to bring what is loaded to shared memory, besides the load.

    Only a wait: TMA and cp.async copy it there, and no register holds it on the way. A schedule's
    pipelines rely on operands that come from memory being there. Both operands of a dot are waited
    for at once.
    """
    is_first = use.op.name == tiles.DOT and use.number == 0
    return _CONVERTED if is_first and _is_loaded(use.op.operands[1]) else BARRIER_CLOCKS


def wait_clocks() -> int:
    """Return what operand A of a wgmma costs that is loaded to registers, besides the load.

    The dot waits for it: a loop loads it no earlier than it multiplies it.
    """
    return _LOAD_CLOCKS


def _is_loaded(tile: Any) -> bool:
    return not isinstance(tile, ir.BlockArgument) and bool(tile.owner.name == dialect.LOAD)


@lru_cache(maxsize=1 << 12)
def reduction_clocks(layout: DistributedLayout, dim: int, size: int) -> int:
    """Return what a reduction costs."""
    try:
        plan = plan_reduction(layout, dim, size)
    except LegoError:
        return IMPOSSIBLE
    clocks = 0
    for step in plan.steps:
        match step:
            case Tree():
                clocks += step.operations * layout.warps // _WARPS_A_CLOCK
            case Butterfly():
                clocks += step.shuffles * layout.warps
            case Gather():
                clocks += step.conversion.cost.clocks
    return clocks


@lru_cache(maxsize=1 << 12)
def scan_clocks(layout: DistributedLayout, dim: int, size: int) -> int:
    """Return what a scan costs."""
    try:
        plan = plan_scan(layout, dim, size)
    except LegoError:
        return IMPOSSIBLE
    clocks = 0
    for step in plan.steps:
        clocks += (len(step.before) + len(step.groups)) * layout.warps // _WARPS_A_CLOCK
        if step.gather is not None:
            clocks += step.gather.cost.clocks
        elif step.digit.place is Place.LANE:
            clocks += len(step.groups) * layout.warps
    return clocks


@lru_cache(maxsize=1 << 12)
def sort_clocks(layout: DistributedLayout, dim: int, sizes: tuple[int, ...]) -> int:
    """Return what a sort of tiles of elements of so many bytes costs."""
    try:
        plan = plan_sort(layout, dim)
    except LegoError:
        return IMPOSSIBLE
    held = layout.registers * layout.warps
    words = sum(-(-n // WORD_BYTES) for n in sizes)
    clocks = 0
    for step in plan.rounds:
        clocks += 2 * (len(sizes) + 1) * held // _WARPS_A_CLOCK
        if step.coordinate:
            clocks += 2 * words * held + BARRIER_CLOCKS
        elif step.lanes:
            clocks += words * held
    return clocks


@lru_cache(maxsize=1 << 12)
def memory_clocks(access: TileAccess, layout: DistributedLayout) -> int:
    """Return what a load or store of a tile in a distributed layout costs.

    The requests of warp 0 stand for those of all, which access other places in the same way.
    """
    if not access.shape:
        return 1
    fastest = access.order[-1]
    held = layout.contiguous(fastest)
    width = next(w for w in (access.vector >> k for k in range(8)) if held % w == 0)
    coordinates, replica = _held_by_a_warp(layout)
    firsts = coordinates[fastest] % width == 0
    # Registers, slowest first, by lanes: all lanes hold vectors in the same registers.
    taken = np.flatnonzero(firsts.all(axis=0))
    at = [c[:, taken].T for c in coordinates]
    lanes = replica[:, taken].T == 0 if access.is_store else np.ones_like(at[0], dtype=bool)
    offsets, inside = _offsets(access.layout, access.dims, at, width)
    found = sectors(offsets * access.element_bytes, width * access.element_bytes, lanes & inside)
    clocks = (found.lines * _LINE_CLOCKS + -(-found.touched // _SECTORS_A_CLOCK)).sum()
    copies = _copies(layout, Place.WARP) if access.is_store else 1
    return int(clocks) * (layout.warps // copies) + len(taken) * layout.warps // _WARPS_A_CLOCK


def _held_by_a_warp(layout: DistributedLayout) -> tuple[list[Any], Any]:
    """Return the coordinates and copies in the registers of warp 0: arrays (32, registers)."""
    lane, register = np.mgrid[:WARP_THREADS, : layout.registers]
    element = layout.apply(0, 0, lane, register)
    copy = np.zeros_like(lane)
    factors = layout.places[Place.LANE]
    for f, digit in zip(factors, digits(factors, lane), strict=True):
        if f.dim == REPLICA:
            copy = copy + digit
    return [np.broadcast_to(c, lane.shape) for c in element.coordinates], copy


def _copies(layout: DistributedLayout, place: Place) -> int:
    """Return how many copies a place's factors count."""
    count = 1
    for f in layout.places[place]:
        count *= f.size if f.dim == REPLICA else 1
    return count


def _offsets(layout: Layout, dims: tuple[int, ...], at: list[Any], width: int) -> tuple[Any, Any]:
    """Return the offsets of a tile's vectors and which of them exist: of the tile at the origin.

    Of a window it is a tile in the middle, which the boundary does not concern.
    """
    first, layout = middle(layout), layout.clamped()
    index: list[Any] = [np.full_like(at[0], x) for x in first]
    inside = np.ones_like(at[0], dtype=bool)
    for dim, coordinate in zip(dims, at, strict=True):
        size, extent = int(layout.dims[dim]), int(coordinate.max(initial=0)) + 1
        moved = coordinate + first[dim] // extent * extent
        inside &= moved < size
        index[dim] = np.minimum(moved, size - 1)
    inside &= np.asarray(layout.mask(*index)) != 0
    offsets = np.where(inside, layout.apply(*index), 0)
    return offsets // width * width, inside  # the last vector may extend past the end
