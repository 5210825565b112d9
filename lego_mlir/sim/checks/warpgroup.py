"""What the warps of a warpgroup must keep to around `wgmma.mma_async`, and what tells if not.

- Registers that a `wgmma.mma_async` reads or writes belong to it until it has been waited for:
  any other instruction that touches them is an error, whenever the product is really computed.
- Before its first `wgmma.mma_async`, and between any other access of the registers of one and that
  one, a warp executes `wgmma.fence`. Accumulators of products of one shape need none between them.
- The four warps of a warpgroup execute the same `wgmma.mma_async`, on the same matrices. They come
  together for it, and its product is one: a warp that has waited for it knows that the other warps
  need its operands no more. (The ISA is silent on this; kernels that release a buffer by one thread
  of the warpgroup rely on it.)

Only instructions that name a register of some `wgmma.mma_async` are watched; kernels without any
pay nothing.

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
from lego_mlir.sim.ptx.form import Barrier, Branch, Decoded, Exit, Scope, Step, Together, Trap, Wait
from lego_mlir.sim.ptx.syntax import (
    Address,
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


_PRODUCT = "wgmma.mma_async"


def registers_of(operand: Operand) -> Iterator[str]:
    """Names of the registers that an operand is made of."""
    match operand:
        case Register(name) | Negated(Register(name)) | Address(Register(name)):
            yield name
        case Vector(elements):
            for element in elements:
                yield from registers_of(element)
        case Pair(first, second):
            yield from registers_of(first)
            yield from registers_of(second)
        case TensorAddress(base, coordinates):
            yield from registers_of(base)
            yield from registers_of(coordinates)


@lru_cache(maxsize=64)
def product_registers(kernel: Kernel) -> frozenset[str]:
    """The registers of accumulators and of A in all products of a kernel."""
    return frozenset(
        name
        for instruction in kernel.instructions
        if instruction.opcode.startswith(_PRODUCT)
        for operand in instruction.operands[:2]
        if isinstance(operand, Vector)
        for name in registers_of(operand)
    )


def watched(instruction: Instruction, scope: Scope, decoded: Decoded) -> Decoded:
    """The instruction, with a check before it where it names a register of some product."""
    if not scope.product_registers:
        return decoded
    names = {name for operand in instruction.operands for name in registers_of(operand)}
    names &= scope.product_registers
    if not names or instruction.opcode.startswith(_PRODUCT):
        return decoded
    rows = np.array(sorted(scope.registers[name][0] for name in names))

    def checked(step: Step) -> Step:
        def run(w: Wave) -> None:
            w.warpgroups.touched(rows, instruction)
            step(w)

        return run

    match decoded:
        case Together(members, step, warpgroup):
            return Together(members, checked(step), warpgroup)
        case Branch() | Exit() | Trap() | Barrier() | Wait():
            return decoded
        case step:
            return checked(step)


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """A `wgmma.mma_async` that has been issued, as the stage of an asynchronous operation.

    Attributes:
        shape: as PTX writes it: `m64n128k16`.
        accumulators, inputs: indices of the registers of D and, where they hold it, of A.
        compute: what it does.
    """

    shape: str
    accumulators: Array
    inputs: Array
    compute: Callable[[Wave], None]

    def __call__(self, w: Wave) -> None:
        self.compute(w)


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """How often each warp of the wave has issued an instruction, and a digest of its operands."""

    instruction: Instruction
    count: Array
    digest: Array


class Warpgroups:
    """The state of a wave's warps with regard to their products.

    Attributes:
        fenced: which warps have executed a `wgmma.fence`.
        touches: for each register and warp the line of the last instruction since then that
            touched the register and was no product; 0 for none.
        shapes: for each register and warp the number of the shape of the products since then that
            had it as accumulator; 0 for none.
        tallies: of each product instruction, by its place.
    """

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        registers = len(wave.regs) if product_registers(wave.kernel) else 0
        self.fenced = np.zeros(wave.warps, np.bool_)
        self.touches = np.zeros((registers, wave.warps), np.int32)
        self.shapes = np.zeros((registers, wave.warps), np.int32)
        self.numbers: dict[str, int] = {}
        self.tallies: dict[tuple[int, int], Tally] = {}
        lanes = WARPGROUP_WARPS * 32
        per_block = -(-wave.threads // lanes)
        self.number = wave.slot_of_lane * per_block + wave.thread_of_lane // lanes

    def widened(self, mask: Array) -> Array:
        """Some lanes, with all others of their warpgroups."""
        here = np.bincount(self.number[mask], minlength=int(self.number[-1]) + 1) > 0
        every: Array = here[self.number]
        return every

    def fence(self) -> None:
        """The active warps execute `wgmma.fence`."""
        warps = self._active()
        self.fenced[warps] = True
        self.touches[:, warps] = 0
        self.shapes[:, warps] = 0

    def touched(self, rows: Array, instruction: Instruction) -> None:
        """An instruction that is no product is about to read or write registers of products.

        Raises:
            Fault: one of them belongs to a product that the lane's warp has not waited for.
        """
        w = self.wave
        for operation in w.queues.matrix.operations:
            product = operation.stages[0]
            assert isinstance(product, Product)
            taken = np.concatenate([product.accumulators, product.inputs])
            shared = rows[np.isin(rows, taken)]
            lanes = w.active() & operation.unwaited
            if len(shared) and lanes.any():
                raise Fault(
                    f"{instruction.opcode} touches {self._name(shared[0])}, which belongs to "
                    f"{operation.instruction.opcode} ({w.place(operation.instruction)}) until "
                    f"wgmma.wait_group has waited for it",
                    w.first(lanes),
                )
        self.touches[np.ix_(rows, self._active())] = instruction.line

    def issued(self, instruction: Instruction, product: Product, words: Array) -> None:
        """The active warps are about to issue a product.

        Args:
            instruction: for errors.
            product: what they issue.
            words: of each active warp its scalar operands, as uint64 (warps, operands).

        Raises:
            Fault: a warp has not fenced the registers, or has no warpgroup.
        """
        warps = self._active()
        self._check_group(instruction, warps)
        self._check_fence(instruction, product, warps)
        number = self.numbers.setdefault(product.shape, len(self.numbers) + 1)
        self.shapes[np.ix_(product.accumulators, warps)] = number
        place = instruction.line, instruction.column
        tally = self.tallies.get(place)
        if tally is None:
            zeros = np.zeros(self.wave.warps, np.uint64)
            tally = self.tallies[place] = Tally(instruction, zeros.astype(np.int64), zeros)
        tally.count[warps] += 1
        for column in words.T:
            # A linear congruence: whatever differs once, differs for ever.
            tally.digest[warps] = tally.digest[warps] * np.uint64(6364136223846793005) + column

    def finish(self) -> None:
        """The wave is done: the warps of a warpgroup must have issued the same products.

        Raises:
            LegoError: they have not.
        """
        w = self.wave
        blocks, warps = len(w.blocks), w.warps // len(w.blocks)
        whole = warps // WARPGROUP_WARPS * WARPGROUP_WARPS
        for tally in self.tallies.values():
            count, digest = (
                x.reshape(blocks, warps)[:, :whole].reshape(-1, WARPGROUP_WARPS)
                for x in (tally.count, tally.digest)
            )
            uneven = (count != count[:, :1]).any(axis=1)
            apart = (digest != digest[:, :1]).any(axis=1)
            if not apart.any() and not uneven.any():
                continue
            group = int(np.argmax(uneven if uneven.any() else apart))
            times = ", ".join(map(str, count[group]))
            what = f"{times} times" if uneven.any() else "with different operands"
            slot, first = divmod(group * WARPGROUP_WARPS, whole)
            raise w.error(
                f"the warps {first} to {first + WARPGROUP_WARPS - 1} of {w.slot_name(slot)} are a "
                f"warpgroup, but execute this {tally.instruction.opcode} {what}",
                tally.instruction,
                "all warps of a warpgroup execute the same wgmma instructions, on the same "
                "matrices (PTX ISA 9.7.15.1)",
            )

    # --- checks ---

    def _check_group(self, instruction: Instruction, warps: Array) -> None:
        w = self.wave
        in_block = warps % (w.warps // len(w.blocks))
        lacking = (in_block // WARPGROUP_WARPS + 1) * WARPGROUP_WARPS * 32 > w.threads
        if lacking.any():
            raise Fault(
                f"{instruction.opcode} needs the {WARPGROUP_WARPS} warps of a warpgroup, and "
                f"the block has {w.threads} threads",
                self._lane(int(warps[np.argmax(lacking)])),
            )

    def _check_fence(self, instruction: Instruction, product: Product, warps: Array) -> None:
        if not self.fenced[warps].all():
            raise Fault(
                f"{instruction.opcode} without a wgmma.fence before it",
                self._lane(int(warps[np.argmin(self.fenced[warps])])),
            )
        rows = np.concatenate([product.accumulators, product.inputs])
        lines = self.touches[np.ix_(rows, warps)]
        if lines.any():
            row, warp = np.argwhere(lines)[0]
            raise Fault(
                f"{instruction.opcode} uses {self._name(rows[row])}, which line "
                f"{lines[row, warp]} has touched after the last wgmma.fence",
                self._lane(int(warps[warp])),
            )
        allowed = np.zeros((len(rows), 1), np.int32)
        allowed[: len(product.accumulators)] = self.numbers.get(product.shape, 0)
        used = self.shapes[np.ix_(rows, warps)]
        other = (used != 0) & (used != allowed)
        if other.any():
            row, warp = np.argwhere(other)[0]
            shape = next(s for s, n in self.numbers.items() if n == used[row, warp])
            raise Fault(
                f"{instruction.opcode} uses {self._name(rows[row])}, an accumulator of products "
                f"of the shape {shape} since the last wgmma.fence",
                self._lane(int(warps[warp])),
            )

    def _active(self) -> Array:
        """The warps of the active lanes."""
        w = self.wave
        if w.mask is None:
            return np.arange(w.warps)
        return np.flatnonzero(np.bincount(w.warp_of_lane[w.mask], minlength=w.warps))

    def _lane(self, warp: int) -> int:
        return int(np.argmax(self.wave.warp_of_lane == warp))

    def _name(self, row: int) -> str:
        return list(self.wave.kernel.registers)[row]
