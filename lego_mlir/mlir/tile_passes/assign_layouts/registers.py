"""How many registers the tiles of a kernel need, and an error where there are not as many.

Between two operations a thread holds the tiles that are still used. What stands for others costs
nothing: sources, broadcasts, conversions that only rename, and operands of dots that come from
shared memory, which are read instruction by instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.analysis.distributed import Road, plan_conversion
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
from lego_mlir.mlir.tile_passes.assign_layouts.graph import block_of

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
    found = _Lives(kernel)
    changes: dict[int, int] = {}
    for tile, (start, last) in found.lives.items():
        count = registers_of(tile)
        changes[start] = changes.get(start, 0) + count
        changes[last] = changes.get(last, 0) - count
    now, most, at = 0, 0, None
    for position in sorted(changes):
        now += changes[position]
        if now > most:
            most, at = now, position
    if at is None:
        return None
    held = tuple(t for t, (start, last) in found.lives.items() if start <= at < last)
    return Pressure(found.operations[at], held, most)


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


class _Lives:
    """Where each tile of a kernel is defined, and where it is used last.

    Operations are counted in their order; one with regions has the last number of its own, too.
    """

    def __init__(self, kernel: TileKernel) -> None:
        self.operations: list[Any] = []
        self.lives: dict[Any, tuple[int, int]] = {}
        self._kernel = kernel
        self._start: dict[Any, int] = {}
        self._end: dict[Any, int] = {}
        self._number(kernel.body)
        for tile, at in self._defined(kernel.body):
            if self._is_held(tile):
                self.lives[tile] = at, max(at, self._last_use(tile))

    def _number(self, block: Any) -> None:
        for op in (o.operation for o in block.operations):
            self._start[op] = len(self.operations)
            self.operations.append(op)
            for region in op.regions:
                for inner in region.blocks:
                    self._number(inner)
            self._end[op] = len(self.operations) - 1

    def _defined(self, block: Any) -> Iterator[tuple[Any, int]]:
        """Yield the tiles that a block defines, with where it does."""
        for op in (o.operation for o in block.operations):
            for region in op.regions:
                for inner in region.blocks:
                    yield from ((a, self._start[op]) for a in inner.arguments if is_tile(a))
                    yield from self._defined(inner)
            yield from ((v, self._end[op]) for v in op.results if is_tile(v))

    def _is_held(self, tile: Any) -> bool:
        """Return whether a tile has registers of its own."""
        if isinstance(tile, ir.BlockArgument):
            return True
        op = tile.owner.operation
        if is_shared_tile(tile) or is_source(op) or self._is_alias(op):
            return False
        if op.name == dialect.LOAD and _is_staged(tile):
            return False
        is_read = op.name == tiles.CONVERT and _is_operand(tile)
        if is_read and is_shared_tile(op.operands[0]):
            return False
        return not (is_read and _road(op, self._kernel) is Road.SHARED)

    def _is_alias(self, op: Any) -> bool:
        """Return whether an operation only gives registers other names."""
        is_moved = any(map(is_shared_tile, (*op.operands, *op.results)))
        if op.name == tiles.CONVERT and is_moved:
            return False
        is_renaming = op.name == tiles.CONVERT and _road(op, self._kernel) is Road.NONE
        return is_renaming or op.name in _VIEWS

    def _last_use(self, tile: Any) -> int:
        """Return where a tile, or what only names its registers otherwise, is used last."""
        home, last = block_of(tile), 0
        for use in tile.uses:
            user = use.owner.operation
            at, parent = self._start[user], user
            while parent.block != home:
                parent = parent.block.owner.operation
                at = self._end[parent] if parent.name in _LOOPS else at
            last = max(last, at)
            if self._is_alias(user):
                last = max(last, *map(self._last_use, user.results))
        return last


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
    return plan_conversion(before, after, size, matrix_instructions(kernel.target)).road


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
