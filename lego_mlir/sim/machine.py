"""The machine: a wave of thread blocks that runs a program in lock step.

A *wave* is a few thread blocks whose threads are the lanes of NumPy vectors: lane
`slot * threads + t` is thread `t` of the wave's block number `slot`. Blocks of a wave share
nothing but global memory, so running them side by side is one of the orders a GPU may choose.

Lanes at the same place form a group; a mask says which lanes those are (None: all of them). Of
several groups the one whose block comes first in the program's order runs next, so that lanes
which went different ways meet again (see `flow`); now and then the last one runs, so that none
starves. Lanes leave that race in three ways: they exit,
they wait at a barrier, or they wait for the other lanes of their warp before an instruction that
a warp performs together. When no group is left to run, barriers whose threads have all come open;
if none does, that is a deadlock and an error.

Source: PTX ISA 3 (machine model), 9.5 (divergence), 9.7.13 (barriers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.diagnostics import LegoError
from lego_mlir.sim.memory import Fault, Memory
from lego_mlir.sim.syntax import Instruction, Kernel, Module
from lego_mlir.sim.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.ends import Gather
    from lego_mlir.sim.program import Program

WARP = 32
FAIRNESS = 256
"""Every so many turns the last group runs instead of the first, so that a loop which waits for
what another thread of the wave does cannot keep it from doing it."""

Mask = Array | None


@dataclass(frozen=True, slots=True)
class Launch:
    """What all waves of a launch share.

    Attributes:
        grid, block: extents in x, y, z.
        dynamic_shared, shared: bytes of dynamic, and of all shared memory of one block.
        limit: steps that one wave may execute.
    """

    program: Program
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared: int
    shared: int
    limit: int

    def block_name(self, number: int) -> str:
        x, y, _ = self.grid
        return f"block ({number % x}, {number // x % y}, {number // (x * y)})"

    def thread_name(self, number: int) -> str:
        x, y, _ = self.block
        return f"thread ({number % x}, {number // x % y}, {number // (x * y)})"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Lanes at a barrier: which, for how many threads (None: all), and where they go on."""

    number: int
    count: int | None
    mask: Array
    after: int
    instruction: Instruction


class Wave:
    """The state of a few thread blocks in execution.

    Attributes:
        regs: of each register the bits in all lanes: an array of `lanes` elements, or of a single
            one where all lanes are known to hold the same. Never changed in place.
        mask: the lanes that execute now; None for all.
        blocks: number of the thread block in each slot.
        specials: special registers computed so far.
    """

    launch: Launch
    threads: int
    thread_of_lane: Array

    def __init__(self, launch: Launch, blocks: Array, memory: Memory) -> None:
        self.launch = launch
        self.program = launch.program
        self.memory = memory
        x, y, z = launch.block
        self.threads = x * y * z
        self.blocks = blocks
        self.lanes = self.threads * len(blocks)
        self.thread_of_lane = np.tile(np.arange(self.threads), len(blocks))
        self.block_of_lane = np.repeat(blocks, self.threads)
        # Warps are numbered through the wave; a block whose size is no multiple of 32 ends with a
        # partial warp.
        warps = -(-self.threads // WARP)
        slot = np.repeat(np.arange(len(blocks)), self.threads)
        self.warp_of_lane = slot * warps + self.thread_of_lane // WARP
        self.warps = warps * len(blocks)
        self.lane_in_warp = self.thread_of_lane % WARP
        self.regs: list[Array] = [
            np.full(1, 0 if kind.kind == "pred" else -1).astype(kind.storage)
            for kind in self.program.registers
        ]
        self.mask: Mask = None
        self.specials: dict[str, Array] = {}
        self.executed = 0
        self.alive = np.ones(self.lanes, np.bool_)
        self.ready: dict[int, Mask] = {0: None}
        self.parked: dict[int, Array] = {}
        self.waiting: list[Waiting] = []

    @property
    def module(self) -> Module:
        return self.program.module

    @property
    def kernel(self) -> Kernel:
        return self.program.kernel

    # --- running ---

    def run(self) -> None:
        """Run all blocks of the wave to their end.

        Raises:
            LegoError: a bad access, a trap, a deadlock, or too many steps; with its place.
        """
        blocks = self.program.blocks
        ready = self.ready
        limit = self.launch.limit
        turn = 0
        while ready or self.release():
            turn += 1
            at = max(ready) if turn % FAIRNESS == 0 else min(ready)
            self.mask = ready.pop(at)
            block = blocks[at]
            if block.gather is not None and not self.gathered(at, block.gather):
                continue
            self.executed += len(block.steps) + 1
            if self.executed > limit:
                raise self.error(
                    f"the kernel {self.kernel.name} has run {limit} instructions in "
                    f"{self.lane_name(self.first(self.mask))} and does not end",
                    block.instructions[0],
                    "look for a loop that never ends; sim.launch(..., limit=N) lets it run longer",
                )
            step_number = 0
            try:
                for step_number, step in enumerate(block.steps):  # noqa: B007
                    step(self)
            except Fault as fault:
                raise self.error(
                    f"{fault}, in {self.lane_name(fault.lane)}", block.instructions[step_number]
                ) from None
            block.end.run(self)

    def go(self, position: int, mask: Mask) -> None:
        """Put lanes where they run next; they join a group that is there already."""
        other = self.ready.get(position)
        if other is not None and mask is not None:
            mask = mask | other
        if mask is not None and mask.all():
            mask = None
        self.ready[position] = mask

    def go_on(self, after: int | None, mask: Mask) -> None:
        assert after is not None, "a kernel ends with an exit"
        self.go(after, mask)

    def split(self, holds: Array | None) -> tuple[Mask, Mask, bool, bool]:
        """Active lanes where the predicate holds, the others, and whether there are any."""
        mask = self.mask
        if holds is None:
            return mask, None, True, False
        if len(holds) == 1:
            return (mask, None, True, False) if holds[0] else (None, mask, False, True)
        yes = holds if mask is None else holds & mask
        no = ~holds if mask is None else mask & ~holds
        some, others = bool(yes.any()), bool(no.any())
        if not others:
            return mask, None, some, False
        return (yes, no, True, True) if some else (None, mask, False, True)

    def leave(self, mask: Mask) -> None:
        """These lanes exit."""
        self.alive = np.zeros_like(self.alive) if mask is None else self.alive & ~mask

    # --- waiting ---

    def arrive(
        self,
        number: Array,
        count: Array | None,
        after: int,
        mask: Mask,
        instruction: Instruction,
    ) -> None:
        """Lanes come to a barrier. Those of different barriers wait apart."""
        uniform = len(number) == 1 and (count is None or len(count) == 1)
        if uniform and count is None and mask is None:
            self.go(after, None)
            return
        everyone = np.ones(self.lanes, np.bool_) if mask is None else mask
        key = np.broadcast_to(number, self.lanes).astype(np.int64) << 32
        if count is not None:
            key = key | count.astype(np.int64)
        for k in np.unique(key[everyone]):
            threads = None if count is None else int(k) & 0xFFFFFFFF
            if threads is not None and (threads == 0 or threads % WARP):
                raise self.error(
                    f"a barrier for {threads} threads: the number must be a positive multiple "
                    f"of {WARP} (PTX ISA 9.7.13.1)",
                    instruction,
                )
            if int(k) >> 32 > 15:
                raise self.error(
                    f"barrier {int(k) >> 32}: a block has the barriers 0 to 15 (PTX ISA 9.7.13.1)",
                    instruction,
                )
            lanes = everyone & (key == k)
            self.waiting.append(Waiting(int(k) >> 32, threads, lanes, after, instruction))

    def release(self) -> bool:
        """Nothing runs: open what can be opened. False when all lanes have exited.

        Raises:
            LegoError: lanes wait for what cannot come.
        """
        for at, mask in list(self.parked.items()):
            # Others may have exited meanwhile, and exited lanes need not come.
            gather = self.program.blocks[at].gather
            assert gather is not None
            if self.complete(gather, mask).any():
                self.ready[at] = self.parked.pop(at)
        for number, count in {(w.number, w.count) for w in self.waiting}:
            self._open(number, count)
        if self.ready:
            return True
        if self.parked or self.waiting:
            raise self._deadlock()
        return False

    def _open(self, number: int, count: int | None) -> None:
        """Let those blocks pass whose threads have all come to a barrier."""
        here = [w for w in self.waiting if (w.number, w.count) == (number, count)]
        arrived = sum(self._per_block(w.mask) for w in here)
        needed = self._per_block(self.alive) if count is None else count
        opens = (arrived > 0) & (arrived % np.maximum(needed, 1) == 0)
        if not opens.any():
            return
        lanes = np.repeat(opens, self.threads)
        for w in here:
            self.waiting.remove(w)
            passing, staying = w.mask & lanes, w.mask & ~lanes
            if passing.any():
                self.go(w.after, passing)
            if staying.any():
                self.waiting.append(Waiting(number, count, staying, w.after, w.instruction))

    def _per_block(self, mask: Array) -> Array:
        counts: Array = mask.reshape(len(self.blocks), self.threads).sum(axis=1)
        return counts

    def gathered(self, at: int, gather: Gather) -> bool:
        """Before an instruction that a warp performs together: wait for the mates.

        The lanes whose mates have all come stay in the mask, the others are parked. False when
        none can run yet.
        """
        mask = self.mask
        if at in self.parked and mask is not None:
            mask = mask | self.parked.pop(at)
        if mask is None or mask.all():
            # Every lane of every warp is here.
            self.mask = None
            return True
        fine = self.complete(gather, mask)
        parked = mask & ~fine
        if parked.any():
            self.parked[at] = parked
        self.mask = fine
        return bool(fine.any())

    def complete(self, gather: Gather, mask: Array) -> Array:
        """Which of these lanes have with them all living lanes that their member mask names."""
        asking = mask
        if gather.guard is not None:
            asking = mask & gather.guard(self)
        members = np.broadcast_to(gather.members(self), self.lanes).astype(np.uint32)
        missing = members & self.warp_bits(self.alive) & ~self.warp_bits(asking)
        fine: Array = mask & (~asking | (missing == 0))
        return fine

    def warp_bits(self, mask: Mask) -> Array:
        """For each lane, as 32 bits, which lanes of its warp are in the mask."""
        lane, warp = self.lane_in_warp, self.warp_of_lane
        if mask is not None:
            lane, warp = lane[mask], warp[mask]
        # Sums of distinct powers of two below 2**32 are exact in float64.
        words = np.bincount(warp, np.exp2(lane), self.warps)
        value: Array = words.astype(np.uint32)[self.warp_of_lane]
        return value

    # --- errors ---

    def first(self, mask: Mask) -> int:
        return 0 if mask is None else int(np.argmax(mask))

    def lane_name(self, lane: int) -> str:
        thread = self.launch.thread_name(int(self.thread_of_lane[lane]))
        return f"{thread} of {self.launch.block_name(int(self.block_of_lane[lane]))}"

    def error(self, message: str, at: Instruction, hint: str | None = None) -> LegoError:
        return self.module.error(message, at.line, at.column, hint)

    def _deadlock(self) -> LegoError:
        """Name one stuck block, and what its threads wait for."""
        masks = [(w.mask, w.instruction) for w in self.waiting]
        masks += [(m, self._gather_of(at).instruction) for at, m in self.parked.items()]
        stuck = self.first(np.logical_or.reduce([mask for mask, _ in masks]))
        slot = stuck // self.threads
        mine = slice(slot * self.threads, (slot + 1) * self.threads)
        lines = []
        first: Instruction | None = None
        for mask, instruction in masks:
            if number := int(mask[mine].sum()):
                first = first or instruction
                lines.append(f"{number} wait at `{instruction}` (line {instruction.line})")
        if gone := self.threads - int(self.alive[mine].sum()):
            lines.append(f"{gone} have exited")
        assert first is not None
        return self.error(
            f"deadlock in {self.launch.block_name(int(self.blocks[slot]))}: of its {self.threads} "
            f"threads {', '.join(lines)}",
            first,
            "every thread that a barrier waits for must reach it",
        )

    def _gather_of(self, at: int) -> Gather:
        gather = self.program.blocks[at].gather
        assert gather is not None
        return gather
