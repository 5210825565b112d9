"""Checks of the rules for `wgmma.mma_async`: registers, fences, and the warps of a warpgroup.

- Registers that a `wgmma.mma_async` reads or writes belong to it until `wgmma.wait_group` has
  waited for it. Any other access to them before that is an error, in every completion order.
- A warp executes `wgmma.fence` before its first `wgmma.mma_async`, and between any other access to
  the registers of one and that one. Consecutive `wgmma.mma_async` of one shape may share
  accumulators without a fence.
- The four warps of a warpgroup execute the same `wgmma.mma_async` on the same matrices, and
  converge for it. It is a single operation: when one warp has waited for it, the other warps no
  longer read its operands. (The ISA does not say this; kernels in which one thread of the
  warpgroup releases a pipeline stage rely on it.)

Only instructions that name a register of a `wgmma.mma_async` are checked, so other kernels have no
overhead.

Source: PTX ISA 9.7.15.1 (warpgroup), 9.7.15.5.2 (wgmma.mma_async), 9.7.15.7 (fence, groups).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.hardware.limits import WARPGROUP_WARPS
from lego_mlir.sim.machine.memory import Fault
from lego_mlir.sim.ptx.decoded import Decoded, Handler, WarpCollective
from lego_mlir.sim.ptx.form import SymbolTable
from lego_mlir.sim.ptx.syntax import (
    Address,
    Group,
    Instruction,
    Kernel,
    Negated,
    Operand,
    Pair,
    Register,
    TensorAddress,
    Vector,
)
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave


_WGMMA = "wgmma.mma_async"


def registers_of(operand: Operand) -> Iterator[str]:
    """Yield the names of the registers in an operand."""
    match operand:
        case Register(name) | Negated(Register(name)) | Address(Register(name)):
            yield name
        case Vector(elements) | Group(elements):
            for element in elements:
                yield from registers_of(element)
        case Pair(first, second):
            yield from registers_of(first)
            yield from registers_of(second)
        case TensorAddress(base, coordinates):
            yield from registers_of(base)
            yield from registers_of(coordinates)


@lru_cache(maxsize=64)
def wgmma_registers(kernel: Kernel) -> frozenset[str]:
    """Return the registers of the accumulators and of operand A of all `wgmma` of a kernel."""
    return frozenset(
        name
        for instruction in kernel.instructions
        if instruction.opcode.startswith(_WGMMA)
        for operand in instruction.operands[:2]
        if isinstance(operand, Vector)
        for name in registers_of(operand)
    )


def watched(instruction: Instruction, symbols: SymbolTable, decoded: Decoded) -> Decoded:
    """Return a decoded instruction, with a check before it if it names a `wgmma` register."""
    if not symbols.wgmma_registers:
        return decoded
    names = {name for operand in instruction.operands for name in registers_of(operand)}
    names &= symbols.wgmma_registers
    if not names or instruction.opcode.startswith(_WGMMA):
        return decoded
    rows = np.array(sorted(symbols.registers[name][0] for name in names))

    def checked(execute: Handler) -> Handler:
        def run(w: Wave) -> None:
            w.warpgroups.touched(rows, instruction)
            execute(w)

        return run

    match decoded:
        case WarpCollective(members, execute, warpgroup):
            return WarpCollective(members, checked(execute), warpgroup)
        case _ if callable(decoded):
            return checked(decoded)
        case _:
            return decoded


@dataclass(frozen=True, slots=True, eq=False)
class WgmmaOperation:
    """A `wgmma.mma_async` that has been issued, as the stage of an asynchronous operation.

    Attributes:
        shape: as PTX writes it: `m64n128k16`.
        accumulators, inputs: register indices of D, and of A if A is in registers.
        compute: performs it.
    """

    shape: str
    accumulators: Array
    inputs: Array
    compute: Callable[[Wave], None]

    def __call__(self, w: Wave) -> None:
        self.compute(w)


@dataclass(frozen=True, slots=True, eq=False)
class IssueDigest:
    """For each warp, how often it issued an instruction, and a digest of the operands."""

    instruction: Instruction
    count: Array
    digest: Array


class Warpgroups:
    """The state of a wave's warps that the `wgmma` checks need.

    Attributes:
        fenced: the warps that executed a `wgmma.fence`.
        touches: for each register and warp, the line of the last other instruction since then
            that accessed the register; 0 for none.
        shapes: for each register and warp, the number of the shape of the `wgmma` since then that
            accumulated in it; 0 for none.
        digests: by the location of each `wgmma.mma_async`.
    """

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        registers = len(wave.regs) if wgmma_registers(wave.kernel) else 0
        self.fenced = np.zeros(wave.warps, np.bool_)
        self.touches = np.zeros((registers, wave.warps), np.int32)
        self.shapes = np.zeros((registers, wave.warps), np.int32)
        self.numbers: dict[str, int] = {}
        self.digests: dict[tuple[int, int], IssueDigest] = {}
        lanes = WARPGROUP_WARPS * 32
        per_cta = -(-wave.threads // lanes)
        self.number = wave.cta_index_of_lane * per_cta + wave.thread_of_lane // lanes

    def whole_warpgroups(self, mask: Array) -> Array:
        """Return the lanes of `mask` and all other lanes of their warpgroups."""
        here = np.bincount(self.number[mask], minlength=int(self.number[-1]) + 1) > 0
        every: Array = here[self.number]
        return every

    def fence(self) -> None:
        """Execute `wgmma.fence` in the active warps."""
        warps = self._active()
        self.fenced[warps] = True
        self.touches[:, warps] = 0
        self.shapes[:, warps] = 0

    def touched(self, rows: Array, instruction: Instruction) -> None:
        """Check an access to `wgmma` registers by another instruction, which is about to run.

        Raises:
            Fault: a register belongs to a `wgmma` that the lane's warp has not waited for.
        """
        w = self.wave
        for operation in w.queues.matrix.operations:
            wgmma = operation.stages[0]
            assert isinstance(wgmma, WgmmaOperation)
            taken = np.concatenate([wgmma.accumulators, wgmma.inputs])
            shared = rows[np.isin(rows, taken)]
            lanes = w.active() & operation.unwaited
            if len(shared) and lanes.any():
                raise Fault(
                    f"{instruction.opcode} touches {self._name(shared[0])}, which belongs to "
                    f"{operation.instruction.opcode} ({w.location_name(operation.instruction)}) "
                    f"until wgmma.wait_group has waited for it",
                    w.first(lanes),
                )
        self.touches[np.ix_(rows, self._active())] = instruction.line

    def issued(self, instruction: Instruction, wgmma: WgmmaOperation, words: Array) -> None:
        """Check a `wgmma` that the active warps are about to issue.

        Args:
            instruction: for errors.
            wgmma: the operation.
            words: the scalar operands of each active warp, uint64 of shape (warps, operands).

        Raises:
            Fault: a warp has not fenced the registers, or its warpgroup is incomplete.
        """
        warps = self._active()
        self._check_group(instruction, warps)
        self._check_fence(instruction, wgmma, warps)
        number = self.numbers.setdefault(wgmma.shape, len(self.numbers) + 1)
        self.shapes[np.ix_(wgmma.accumulators, warps)] = number
        location = instruction.line, instruction.column
        record = self.digests.get(location)
        if record is None:
            zeros = np.zeros(self.wave.warps, np.uint64)
            record = self.digests[location] = IssueDigest(
                instruction, zeros.astype(np.int64), zeros
            )
        record.count[warps] += 1
        for column in words.T:
            # A linear congruence: digests that differ once stay different.
            record.digest[warps] = record.digest[warps] * np.uint64(6364136223846793005) + column

    def finish(self) -> None:
        """Check, at the end of the wave, that the warps of each warpgroup issued the same `wgmma`.

        Raises:
            LegoError: they did not.
        """
        w = self.wave
        ctas, warps = len(w.ctas), w.warps // len(w.ctas)
        whole = warps // WARPGROUP_WARPS * WARPGROUP_WARPS
        for record in self.digests.values():
            count, digest = (
                x.reshape(ctas, warps)[:, :whole].reshape(-1, WARPGROUP_WARPS)
                for x in (record.count, record.digest)
            )
            uneven = (count != count[:, :1]).any(axis=1)
            apart = (digest != digest[:, :1]).any(axis=1)
            if not apart.any() and not uneven.any():
                continue
            group = int(np.argmax(uneven if uneven.any() else apart))
            times = ", ".join(map(str, count[group]))
            what = f"{times} times" if uneven.any() else "with different operands"
            cta, first = divmod(group * WARPGROUP_WARPS, whole)
            raise w.error(
                f"the warps {first} to {first + WARPGROUP_WARPS - 1} of {w.cta_name(cta)} are a "
                f"warpgroup, but execute this {record.instruction.opcode} {what}",
                record.instruction,
                "all warps of a warpgroup execute the same wgmma instructions, on the same "
                "matrices (PTX ISA 9.7.15.1)",
            )

    # --- checks ---

    def _check_group(self, instruction: Instruction, warps: Array) -> None:
        w = self.wave
        in_cta = warps % (w.warps // len(w.ctas))
        lacking = (in_cta // WARPGROUP_WARPS + 1) * WARPGROUP_WARPS * 32 > w.threads
        if lacking.any():
            raise Fault(
                f"{instruction.opcode} needs the {WARPGROUP_WARPS} warps of a warpgroup, and "
                f"the CTA has {w.threads} threads",
                self._lane(int(warps[np.argmax(lacking)])),
            )

    def _check_fence(self, instruction: Instruction, wgmma: WgmmaOperation, warps: Array) -> None:
        if not self.fenced[warps].all():
            raise Fault(
                f"{instruction.opcode} without a wgmma.fence before it",
                self._lane(int(warps[np.argmin(self.fenced[warps])])),
            )
        rows = np.concatenate([wgmma.accumulators, wgmma.inputs])
        lines = self.touches[np.ix_(rows, warps)]
        if lines.any():
            row, warp = np.argwhere(lines)[0]
            raise Fault(
                f"{instruction.opcode} uses {self._name(rows[row])}, which line "
                f"{lines[row, warp]} has touched after the last wgmma.fence",
                self._lane(int(warps[warp])),
            )
        allowed = np.zeros((len(rows), 1), np.int32)
        allowed[: len(wgmma.accumulators)] = self.numbers.get(wgmma.shape, 0)
        used = self.shapes[np.ix_(rows, warps)]
        other = (used != 0) & (used != allowed)
        if other.any():
            row, warp = np.argwhere(other)[0]
            shape = next(s for s, n in self.numbers.items() if n == used[row, warp])
            raise Fault(
                f"{instruction.opcode} uses {self._name(rows[row])}, an accumulator of wgmma of "
                f"the shape {shape} since the last wgmma.fence",
                self._lane(int(warps[warp])),
            )

    def _active(self) -> Array:
        """Return the warps of the active lanes."""
        w = self.wave
        if w.mask is None:
            return np.arange(w.warps)
        return np.flatnonzero(np.bincount(w.warp_of_lane[w.mask], minlength=w.warps))

    def _lane(self, warp: int) -> int:
        return int(np.argmax(self.wave.warp_of_lane == warp))

    def _name(self, row: int) -> str:
        return list(self.wave.kernel.registers)[row]
