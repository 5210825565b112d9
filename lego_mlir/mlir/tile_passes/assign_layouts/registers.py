"""How many registers the tiles of a kernel need, and an error where there are not as many.

Between two operations a thread holds the tiles that are still used. What stands for others costs
nothing: sources, broadcasts, conversions that only rename, and operands of dots that come from
shared memory, which are read instruction by instruction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.analysis.distributed import Road, road_of
from lego_mlir.hardware.limits import (
    MAX_CTA_THREADS,
    MAX_THREAD_REGISTERS,
    SM_REGISTERS,
    WARP_THREADS,
)
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.dots import is_warpgroup_dot, matrix_instructions
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.layout_rules import element_bits
from lego_mlir.mlir.tile_ir.operations import is_source
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


class _Liveness:
    """Which tiles a thread holds behind each operation, and where it holds most.

    Blocks are walked from their ends. Of the blocks of a branch only one runs, so that none holds
    what only another one uses; what a loop uses of its surroundings is held until its end.

    Args:
        kernel: whose tiles are placed.

    Attributes:
        fullest: the point of those walked at which a thread holds most.
    """

    def __init__(self, kernel: TileKernel) -> None:
        self.fullest: Pressure | None = None
        self._kernel = kernel
        self._held: dict[Any, frozenset[Any]] = {}
        self._registers: dict[Any, int] = {}

    def before(self, block: Any, held: frozenset[Any]) -> frozenset[Any]:
        """Return the tiles that are held before a block, of those that are held behind it."""
        noted: frozenset[Any] | None = None
        for op in (o.operation for o in reversed(list(block.operations))):
            if held is not noted:  # most operations have no tiles
                self._note(op, held)
                noted = held
            held = held.difference(op.results) if any(map(held.__contains__, op.results)) else held
            blocks = [inner for region in op.regions for inner in region.blocks]
            if op.name in _LOOPS:  # what they use of their surroundings is used again
                held = self._before_any(blocks, held)
            held = self._before_any(blocks, held) if blocks else held
            for operand in op.operands:
                holders = self._holders(operand)
                held = held if holders <= held else held | holders
        return held

    def _before_any(self, blocks: Iterable[Any], behind: frozenset[Any]) -> frozenset[Any]:
        """Return the tiles that are held before blocks of which any may run."""
        return behind.union(*(self.before(b, behind) - set(b.arguments) for b in blocks))

    def _note(self, op: Any, held: frozenset[Any]) -> None:
        for tile in held - self._registers.keys():
            self._registers[tile] = registers_of(tile)
        registers = sum(map(self._registers.__getitem__, held))
        if registers > (self.fullest.registers if self.fullest else 0):
            largest = sorted(held, key=lambda t: (-self._registers[t], shape_text(t)))
            self.fullest = Pressure(op, tuple(largest), registers)

    def _holders(self, value: Any) -> frozenset[Any]:
        """Return the tiles whose registers a value is in: one, or none if it has no registers."""
        if value not in self._held:
            self._held[value] = self._found_holders(value) if is_tile(value) else frozenset()
        return self._held[value]

    def _found_holders(self, tile: Any) -> frozenset[Any]:
        own, none = frozenset([tile]), frozenset[Any]()
        if isinstance(tile, ir.BlockArgument):
            return own
        op = tile.owner.operation
        if is_shared_tile(tile) or is_source(op):
            return none
        if self._is_alias(op):
            return none.union(*map(self._holders, op.operands))
        if op.name == dialect.LOAD and _is_staged(tile):
            return none
        is_read = op.name == tiles.CONVERT and _is_operand(tile)
        if is_read and is_shared_tile(op.operands[0]):
            return none
        return none if is_read and _road(op, self._kernel) is Road.SHARED else own

    def _is_alias(self, op: Any) -> bool:
        """Return whether an operation only gives registers other names."""
        is_moved = any(map(is_shared_tile, (*op.operands, *op.results)))
        if op.name == tiles.CONVERT and is_moved:
            return False
        is_renaming = op.name == tiles.CONVERT and _road(op, self._kernel) is Road.NONE
        return is_renaming or op.name in _VIEWS


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
