"""Costs of a kernel: instructions by class, and the traffic of each memory access.

The simulator counts PTX instructions; it has no notion of time:

- *issues*: how often a warp executes an instruction with at least one active lane, and with how
  many; lanes whose guard does not hold count as active. The assembler translates
  them to other instructions, so the numbers compare kernels; they are not clock cycles.
- *requests*: how often a warp accesses memory, in lanes whose guard holds. A request to global
  memory touches 32-byte sectors, one to shared memory takes wavefronts. The least that any layout
  could need for the same request is counted too. The models are those of
  `analysis.memory_costs`; every buffer begins at a multiple of 128 bytes.
- Local memory is interleaved: the same 4-byte word of the 32 lanes of a warp is one line.
- For accesses of the copy engine and the tensor cores, only bytes are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.analysis.memory_costs.bank_conflicts import wavefronts
from lego_mlir.analysis.memory_costs.sectors import sectors
from lego_mlir.diagnostics import Location
from lego_mlir.hardware.limits import BANK_BYTES, CACHE_LINE_BYTES, WARP_THREADS
from lego_mlir.sim.cost.instruction_classes import CLASSES, Class, class_of
from lego_mlir.sim.machine.memory import LOCAL, PARAM, SHARED
from lego_mlir.sim.machine.observer import Observer
from lego_mlir.sim.ptx.syntax import Instruction
from lego_mlir.sim.ptx.table import find
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.asynchronous import Operation
    from lego_mlir.sim.machine.memory import Buffer, MemoryAccess
    from lego_mlir.sim.machine.wave import Mask, Wave
    from lego_mlir.sim.ptx.program import Program


@dataclass(frozen=True, slots=True)
class MemoryCost:
    """The accesses of one instruction to one memory, in all warps of a launch.

    Attributes:
        instruction: with its line in the PTX.
        source: the source location that the PTX was compiled from; None: unknown.
        space: `global`, `shared` or `local`.
        requests: warp-wide requests; for the copy engine, operations.
        lanes: active lanes of all requests.
        bytes: the bytes that those lanes request together.
        sectors, least_sectors: 32-byte sectors touched, and the fewest that could hold what the
            requests ask for. Global and local memory.
        half_lines, least_half_lines: 64-byte halves of lines, in which device memory is read, and
            the fewest that could hold what is asked for. Loads of global memory.
        wavefronts, least_wavefronts: wavefronts taken, and the fewest that requests of
            this width could take. Shared memory.
    """

    instruction: Instruction
    source: Location | None
    space: str
    requests: int
    lanes: int
    bytes: int
    sectors: int = 0
    least_sectors: int = 0
    half_lines: int = 0
    least_half_lines: int = 0
    wavefronts: int = 0
    least_wavefronts: int = 0

    @property
    def excess_sectors(self) -> int:
        return self.sectors - self.least_sectors

    @property
    def excess_wavefronts(self) -> int:
        return self.wavefronts - self.least_wavefronts


@dataclass(frozen=True, slots=True)
class IssueCount:
    """How often instructions are executed: by warps, and by their active lanes."""

    warps: int = 0
    lanes: int = 0

    def __add__(self, other: IssueCount) -> IssueCount:
        return IssueCount(self.warps + other.warps, self.lanes + other.lanes)


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of one launch.

    Attributes:
        kernel: its name.
        threads: number of threads in all CTAs.
        memory: the executed instructions that access memory, in the order of the PTX.
        issues: by PTX instruction, in order; 0 if it is never executed.
        classes: the same by class; classes without any are left out.
    """

    kernel: str
    threads: int
    memory: tuple[MemoryCost, ...]
    issues: tuple[tuple[Instruction, IssueCount], ...]
    classes: Mapping[Class, IssueCount]

    @property
    def excess_sectors(self) -> int:
        """Return the sectors beyond the least, of all instructions."""
        return sum(row.excess_sectors for row in self.memory)

    @property
    def half_lines(self) -> int:
        """Return the 64-byte halves of lines that loads touch."""
        return sum(row.half_lines for row in self.memory)

    @property
    def excess_half_lines(self) -> int:
        """Return the 64-byte halves of lines beyond the least, of all loads."""
        return self.half_lines - sum(row.least_half_lines for row in self.memory)

    @property
    def excess_wavefronts(self) -> int:
        """Return the wavefronts lost to bank conflicts, of all instructions."""
        return sum(row.excess_wavefronts for row in self.memory)


@dataclass(frozen=True, slots=True)
class _Request:
    """The cost of one access by the lanes of a wave."""

    requests: int
    lanes: int
    cost: int
    least: int
    half_lines: int = 0
    least_half_lines: int = 0


@dataclass(eq=False, slots=True)
class _Row:
    """The accesses of one instruction to one memory so far.

    Attributes:
        pattern, request: the last access, as offsets of the lanes within their warp, and what it
            cost: most instructions do the same again in the next iteration and the next wave.
    """

    access: MemoryAccess
    space: str
    requests: int = 0
    lanes: int = 0
    elements: int = 0
    cost: int = 0
    least: int = 0
    half_lines: int = 0
    least_half_lines: int = 0
    pattern: Array | None = None
    request: _Request = field(default_factory=lambda: _Request(0, 0, 0, 0))


class Counter(Observer):
    """Counts the costs of the waves of a launch."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.threads = 0
        self.rows: dict[tuple[int, str], _Row] = {}
        self.operations: dict[int, int] = {}
        self.entries = [IssueCount() for _ in program.basic_blocks]

    def begins(self, wave: Wave) -> None:
        buffers = wave.memory.buffers
        self.wave = wave
        self.spaces = {
            id(buffers[SHARED]): "shared",
            id(buffers[LOCAL]): "local",
            id(buffers[PARAM]): "param",
        }
        self.threads += wave.lanes
        self.first_lanes = np.flatnonzero(wave.lane_in_warp == 0)
        self.all_lanes = None if wave.threads % WARP_THREADS == 0 else np.arange(wave.lanes)

    def entered(self, at: int, mask: Mask) -> None:
        if mask is None:
            issued = IssueCount(self.wave.warps, self.wave.lanes)
        else:
            warps = np.logical_or.reduceat(mask, self.first_lanes)
            issued = IssueCount(int(np.count_nonzero(warps)), int(np.count_nonzero(mask)))
        self.entries[at] += issued

    def issued(self, operation: Operation) -> None:
        key = id(operation.instruction)
        count = int(np.count_nonzero(operation.unwaited))
        self.operations[key] = self.operations.get(key, 0) + count

    def accessed(
        self, access: MemoryAccess, buffer: Buffer, index: Array, lanes: Array | None
    ) -> None:
        space = self.spaces.get(id(buffer), "global")
        if space == "param":
            return
        row = self.rows.get((id(access), space))
        if row is None:
            row = self.rows[id(access), space] = _Row(access, space)
        if access.proxy == "async":
            row.elements += len(index)
            return
        offsets = index * access.width
        if buffer.starts is not None and space == "local":
            offsets = offsets - (buffer.starts if lanes is None else buffer.starts[lanes])
        addresses, mask = self._by_warp(offsets, lanes)
        pattern = _pattern(addresses, mask)
        if row.pattern is None or not np.array_equal(pattern, row.pattern):
            row.pattern, row.request = pattern, _cost(access, space, addresses, mask)
        row.requests += row.request.requests
        row.lanes += row.request.lanes
        row.elements += row.request.lanes
        row.cost += row.request.cost
        row.least += row.request.least
        row.half_lines += row.request.half_lines
        row.least_half_lines += row.request.least_half_lines

    def _by_warp(self, offsets: Array, lanes: Array | None) -> tuple[Array, Array | None]:
        """Return the offsets and active lanes of participating warps, of shape (warps, 32)."""
        wave = self.wave
        lanes = self.all_lanes if lanes is None else lanes
        if lanes is None:
            whole = offsets if len(offsets) > 1 else np.full(wave.lanes, offsets)
            return whole.reshape(-1, WARP_THREADS), None
        addresses = np.zeros((wave.warps, WARP_THREADS), np.int64)
        mask = np.zeros((wave.warps, WARP_THREADS), np.bool_)
        where = wave.warp_of_lane[lanes], wave.lane_in_warp[lanes]
        addresses[where], mask[where] = offsets, True
        some = mask.any(axis=1)
        return addresses[some], mask[some]

    def costs(self) -> Costs:
        """Return the costs so far."""
        program = self.program
        issues = dict.fromkeys(map(id, program.kernel.instructions), IssueCount())
        for block, entered in zip(program.basic_blocks, self.entries, strict=True):
            for instruction in block.instructions[: block.length]:
                issues[id(instruction)] += entered
        classes = dict.fromkeys(CLASSES, IssueCount())
        for instruction in program.kernel.instructions:
            section = find(program.module, instruction).section
            classes[class_of(section, instruction)] += issues[id(instruction)]
        rows = sorted(self.rows.values(), key=lambda row: row.access.instruction.line)
        return Costs(
            program.kernel.name,
            self.threads,
            tuple(map(self._memory_cost, rows)),
            tuple((i, issues[id(i)]) for i in program.kernel.instructions),
            {name: count for name, count in classes.items() if count.warps},
        )

    def _memory_cost(self, row: _Row) -> MemoryCost:
        instruction = row.access.instruction
        operations = self.operations.get(id(instruction), 0)
        is_async = row.access.proxy == "async"
        counts = {
            "least_wavefronts" if row.space == "shared" else "least_sectors": row.least,
            "wavefronts" if row.space == "shared" else "sectors": row.cost,
        }
        return MemoryCost(
            instruction,
            self.program.module.source_of(instruction),
            row.space,
            operations if is_async else row.requests,
            operations if is_async else row.lanes,
            row.elements * row.access.bytes,
            half_lines=row.half_lines,
            least_half_lines=row.least_half_lines,
            **counts,
        )


def _pattern(addresses: Array, mask: Array | None) -> Array:
    """Return lane offsets from the cache line of the warp's first lane; equal for equal costs."""
    if mask is None:
        offsets: Array = addresses - (addresses[:, :1] & -CACHE_LINE_BYTES)
        return offsets
    first = np.take_along_axis(addresses, mask.argmax(axis=1)[:, None], axis=1)
    return np.where(mask, addresses - (first & -CACHE_LINE_BYTES), np.iinfo(np.int64).max)


def _cost(access: MemoryAccess, space: str, addresses: Array, mask: Array | None) -> _Request:
    """Return the total cost of warp-wide requests."""
    warps = len(addresses)
    lanes = warps * WARP_THREADS if mask is None else int(np.count_nonzero(mask))
    if space == "shared":
        atomic = access.instruction.opcode.startswith(("atom.", "red."))
        conflicts = wavefronts(addresses, access.bytes, mask, combine=not atomic)
        return _Request(warps, lanes, int(conflicts.executed.sum()), int(conflicts.ideal.sum()))
    width = access.bytes
    if space == "local":
        word, byte = addresses // BANK_BYTES, addresses % BANK_BYTES
        addresses = (word * WARP_THREADS + np.arange(WARP_THREADS)) * BANK_BYTES + byte
        # The words of a wide access lie in different lines, so they are added one by one.
        width, parts = min(width, BANK_BYTES), max(1, width // BANK_BYTES)
    else:
        parts = 1
    moved = sectors(addresses, width, mask)
    touched, least = int(moved.touched.sum()), int(moved.ideal.sum())
    halves = (0, 0)
    if space == "global" and access.instruction.opcode.startswith("ld."):
        halves = int(moved.half_lines.sum()), int(moved.ideal_half_lines.sum())
    return _Request(warps, lanes, touched * parts, least * parts, *halves)
