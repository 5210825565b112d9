"""The number of registers that a kernel needs, checked against `setmaxnreg`.

PTX registers are virtual. The values that may need machine registers at a point are the live ones:
a 32-bit value takes one, a 64-bit value two, a 16-bit value half of one; predicates have their own
registers. Values that are equal in all threads do not count, since the assembler may keep them in
uniform registers or in constant memory.

The number of live values in PTX order is an estimate. The assembler reorders instructions and may
need fewer registers: a computation or load may be moved or repeated. That is impossible for a
*carried* value, which depends on the path that a thread took, such as the accumulators of a loop or
the result of a `wgmma`. The live carried values at the start of a basic block are a lower bound:
with fewer registers the assembler must spill. Only that is an error.

Source: PTX ISA 9.7.19.5 (setmaxnreg), 11.4 (.maxnreg, .minnctapersm); how `ptxas` counts registers
at entry was measured (CUDA 13.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import prod
from operator import or_
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.hardware.limits import MAX_THREAD_REGISTERS, SM_REGISTERS
from lego_mlir.sim.checks.warpgroup import registers_of
from lego_mlir.sim.cost.instruction_classes import PURE, class_of
from lego_mlir.sim.ptx.dataflow import Registers, fixpoint, live, members, registers
from lego_mlir.sim.ptx.syntax import Instruction, Integer, Kernel
from lego_mlir.sim.ptx.table import find
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.ptx.program import BasicBlock, Program


_SETS = "setmaxnreg."
_BY_THREAD = ("%tid", "%laneid", "%lanemask", "%warpid", "%clock")
"""How the names of special registers begin that differ between the threads of a CTA."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """The maximum number of live registers of a thread, and its location."""

    registers: int
    instruction: Instruction


def pressure(program: Program) -> Pressure:
    """Return where a kernel needs most registers."""
    most = max(
        (
            (count, instruction)
            for block, counts in zip(program.basic_blocks, needed(program), strict=True)
            for count, instruction in zip(counts, block.instructions, strict=False)
        ),
        key=lambda pair: pair[0],
        default=(0, program.basic_blocks[0].instructions[0]),
    )
    return Pressure(*most)


def needed(program: Program) -> list[list[int]]:
    """Return the live registers before or after each instruction (the larger), by basic block."""
    words = _words(program)
    return [
        [
            max(words(before), words(after | registers(uses.writes)))
            for uses, before, after in zip(block.uses, points, points[1:], strict=False)
        ]
        for block, points in zip(program.basic_blocks, live(program.basic_blocks), strict=True)
    ]


def _words(program: Program) -> Callable[[Registers], int]:
    """Return a function that counts the machine registers of a set of values."""
    varying = _varying(program)
    narrow, single, double = (
        registers(i for i, kind in enumerate(program.registers) if kind.bits in bits) & varying
        for bits in ((8, 16), (32,), (64,))
    )

    def words(found: Registers) -> int:
        halves = (found & narrow).bit_count()
        return (found & single).bit_count() + 2 * (found & double).bit_count() + (halves + 1) // 2

    return words


def _carried(blocks: Sequence[BasicBlock], among: Registers) -> list[Registers]:
    """Return those of the registers that hold a carried value at the start of each basic block.

    The value of a register at the start of a basic block is 0 if it is unwritten, a number of its
    own for each instruction that writes it (negative for a `wgmma`), and -1 - k for a merge (phi)
    at basic block k. Initially there is a merge everywhere. A merge whose incoming values are all
    the same value, or the merge itself, is replaced by that value.

    Source: J. Aycock and N. Horspool, Simple generation of static single-assignment form, 2000.
    """
    of_column = members(among)
    column = {register: k for k, register in enumerate(of_column)}
    written = [
        {column[r]: n for r, n in found.items() if r in column} for found in _written(blocks)
    ]
    value = np.repeat(-1 - np.arange(len(blocks))[:, None], len(of_column), axis=1)

    def settled(row: Array) -> Array:
        """Replace merges in a row by the values that they are known to have."""
        while True:
            together = (row < 0) & (row >= -len(blocks))
            known = value[np.where(together, -1 - row, 0), np.arange(len(of_column))]
            further = np.where(together, known, row)
            if np.array_equal(further, row):
                return further
            row = further

    sources: list[list[int]] = [[] for _ in blocks]
    for at, block in enumerate(blocks):
        for successor in block.successors:
            sources[successor].append(at)
    changed = True
    order = list(range(len(blocks)))
    while changed:
        changed = False
        # Alternate directions: loops converge from the inside out, sequences from the front.
        order.reverse()
        for at in order:
            before = sources[at]
            # The kernel's start is one more predecessor of the first basic block.
            coming = np.zeros((len(before) + (at == 0), len(of_column)), np.int64)
            for row, k in zip(coming, before, strict=False):
                row[:] = value[k] = settled(value[k])
                row[list(written[k])] = list(written[k].values())
            only = _only(coming, -1 - at)
            same = (value[at] == -1 - at) & (only != -1 - at)
            if same.any():
                changed = True
                value[at] = np.where(same, only, value[at])
    return [registers(of_column[k] for k in np.flatnonzero(settled(row) < 0)) for row in value]


def _only(coming: Array, own: int) -> Array:
    """Return the only number besides `own` in each column; `own` if there are several, or none."""
    most = np.iinfo(np.int64).max
    least = np.where(coming == own, most, coming).min(axis=0)
    greatest = np.where(coming == own, -most, coming).max(axis=0)
    return np.where(least == greatest, least, own)


def _written(blocks: Sequence[BasicBlock]) -> Iterator[dict[int, int]]:
    """Yield, for each basic block, the registers that it writes with their last value numbers."""
    number = len(blocks)
    for block in blocks:
        found: dict[int, int] = {}
        for instruction, uses in zip(block.instructions, block.uses, strict=False):
            number += 1
            sign = -1 if instruction.opcode.startswith("wgmma.") else 1
            found |= dict.fromkeys(uses.writes, sign * number)
        yield found


def _varying(program: Program) -> Registers:
    """Return the registers whose values may differ between threads."""
    flows: list[tuple[Registers, Registers]] = []
    varying = 0
    for block in program.basic_blocks:
        for instruction, uses in zip(block.instructions, block.uses, strict=False):
            if _differs(program, instruction):
                varying |= registers(uses.writes)
            else:
                flows.append((registers(uses.reads), registers(uses.writes)))
    before = -1
    while varying != before:
        before = varying
        for reads, writes in flows:
            if reads & varying:
                varying |= writes
    return varying


def _differs(program: Program, instruction: Instruction) -> bool:
    """Return whether threads with the same operands may get different results."""
    if instruction.opcode.startswith("ld.param"):
        return False
    if class_of(find(program.module, instruction).section, instruction) not in PURE:
        return True
    names = (name for operand in instruction.operands for name in registers_of(operand))
    return any(name.startswith(_BY_THREAD) for name in names)


# --- what setmaxnreg leaves ---


def sets(instruction: Instruction) -> int | None:
    """Return the number of registers that a `setmaxnreg` sets; None for another instruction."""
    if not instruction.opcode.startswith(_SETS):
        return None
    (count,) = instruction.operands
    assert isinstance(count, Integer)
    return count.value


@lru_cache(maxsize=64)
def at_entry(kernel: Kernel) -> int | None:
    """Return the registers of each thread at the start of a kernel with `setmaxnreg`.

    None if it has no `setmaxnreg`, or if the assembler cannot know the number: without `.maxnreg`,
    or `.minnctapersm` and the number of threads, `setmaxnreg` has no effect.
    """
    counts = [n for i in kernel.instructions if (n := sets(i)) is not None]
    threads = kernel.reqntid or kernel.maxntid
    limits = [] if kernel.maxnreg is None else [min(kernel.maxnreg, MAX_THREAD_REGISTERS)]
    if kernel.minnctapersm is not None and threads is not None:
        # Registers are allocated to warpgroups, in multiples of 8 for each thread.
        whole = -(-prod(threads) // 128) * 128
        limits.append(
            min(SM_REGISTERS // (whole * kernel.minnctapersm) // 8 * 8, MAX_THREAD_REGISTERS)
        )
    if not counts or not limits:
        return None
    if any(i.opcode.startswith(_SETS + "inc") for i in kernel.instructions):
        limits.append(max(counts))
    return min(limits)


def check(program: Program) -> None:
    """Check that a kernel with `setmaxnreg` carries no more values than its threads have registers.

    Raises:
        LegoError: it does; with the point where most are lacking.
    """
    entry = at_entry(program.kernel)
    if entry is None:
        return
    definitions = [i for i in program.kernel.instructions if sets(i) is not None]
    reaching = _reaching(program.basic_blocks, definitions)
    worst: tuple[int, int, Instruction, Instruction | None] | None = None
    for at, i, count in _held(program):
        for k, source in enumerate([None, *definitions]):
            granted = entry if source is None else sets(source) or 0
            lacking = count - min(granted, MAX_THREAD_REGISTERS)
            if reaching[at][i] >> k & 1 and lacking > (0 if worst is None else worst[0]):
                worst = lacking, count, program.basic_blocks[at].instructions[i], source
    if worst is not None:
        raise _too_many(program, entry, *worst[1:])


def _held(program: Program) -> Iterator[tuple[int, int, int]]:
    """Yield how many registers hold carried values: at each block's start, and at `setmaxnreg`.

    Yields the block, the instruction in it, and the number.
    """
    words = _words(program)
    points_of = live(program.basic_blocks)
    carried = _carried(program.basic_blocks, reduce(or_, (points[0] for points in points_of)))
    for at, points in enumerate(points_of):
        block, kept = program.basic_blocks[at], carried[at]
        for i, uses in enumerate(block.uses):
            if i == 0 or sets(block.instructions[i]) is not None:
                yield at, i, words(points[i] & kept)
            kept &= ~registers(uses.writes)


def _reaching(blocks: Sequence[BasicBlock], definitions: Sequence[Instruction]) -> list[list[int]]:
    """Which `setmaxnreg` may be the last one at each instruction, itself included.

    Bit 0 stands for the entry of the kernel, bit k for number k - 1.
    """
    numbers = {id(instruction): k for k, instruction in enumerate(definitions, 1)}
    steps = [[numbers.get(id(i)) for i in block.instructions[: block.length]] for block in blocks]

    def points(at: int, found: int) -> list[int]:
        listed = []
        for number in steps[at]:
            found = found if number is None else 1 << number
            listed.append(found)
        return listed

    before = fixpoint(
        [block.successors for block in blocks],
        [1, *[0] * (len(blocks) - 1)],
        lambda at, found: (points(at, found) or [found])[-1],
        range(len(blocks)),
    )
    return [points(at, found) for at, found in enumerate(before)]


def _too_many(
    program: Program, entry: int, count: int, instruction: Instruction, source: Instruction | None
) -> Exception:
    if source is None:
        granted = f"{program.kernel.name} is launched with {entry}"
    else:
        granted = f"`{source}` (line {source.line}) leaves {sets(source)}"
    return program.module.error(
        f"{count} registers of each thread hold values that are carried on at "
        f"{instruction.opcode}, where {granted} (PTX ISA 9.7.19.5)",
        instruction.line,
        instruction.column,
        "let the warpgroup have more registers, or hold fewer values at once: what does not fit "
        "is spilled to local memory",
    )
