"""How many registers the tiles of a kernel need, and an error where there are not as many.

Where threads wait, for one another or for memory, each holds the tiles that are still used. Between
pointwise operations, reads of shared memory and stores none is held as a whole: these take turns,
vector by vector, as LLVM and ptxas schedule them. What stands for others costs nothing: sources,
broadcasts, conversions that only rename, and operands of dots that come from shared memory, which
are read instruction by instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from lego_mlir.analysis.distributed import Road, road_of
from lego_mlir.hardware.limits import (
    MAX_CTA_THREADS,
    MAX_THREAD_REGISTERS,
    SM_REGISTERS,
    WARP_THREADS,
)
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.dots import is_warpgroup_dot, matrix_instructions
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.layout_rules import element_bits
from lego_mlir.mlir.tile_ir.operations import is_pointwise, is_source
from lego_mlir.mlir.tile_ir.types import (
    bytes_of,
    element_of,
    is_shared_tile,
    is_tile,
    layout_of,
    shape_of,
)

_REGISTER_BITS = 32

_OTHER_REGISTERS = 24
"""Registers of a thread that an error's proposals leave for addresses and intermediate values."""

_VIEWS = (tiles.BROADCAST, tiles.TRANSPOSE, tiles.RESHAPE, tiles.RESTRICT, tiles.SPLIT)
_TAKING_TURNS = (*_VIEWS, tiles.EXTRACT_SLICE, dialect.STORE, pipelines.RELEASE)
_LOOPS = ("scf.for", "scf.while")


@dataclass(frozen=True)
class Pressure:
    """The tiles that a thread holds at the fullest point of a kernel.

    Attributes:
        op: the operation after which they are held.
        tiles: the tiles.
        registers: 32-bit registers that they take.
    """

    op: Any
    tiles: tuple[Any, ...]
    registers: int


def check_registers(kernel: TileKernel) -> None:
    """Refuse a kernel whose tiles do not fit the registers of its threads.

    Raises:
        LegoError: names the largest tile, how large it may be, and how many warps would do.
    """
    pressure = _crowd(kernel)
    if pressure is None:
        return
    limit = thread_registers(kernel.warps)
    largest = max(pressure.tiles, key=registers_of)
    shapes = ", ".join(f"{shape_text(t)} ({registers_of(t)})" for t in pressure.tiles)
    enough = _enough_warps(kernel.warps, pressure)
    words = []
    smaller = _smaller(shape_of(largest), pressure.registers, limit - _OTHER_REGISTERS)
    if smaller is not None:
        words.append(f"a tile of {' x '.join(map(str, smaller))} instead of {shape_text(largest)}")
    if enough is not None:
        words.append(f"{enough} warps (warps={enough} in Python)")
    raise kernel.source.error(
        f"the tiles do not fit the registers: after '{pressure.op.name}' each thread holds "
        f"{pressure.registers} registers of tiles, {shapes}; with {kernel.warps} warps it has "
        f"{limit}",
        pressure.op.location,
        hint="what fits: " + ", or ".join(words) if words else "use smaller tiles",
    )


def fits_registers(kernel: TileKernel) -> bool:
    """Return whether the tiles of a kernel fit the registers of its threads."""
    return _crowd(kernel) is None


def _crowd(kernel: TileKernel) -> Pressure | None:
    """Return the fullest point of a kernel if its tiles do not fit there."""
    pressure = fullest(kernel)
    is_crowd = pressure is not None and pressure.registers > thread_registers(kernel.warps)
    return pressure if is_crowd else None


def fullest(kernel: TileKernel) -> Pressure | None:
    """Return the point of a kernel at which a thread holds most, `None` without tiles."""
    found = _Liveness(kernel)
    found.before(kernel.body, frozenset())
    return found.fullest


def thread_registers(warps: int) -> int:
    """Return how many registers a thread of a CTA of so many warps can have."""
    return min(MAX_THREAD_REGISTERS, SM_REGISTERS // (warps * WARP_THREADS))


def registers_of(tile: Any) -> int:
    """Return the 32-bit registers of a thread that hold a tile; booleans are packed."""
    layout = layout_of(tile)
    assert layout is not None, "tiles are placed"
    return -(-layout.registers * element_bits(tile) // _REGISTER_BITS)


def shape_text(tile: Any) -> str:
    """Return the sizes of a tile, for messages."""
    return " x ".join(map(str, shape_of(tile))) or "1"


class _Step(NamedTuple):
    """An operation of a block.

    Attributes:
        op: the operation.
        results: its results.
        used: the tiles whose registers its operands are in.
        blocks: the blocks inside of it, with their arguments.
        is_loop: whether these run several times.
        is_interleaved: whether it may take turns with those around it.
    """

    op: Any
    results: Sequence[Any]
    used: frozenset[int]
    blocks: Sequence[tuple[Any, Sequence[Any]]]
    is_loop: bool
    is_interleaved: bool


class _Liveness:
    """Which tiles a thread holds behind each operation, and where it holds most.

    Blocks are walked from their ends. Of the blocks of a branch only one runs, so that none holds
    what only another one uses; what a loop uses of its surroundings is held until its end. A tile
    is the number of its first use on this walk.

    Args:
        kernel: whose tiles are placed.
    """

    def __init__(self, kernel: TileKernel) -> None:
        self._kernel = kernel
        self._tiles: list[Any] = []
        self._registers: list[int] = []
        self._numbers: dict[Any, int] = {}
        self._held: dict[Any, frozenset[int]] = {}
        self._steps: dict[Any, list[_Step]] = {}
        self._most: tuple[int, Any, frozenset[int]] = 0, None, frozenset()

    @property
    def fullest(self) -> Pressure | None:
        """The point of those walked at which a thread holds most; `None` if it holds nothing."""
        registers, op, held = self._most
        if op is None:
            return None
        order = sorted(held, key=lambda n: (-self._registers[n], shape_text(self._tiles[n])))
        return Pressure(op, tuple(self._tiles[n] for n in order), registers)

    def before(self, block: Any, held: frozenset[int]) -> frozenset[int]:
        """Return the tiles that are held before a block, of those that are held behind it."""
        noted: frozenset[int] | None = None
        for op, results, used, blocks, is_loop, is_interleaved in self._steps_of(block):
            if held is not noted and not is_interleaved:
                self._note(op, held)
                noted = held
            held = self._without(held, results)
            for _ in range(1 + is_loop if blocks else 0):  # a loop uses again what is around it
                inner = (self._without(self.before(b, held), own) for b, own in blocks)
                held = held.union(*inner)
            held = held if used <= held else held | used
        return held

    def _steps_of(self, block: Any) -> Sequence[_Step]:
        """Return the operations of a block from its end; loops are walked more than once.

        Without those that hold nothing and take turns with others.
        """
        if block not in self._steps:
            self._steps[block] = steps = []
            for op in (o.operation for o in reversed(list(block.operations))):
                held = filter(is_tile, op.operands)
                used = frozenset[int]().union(*map(self._holders, held))
                results = list(filter(is_tile, op.results))
                inner = [(b, list(b.arguments)) for region in op.regions for b in region.blocks]
                is_interleaved = _is_interleaved(op)
                if used or results or inner or not is_interleaved:
                    is_loop = op.name in _LOOPS
                    steps.append(_Step(op, results, used, inner, is_loop, is_interleaved))
        return self._steps[block]

    def _without(self, held: frozenset[int], values: Sequence[Any]) -> frozenset[int]:
        """Return the tiles that are held, without some values."""
        ended = held.intersection(self._numbers.get(value, -1) for value in values)
        return held - ended if ended else held

    def _note(self, op: Any, held: frozenset[int]) -> None:
        registers = sum(map(self._registers.__getitem__, held))
        if registers > self._most[0]:
            self._most = registers, op, held

    def _holders(self, value: Any) -> frozenset[int]:
        """Return the tiles whose registers a tile is in: one, or none if it has no registers."""
        found = self._held.get(value)
        if found is None:
            found = self._held[value] = self._found(value)
        return found

    def _found(self, tile: Any) -> frozenset[int]:
        none = frozenset[int]()
        if isinstance(tile, ir.BlockArgument):
            return self._own(tile)
        op = tile.owner.operation
        if is_shared_tile(tile) or is_source(op):
            return none
        if self._is_alias(op):
            return none.union(*map(self._holders, filter(is_tile, op.operands)))
        if op.name == dialect.LOAD and _is_staged(tile):
            return none
        is_read = op.name == tiles.CONVERT and _is_operand(tile)
        if is_read and (is_shared_tile(op.operands[0]) or _road(op, self._kernel) is Road.SHARED):
            return none
        return self._own(tile)

    def _own(self, tile: Any) -> frozenset[int]:
        """Return a tile that is in registers of its own, with a new number."""
        number = self._numbers[tile] = len(self._tiles)
        self._tiles.append(tile)
        self._registers.append(registers_of(tile))
        return frozenset([number])

    def _is_alias(self, op: Any) -> bool:
        """Return whether an operation only gives registers other names."""
        is_moved = any(map(is_shared_tile, (*op.operands, *op.results)))
        if op.name == tiles.CONVERT and is_moved:
            return False
        is_renaming = op.name == tiles.CONVERT and _road(op, self._kernel) is Road.NONE
        return is_renaming or op.name in _VIEWS


def _is_interleaved(op: Any) -> bool:
    """Return whether an operation may take turns with those around it, vector by vector."""
    is_read = op.name == tiles.CONVERT and is_shared_tile(op.operands[0])
    return is_read or op.name in _TAKING_TURNS or is_pointwise(op) or is_source(op)


def _is_staged(tile: Any) -> bool:
    """Return whether a tile only goes into shared memory, as its parts do one after the other."""
    return all(
        use.owner.name == tiles.CONVERT and is_shared_tile(use.owner.results[0])
        for use in tile.uses
    )


def _is_operand(tile: Any) -> bool:
    """Return whether a tile, or a view of it, is used by mma.sync alone, as operand A or B."""
    return all(
        use.operand_number < 2 and not is_warpgroup_dot(use.owner)
        if use.owner.name == tiles.DOT
        else use.owner.name in _VIEWS and all(map(_is_operand, use.owner.results))
        for use in tile.uses
    )


def _road(convert: Any, kernel: TileKernel) -> Road:
    """Return the road of a conversion."""
    source, result = convert.operands[0], convert.results[0]
    before, after = layout_of(source), layout_of(result)
    assert before is not None, "tiles are placed"
    assert after is not None, "tiles are placed"
    size = bytes_of(element_of(result))
    return road_of(before, after, size, matrix_instructions(kernel.target))


def _enough_warps(warps: int, pressure: Pressure) -> int | None:
    """Return the fewest warps, of warps times a power of two, that would do; `None` if none do."""
    bits = sum(_own_bits(t) for t in pressure.tiles)
    while (warps := 2 * warps) * WARP_THREADS <= MAX_CTA_THREADS:
        registers = thread_registers(warps) - _OTHER_REGISTERS
        if bits <= warps * WARP_THREADS * _REGISTER_BITS * registers:
            return warps
    return None


def _own_bits(tile: Any) -> int:
    """Return the bits of a tile's elements, each counted once."""
    return prod(shape_of(tile)) * element_bits(tile)


def _smaller(shape: tuple[int, ...], registers: int, limit: int) -> list[int] | None:
    """Return a shape that makes registers so few; `None` if there is none.

    Its largest dimension is halved as often as it takes. The other tiles of the program are assumed
    to become as much smaller.
    """
    sizes = list(shape)
    while registers > limit:
        dim = max(range(len(sizes)), key=lambda d: sizes[d])
        if sizes[dim] % 2 or registers == 1:
            return None
        sizes[dim] //= 2
        registers = -(-registers // 2)
    return sizes
