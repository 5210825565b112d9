"""Lower lego.copy_parts to asynchronous copies by threads.

    "lego.copy_parts"(%a, %i, %j, %stages, %stage, %k, %l) {layout = #A, target = #S, ...}

becomes, in chunks of 16, 8 or 4 bytes that are neighbours and aligned in both memories,

    nvgpu.device_async_copy %a[%from], %stages[%to], 8 {bypassL1}
    nvgpu.device_async_copy %a[%from + 4096], %stages[%to + 1024], 8, %existing

%existing counts the elements of a chunk that exist; the rest of the chunk becomes 0.

Source: PTX ISA 9.7.9.25.3.1 (cp.async: sizes, src-size, .cg bypasses L1 for 16 bytes).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, construct
from lego_mlir.mlir.bindings import ir, nvgpu
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.emit.operations import constant, make, plus
from lego_mlir.mlir.lowering.parts_access.conditions import ALWAYS, Condition, places_of
from lego_mlir.mlir.lowering.parts_access.offsets import Place
from lego_mlir.mlir.lowering.parts_access.plan import PartsMemory, bytes_of

CHUNK_BYTES = (16, 8, 4)
"""The sizes of an asynchronous copy, the widest first."""

_BYPASSING = 16
"""The size of those that bypass L1."""


_BETWEEN = ("arith.", "affine.")
"""Prefixes of the names of what may stand between copies that alternate."""


def alternating(named: Iterable[tuple[str, Any]]) -> set[Any]:
    """Return the lego.copy_parts right behind another one, of operations in order with names."""
    found: set[Any] = set()
    last = None
    for name, op in named:
        if name == tiles.COPY_PARTS:
            if last is not None and last.block == op.block:
                found.add(op)
            last = op
        elif not name.startswith(_BETWEEN):
            last = None
    return found


def by_rows(copies: Sequence[Any], rows: int) -> list[list[Any]]:
    """Return the copies of a tile of which a thread has so many rows, row by row."""
    each = len(copies) // rows
    return [list(copies[k * each : (k + 1) * each]) for k in range(rows)]


def alternate(before: Sequence[Sequence[Any]], behind: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Let copies of tiles alternate row by row, so that what is used together comes together.

    Args:
        before: the copies of tiles that alternate already, row by row.
        behind: those of another tile, behind them.

    Returns:
        All of them, row by row; those behind alone where the tiles have not as many rows, or one.
    """
    if len(before) != len(behind) or len(behind) == 1:
        return [list(row) for row in behind]
    for own, row in zip(before, behind, strict=True):
        for copy in own:
            copy.move_before(row[0])
    return [[*own, *row] for own, row in zip(before, behind, strict=True)]


def lower_copy(source: PartsMemory, target: PartsMemory) -> list[Any]:
    """Build the copies of what a thread would hold of a tile; return them.

    Args:
        source: the memory that is read.
        target: shared memory.

    Raises:
        LegoError: not even 4 bytes at a time are known to be neighbours in both memories.
    """
    exist, _, starts = places_of(*source.registers)
    _, _, ends = places_of(*target.registers)
    width = _width((source, starts), (target, ends))
    offsets = [_Offsets(memory, places) for memory, places in ((source, starts), (target, ends))]
    truths: dict[Condition, Any] = {}
    token = ir.Type.parse("!nvgpu.device.async.token")
    copies = []
    for first in range(0, len(starts), width):
        there = exist[first : first + width]
        if all(own.is_never for own in there):
            there = [_NEVER] * width
        start, end = (of.at(first) for of in offsets)
        copy = nvgpu.DeviceAsyncCopyOp(
            target.flat,
            [end],
            source.flat,
            [start],
            width,
            srcElements=_existing(source, there, truths),
            bypassL1=width * bytes_of(source.element) == _BYPASSING or None,
            results=[token],
        )
        copies.append(copy.operation)
    return copies


_NEVER = Condition(frozenset({(0, 0)}))


def _width(*sides: tuple[PartsMemory, Sequence[Place]]) -> int:
    """Return the elements of a chunk, as many as are neighbours and aligned in both memories."""
    size = bytes_of(sides[0][0].element)
    for chunk in CHUNK_BYTES:
        width = chunk // size
        if width and all(_has_chunks(memory, places, width) for memory, places in sides):
            return width
    raise LegoError(
        f"cp.async copies {CHUNK_BYTES[-1]} bytes or more at a time, which are not known to be "
        f"neighbours and aligned in '{sides[0][0].layout}' and in '{sides[1][0].layout}'",
        hint="copy through registers: on tiles with the engine 'plain', else by a load and a store",
    )


def _has_chunks(memory: PartsMemory, places: Sequence[Place], width: int) -> bool:
    """Return whether so many registers at a time are neighbours and aligned."""
    if len(places) % width or memory.alignment % (width * bytes_of(memory.element)):
        return False
    bases = dict.fromkeys(base for base, _ in places)
    if any(construct.mod(base, width) != 0 for base in bases):
        return False
    return all(
        distance % width == 0
        and list(places[k : k + width]) == [(base, distance + x) for x in range(width)]
        for k, (base, distance) in enumerate(places)
        if k % width == 0
    )


def _existing(source: PartsMemory, there: Sequence[Condition], truths: dict[Any, Any]) -> Any:
    """Build how many elements of a chunk exist; `None` for all of them.

    Along a row elements exist up to a limit, so it is the first ones that do.
    """
    total = None
    index = ir.IndexType.get()
    for condition in dict.fromkeys(there):
        count = constant(index, there.count(condition))
        if condition != ALWAYS:
            if condition not in truths:
                truths[condition] = source.condition(condition.expression)
            count = make("arith.select", index, truths[condition], count, constant(index, 0))
        total = count if total is None else make("arith.addi", index, total, count)
    return None if set(there) == {ALWAYS} else total


class _Offsets:
    """The offsets of registers in a memory; those with the same base share its computation."""

    def __init__(self, memory: PartsMemory, places: Sequence[Place]) -> None:
        self._memory = memory
        self._places = places
        self._first: dict[Int, int] = {}
        for base, distance in places:
            memory.note(construct.add(base, distance))
            self._first[base] = min(distance, self._first.get(base, distance))
        self._bases: dict[Int, Any] = {}

    def at(self, register: int) -> Any:
        """Build the offset of a register."""
        base, distance = self._places[register]
        known = self._first[base]
        if base not in self._bases:
            self._bases[base] = self._memory.index(construct.add(base, known))
        if distance == known:
            return self._bases[base]
        return plus(self._bases[base], distance - known)
