"""The machine: a wave of CTAs that runs a program in lock step.

A *wave* is a few CTAs whose threads are the lanes of NumPy vectors: lane `cta_index * threads + t`
is thread `t` of the CTA with that index in the wave. The CTAs of a cluster are adjacent, ordered by
rank. CTAs of different clusters share only global memory, so running them in lock step is one of
the orders that a GPU may choose.

Lanes at the same basic block form a group; a mask holds its lanes (None: all). Of several groups,
the one whose basic block comes first in the program's order runs next, so that divergent lanes
reconverge (see `flow`). Every `FAIRNESS` iterations the last group runs, so that none starves. In
the random order (see `asynchronous`) any group, or some of its warps, runs next. A lane is in no
such group after it exits, while it waits at a barrier (see `barriers`), while it waits for the
other lanes of its warp before a warp-collective instruction, and while it stalls on an mbarrier or
on the cluster barrier (see `stalls`). When no group can run, barriers that can open are opened, and
asynchronous operations that a stalled lane waits for are performed. If no group can run after that,
it is a deadlock and an error.

Source: PTX ISA 3 (machine model), 9.5 (divergence), 9.7.13 (barriers).
"""

from __future__ import annotations

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
from lego_mlir.sim.machine.asynchronous import CompletionOrder, Queues
from lego_mlir.sim.machine.barriers import Barriers
from lego_mlir.sim.machine.basic_block_ends import Convergence
from lego_mlir.sim.machine.call_stack import CallStack
from lego_mlir.sim.machine.cluster_barrier import ClusterBarrier
from lego_mlir.sim.machine.mbarrier import Mbarriers
from lego_mlir.sim.machine.memory import Fault, Memory
from lego_mlir.sim.machine.observer import Observer
from lego_mlir.sim.machine.stalls import Stalls
from lego_mlir.sim.ptx.syntax import Instruction, Kernel, Module
from lego_mlir.sim.ptx.types import Array, Type

if TYPE_CHECKING:
    from lego_mlir.sim.machine.launch import LaunchState
    from lego_mlir.sim.ptx.basic_blocks import BasicBlock
    from lego_mlir.sim.ptx.program import Program

FAIRNESS = 256
"""Every so many iterations the last group runs instead of the first, so that a loop which waits for
another thread of the wave cannot starve it."""

_ALIKE = 0.9
"""How often, in the random order, the clusters of a wave choose the same warps to run. Each cluster
runs as randomly as alone, and its threads are at as many places as those of the wave: their groups
stay large. Of 124 planted mistakes, 6 seeds found 108 by wrong results alone, 104 if each cluster
chose its own warps, in a third of the time where waves have many CTAs."""

Mask = Array | None


@lru_cache(maxsize=64)
def _unwritten(program: Program) -> tuple[Array, ...]:
    """Return the initial contents of the registers, with one array for each type."""
    poison = {
        name: _poison(kind)
        for name, kind in {kind.name: kind for kind in program.registers}.items()
    }
    return tuple(poison[kind.name] for kind in program.registers)


def _poison(kind: Type) -> Array:
    if kind.kind == "pred":
        return np.zeros(1, np.bool_)
    return np.full(kind.bytes, 0xFF, np.uint8).view(kind.storage)


class Wave:
    """The state of a few CTAs in execution.

    Attributes:
        regs: for each register its bits: an array of `lanes` elements, or of a single one if all
            lanes hold the same value. Never changed in place.
        mask: the active lanes; None for all.
        ctas: linear id of each CTA of the wave.
        cluster_size: CTAs in a cluster; the CTA with index `i` has rank `i % cluster_size`.
        specials: special registers computed so far.
        progress: counts the events after which waiting lanes may continue.
    """

    launch: LaunchState
    threads: int
    cluster_size: int
    thread_of_lane: Array
    cta_index_of_lane: Array

    def __init__(
        self,
        launch: LaunchState,
        ctas: Array,
        memory: Memory,
        order: CompletionOrder,
        observer: Observer,
    ) -> None:
        self.launch = launch
        self.program = launch.program
        self.memory = memory
        self.order = order
        self.observer = observer
        self.threads = prod(launch.block)
        self.cluster_size = prod(launch.cluster)
        self.ctas = ctas
        self.lanes = self.threads * len(ctas)
        self.thread_of_lane = np.tile(np.arange(self.threads), len(ctas))
        self.cta_of_lane = np.repeat(ctas, self.threads)
        self.cta_index_of_lane = np.repeat(np.arange(len(ctas)), self.threads)
        # Warps are numbered in the wave; a CTA whose size is not a multiple of 32 ends with a
        # partial warp.
        warps = -(-self.threads // WARP_THREADS)
        self.warp_of_lane = self.cta_index_of_lane * warps + self.thread_of_lane // WARP_THREADS
        self.warps = warps * len(ctas)
        self.lane_in_warp = self.thread_of_lane % WARP_THREADS
        self.regs: list[Array] = list(_unwritten(self.program))
        self.mask: Mask = None
        self.specials: dict[str, Array] = {}
        self.executed = 0
        self.alive = np.ones(self.lanes, np.bool_)
        self.ready: dict[int, Mask] = {0: None}
        self.parked: dict[int, Array] = {}
        self.progress = 0
        self.calls = CallStack(self)
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
        """Run all CTAs of the wave to their end.

        Raises:
            LegoError: a bad access, a trap, a deadlock, or too many instructions; with its
                location.
        """
        blocks = self.program.basic_blocks
        iteration = 0
        self.observer.begins(self)
        while self.ready or self.release():
            iteration += 1
            at = self.select_lanes(iteration)
            block = blocks[at]
            index = 0
            try:
                if block.entry is not None and not block.entry.admits(self, at):
                    continue
                self.count(block)
                self.observer.entered(at, self.mask)
                for index, execute in enumerate(block.handlers):  # noqa: B007
                    execute(self)
                index = len(block.handlers)
                block.end.run(self)
            except Fault as fault:
                raise self.error_of(fault, block.instructions[index]) from None

    def count(self, block: BasicBlock) -> None:
        """Count the instructions of a basic block, and check the limits on them."""
        count = len(block.handlers) + 1
        self.executed += count
        if self.launch.progress is not None:
            self.launch.progress.check()
        if self.executed > self.launch.limit:
            raise self.error(
                f"the kernel {self.kernel.name} has run {self.launch.limit} instructions in "
                f"{self.lane_name(self.first(self.mask))} and does not end",
                block.instructions[0],
                f"look for a loop that never ends, or {how_to_raise('wave_instructions')}",
            )
        if not self.launch.budget.spend(count, self.lanes):
            raise self.error(
                f"the threads of the launch have run {current().instructions} instructions up to "
                f"{self.lane_name(self.first(self.mask))}, the limit instructions",
                block.instructions[0],
                how_to_raise("instructions"),
            )

    def select_lanes(self, iteration: int) -> int:
        """Set the mask to the lanes that run next; return their basic block."""
        if self.stalls.must_recheck:
            self.stalls.wake()
        ready, random = self.ready, self.order.random
        if random is None:
            at = max(ready) if iteration % FAIRNESS == 0 else min(ready)
            self.mask = ready.pop(at)
            return at
        if self.order.chance(0.25):
            self.queues.perform_random()
        at = list(ready)[random.integers(len(ready))]
        self.mask = mask = ready.pop(at)
        if self.order.chance(0.5):
            some = self.random_warps(random)[self.warp_of_lane] & self.active()
            rest = self.active() & ~some
            if some.any() and rest.any():
                ready[at] = rest
                mask = some
        self.mask = mask
        return at

    def random_warps(self, random: np.random.Generator) -> Array:
        """Return about half of the wave's warps, mostly the same ones of each cluster."""
        clusters = len(self.ctas) // self.cluster_size
        alike = clusters if self.order.chance(_ALIKE) else 1
        return np.tile(random.random(self.warps // alike) < 0.5, alike)

    def active(self) -> Array:
        """Return the mask as an array."""
        return self.active_in(self.mask)

    def active_in(self, mask: Mask) -> Array:
        """Return a mask as an array."""
        return np.ones(self.lanes, np.bool_) if mask is None else mask

    def make_ready(self, position: int, mask: Mask) -> None:
        """Add lanes to the group that is ready to run a basic block."""
        other = self.ready.get(position)
        if other is not None and mask is not None:
            mask = mask | other
        if mask is not None and mask.all():
            mask = None
        self.ready[position] = mask

    def continue_at(self, after: int | None, mask: Mask) -> None:
        assert after is not None, "a kernel ends with an exit"
        self.make_ready(after, mask)

    def split(self, holds: Array | None) -> tuple[Mask, Mask, bool, bool]:
        """Return the active lanes where a predicate holds, the others, and whether each has any."""
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
        """Exit these lanes."""
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
        """Open barriers and end stalls when no group can run; return False if all lanes exited.

        Raises:
            LegoError: a deadlock.
        """
        for at, mask in list(self.parked.items()):
            # Other lanes may have exited since, and need not arrive.
            gather = self.program.basic_blocks[at].entry
            assert isinstance(gather, Convergence)
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

    def wait_for_warp(self, at: int, gather: Convergence) -> bool:
        """Wait for the other lanes of the warp before a warp-collective instruction.

        Lanes whose warp is complete stay in the mask, the others are parked. Returns whether any
        lane can run.
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

    def complete(self, gather: Convergence, mask: Array) -> Array:
        """Return those of these lanes for which all living lanes of their member mask arrived."""
        asking = mask
        if gather.guard is not None:
            asking = mask & gather.guard(self)
        members = np.broadcast_to(gather.members(self), self.lanes).astype(np.uint32)
        missing = members & self.warp_bits(self.alive) & ~self.warp_bits(asking)
        fine: Array = mask & (~asking | (missing == 0))
        if gather.warpgroup:
            fine = fine & ~self.warpgroups.whole_warpgroups(self.alive & ~mask)
        return fine

    def warp_bits(self, mask: Mask) -> Array:
        """Return, for each lane, the lanes of its warp that are in the mask, as 32 bits."""
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
        return f"{thread} of {self.launch.cta_name(int(self.cta_of_lane[lane]))}"

    def cta_name(self, cta_index: int) -> str:
        return self.launch.cta_name(int(self.ctas[cta_index]))

    def location_name(self, instruction: Instruction) -> str:
        """Return an instruction's location: `line 40`, `line 40, from transpose.mlir:34:9`."""
        source = self.module.source_of(instruction)
        return f"line {instruction.line}" + (f", from {source}" if source else "")

    def error_of(self, fault: Fault, at: Instruction) -> LegoError:
        """Return the error of a fault in an instruction."""
        return self.error(f"{fault}, in {self.lane_name(fault.lane)}", at, fault.hint)

    def error(self, message: str, at: Instruction, hint: str | None = None) -> LegoError:
        """Return an error located at an instruction."""
        return self.module.error_at(at, message, hint)
