"""The machine: a wave of thread blocks that runs a program in lock step.

A *wave* is a few thread blocks whose threads are the lanes of NumPy vectors: lane
`slot * threads + t` is thread `t` of the block in slot number `slot`. The blocks of a cluster have
slots next to each other, by their rank. Blocks of different clusters share nothing but global
memory, so running them side by side is one of the orders a GPU may choose.

Lanes at the same place form a group; a mask says which lanes those are (None: all of them). Of
several groups the one whose block comes first in the program's order runs next, so that lanes
which went different ways meet again (see `flow`); now and then the last one runs, so that none
starves. In the random order (see `asynchronous`) any group runs next, or some warps of it. Lanes
leave that race in four ways: they exit, they wait at a barrier (see `barriers`), they wait for the
other lanes of their warp before an instruction that a warp performs together, or they stall before
one that waits for an mbarrier or for the cluster (see `stalls`). When no group is left to run,
what can be opened is opened, and asynchronous operations that would let a stalled lane go on are
performed; if that helps none, it is a deadlock and an error.

Source: PTX ISA 3 (machine model), 9.5 (divergence), 9.7.13 (barriers).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.limits import current, how_to_raise
from lego_mlir.sim.checks.deadlock import deadlock
from lego_mlir.sim.checks.setmaxnreg_grants import Grants
from lego_mlir.sim.checks.warpgroup import Warpgroups
from lego_mlir.sim.machine.asynchronous import Order, Queues
from lego_mlir.sim.machine.barriers import Barriers
from lego_mlir.sim.machine.block_ends import Gather
from lego_mlir.sim.machine.cluster_barrier import ClusterBarrier
from lego_mlir.sim.machine.mbarrier import Mbarriers
from lego_mlir.sim.machine.memory import Fault, Memory
from lego_mlir.sim.machine.observer import Observer
from lego_mlir.sim.machine.stalls import Stalls
from lego_mlir.sim.ptx.syntax import Instruction, Kernel, Module
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.ptx.program import Block, Program

FAIRNESS = 256
"""Every so many turns the last group runs instead of the first, so that a loop which waits for
what another thread of the wave does cannot keep it from doing it."""

Dim3 = tuple[int, int, int]
Mask = Array | None


@dataclass(frozen=True, slots=True)
class Launch:
    """What all waves of a launch share.

    Attributes:
        grid, block, cluster: extents in x, y, z: blocks, threads of a block, blocks of a cluster.
        clustered: whether the launch or the kernel asks for clusters.
        dynamic_shared, shared: bytes of dynamic, and of all shared memory of one block.
        limit: steps that one wave may execute.
        budget: what all waves together may execute.
    """

    program: Program
    grid: Dim3
    block: Dim3
    cluster: Dim3
    clustered: bool
    dynamic_shared: int
    shared: int
    limit: int
    budget: Budget = field(default_factory=lambda: Budget())

    def block_name(self, number: int) -> str:
        x, y, _ = self.grid
        return f"block ({number % x}, {number // x % y}, {number // (x * y)})"

    def thread_name(self, number: int) -> str:
        x, y, _ = self.block
        return f"thread ({number % x}, {number // x % y}, {number // (x * y)})"


class Budget:
    """Instructions that the threads of one or more launches may still execute.

    A step of a wave takes NumPy some time however few its lanes are, so it counts for `_LEAST`.
    """

    _LEAST = 1024

    def __init__(self) -> None:
        self.left = current().instructions

    def spend(self, steps: int, lanes: int) -> bool:
        """Take `steps` of so many lanes; whether there were as many left."""
        self.left -= steps * max(lanes, self._LEAST)
        return self.left >= 0


@lru_cache(maxsize=64)
def _unwritten(program: Program) -> tuple[Array, ...]:
    """What the registers hold before anything is written, one array for all of a type."""
    poison = {
        name: np.full(1, 0 if kind.kind == "pred" else -1).astype(kind.storage)
        for name, kind in {kind.name: kind for kind in program.registers}.items()
    }
    return tuple(poison[kind.name] for kind in program.registers)


class Wave:
    """The state of a few thread blocks in execution.

    Attributes:
        regs: of each register the bits in all lanes: an array of `lanes` elements, or of a single
            one where all lanes are known to hold the same. Never changed in place.
        mask: the lanes that execute now; None for all.
        blocks: number of the thread block in each slot.
        cluster_size: blocks of a cluster; slot `s` has rank `s % cluster_size`.
        specials: special registers computed so far.
        progress: counts whatever may let others go on.
    """

    launch: Launch
    threads: int
    cluster_size: int
    thread_of_lane: Array
    slot_of_lane: Array

    def __init__(
        self,
        launch: Launch,
        blocks: Array,
        memory: Memory,
        order: Order,
        observer: Observer,
    ) -> None:
        self.launch = launch
        self.program = launch.program
        self.memory = memory
        self.order = order
        self.observer = observer
        self.threads = prod(launch.block)
        self.cluster_size = prod(launch.cluster)
        self.blocks = blocks
        self.lanes = self.threads * len(blocks)
        self.thread_of_lane = np.tile(np.arange(self.threads), len(blocks))
        self.block_of_lane = np.repeat(blocks, self.threads)
        self.slot_of_lane = np.repeat(np.arange(len(blocks)), self.threads)
        # Warps are numbered through the wave; a block whose size is no multiple of 32 ends with a
        # partial warp.
        warps = -(-self.threads // WARP_THREADS)
        self.warp_of_lane = self.slot_of_lane * warps + self.thread_of_lane // WARP_THREADS
        self.warps = warps * len(blocks)
        self.lane_in_warp = self.thread_of_lane % WARP_THREADS
        self.regs: list[Array] = list(_unwritten(self.program))
        self.mask: Mask = None
        self.specials: dict[str, Array] = {}
        self.executed = 0
        self.alive = np.ones(self.lanes, np.bool_)
        self.ready: dict[int, Mask] = {0: None}
        self.parked: dict[int, Array] = {}
        self.progress = 0
        self.stalls = Stalls(self)
        self.barriers = Barriers(self)
        self.cluster = ClusterBarrier(self)
        self.mbarriers = Mbarriers(self)
        self.queues = Queues(self)
        self.warpgroups = Warpgroups(self)
        self.grants = Grants(self)

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
        turn = 0
        self.observer.begins(self)
        while self.ready or self.release():
            turn += 1
            at = self.turn(turn)
            block = blocks[at]
            step_number = 0
            try:
                if block.entry is not None and not block.entry.admits(self, at):
                    continue
                self.count(block)
                self.observer.entered(at, self.mask)
                for step_number, step in enumerate(block.steps):  # noqa: B007
                    step(self)
                step_number = len(block.steps)
                block.end.run(self)
            except Fault as fault:
                raise self.blame(fault, block.instructions[step_number]) from None

    def count(self, block: Block) -> None:
        """Add to the number of executed instructions, which has a limit."""
        steps = len(block.steps) + 1
        self.executed += steps
        if self.executed > self.launch.limit:
            raise self.error(
                f"the kernel {self.kernel.name} has run {self.launch.limit} instructions in "
                f"{self.lane_name(self.first(self.mask))} and does not end",
                block.instructions[0],
                f"look for a loop that never ends, or {how_to_raise('wave_instructions')}",
            )
        if not self.launch.budget.spend(steps, self.lanes):
            raise self.error(
                f"the threads of the launch have run {current().instructions} instructions up to "
                f"{self.lane_name(self.first(self.mask))}, the limit instructions",
                block.instructions[0],
                how_to_raise("instructions"),
            )

    def turn(self, number: int) -> int:
        """Take the lanes that run next; where they are."""
        if self.stalls.stirred:
            self.stalls.wake()
        ready, random = self.ready, self.order.random
        if random is None:
            at = max(ready) if number % FAIRNESS == 0 else min(ready)
            self.mask = ready.pop(at)
            return at
        if self.order.chance(0.25):
            self.queues.stir()
        at = list(ready)[random.integers(len(ready))]
        self.mask = mask = ready.pop(at)
        some = (random.random(self.warps) < 0.5)[self.warp_of_lane] & self.active()
        if self.order.chance(0.5) and some.any():
            rest = self.active() & ~some
            if rest.any():
                ready[at] = rest
                mask = some
        self.mask = mask
        return at

    def active(self) -> Array:
        """The mask as an array."""
        return np.ones(self.lanes, np.bool_) if self.mask is None else self.mask

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
        before = self.alive
        self.alive = np.zeros_like(before) if mask is None else before & ~mask
        self.progress += 1
        self.observer.exited(before & ~self.alive)
        gone: Array = np.logical_not(self.alive.reshape(-1, self.threads).any(axis=1))
        if gone.any():
            self.queues.exited(np.flatnonzero(gone))
            self.memory.exited = gone
        self.cluster.open()

    # --- waiting ---

    def release(self) -> bool:
        """Nothing runs: open what can be opened. False when all lanes have exited.

        Raises:
            LegoError: lanes wait for what cannot come.
        """
        for at, mask in list(self.parked.items()):
            # Others may have exited meanwhile, and exited lanes need not come.
            gather = self.program.blocks[at].entry
            assert isinstance(gather, Gather)
            if self.complete(gather, mask).any():
                self.ready[at] = self.parked.pop(at)
        self.barriers.open_all()
        if self.ready:
            return True
        self.stalls.resolve()
        if self.ready:
            return True
        waiting = any(x.after is not None for x in self.barriers.waiting)
        if self.parked or self.stalls.lanes or waiting:
            raise deadlock(self)
        self.queues.finish()
        self.warpgroups.finish()
        self.grants.finish()
        return False

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
        if gather.warpgroup:
            fine = fine & ~self.warpgroups.widened(self.alive & ~mask)
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

    def slot_name(self, slot: int) -> str:
        return self.launch.block_name(int(self.blocks[slot]))

    def place(self, instruction: Instruction) -> str:
        """Where an instruction stands: `line 40`, `line 40, from transpose.mlir:34:9`."""
        source = self.module.source_of(instruction)
        return f"line {instruction.line}" + (f", from {source}" if source else "")

    def blame(self, fault: Fault, at: Instruction) -> LegoError:
        """The error of a fault in an instruction."""
        return self.error(f"{fault}, in {self.lane_name(fault.lane)}", at, fault.hint)

    def error(self, message: str, at: Instruction, hint: str | None = None) -> LegoError:
        """An error at an instruction."""
        return self.module.error_at(at, message, hint)
