"""Asynchronous operations and the order in which they complete.

A GPU guarantees only that an asynchronous copy or `wgmma` is complete once the program has waited
for it. A launch has a `CompletionOrder`, which decides when the simulator performs operations:

- `late`: when a wait requires it, or when nothing else can run. If the program misses a wait, it
  reads old data; if it reuses a source too early, the copy gets the new data.
- `early`: at issue. If the program issues an operation before its target is free, the operation
  overwrites data that is still needed.
- `random`: at a random time in between, by seed. The warps of a CTA also run apart.

Each kind of operation has a `Queue` in the wave: `copies` (cp.async), `stores` (bulk copies in
bulk groups), `loads` (bulk copies that complete on an mbarrier), `matrix` (wgmma). Threads close
groups by `commit` and wait for all but the newest groups by `wait`; each lane has its own groups.
An operation that a warp or warpgroup issues collectively belongs to all its lanes.

    def issue(w: Wave) -> None:                  # the handler of cp.async
        target, source = address(w), pointer(w)  # operands are read at issue
        def perform(w: Wave) -> None:            # w.mask: the lanes to perform it for
            ...
        w.queues.copies.issue(instruction, perform)

A stage such as `perform` above is a handler that runs later, with `w.mask` set to all or some of
the lanes that issued the operation; it runs once for each lane. Register arrays are never changed
in place, so operands that were read at issue keep their values. An operation may have two stages (a
bulk store reads its source, then writes its target); `wait(..., stage=1)` waits for the first one
only (`cp.async.bulk.wait_group.read`).

Source: PTX ISA 9.7.9.25 (asynchronous copies, their completion), 9.7.15.7 (wgmma groups).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from lego_mlir.diagnostics import LegoError
from lego_mlir.sim.machine.memory import Fault
from lego_mlir.sim.ptx.syntax import Instruction
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

Stage = Callable[["Wave"], None]
Kind = Literal["late", "early", "random"]


class CompletionOrder:
    """The completion order of asynchronous operations, and the choice of the lanes to run.

    Args:
        kind: `late`, `early` or `random`.
        seed: seed of `random`; a seed reproduces its run.

    Raises:
        LegoError: `kind` is not an order.
    """

    def __init__(self, kind: str, seed: int | tuple[int, ...] = 0) -> None:
        if kind not in ("late", "early", "random"):
            raise LegoError(
                f"the simulator has no order {kind!r}", hint="its orders are late, early and random"
            )
        self.kind = kind
        self.random = np.random.default_rng(seed) if kind == "random" else None

    def chance(self, probability: float) -> bool:
        """Return True with a probability in the random order, else False."""
        return self.random is not None and self.random.random() < probability

    def performs_immediately(self) -> bool:
        """Return whether an operation is performed at its issue."""
        return self.kind == "early" or self.chance(0.25)


@dataclass(eq=False, slots=True)
class Operation:
    """One execution of an asynchronous instruction, by some lanes.

    Attributes:
        instruction: for errors.
        stages: its handlers, performed one after the other.
        remaining: for each stage, the lanes for which it has not been performed.
        unwaited: the lanes that have not waited for it.
        group: for each lane, the number of its group.
        signals: the mbarriers that it completes on, as words of shared memory (see `mbarrier`):
            one row for each lane, -1 for none.
        ctas: indices in the wave of the CTAs whose shared memory the first stage accesses, in the
            same shape; they must not exit before.
        after: whether earlier operations of its lanes are performed first.
        is_pending: whether it has not been performed for some lanes.
        is_unwaited: whether some lanes have not waited for it.
    """

    instruction: Instruction
    stages: tuple[Stage, ...]
    remaining: list[Array]
    unwaited: Array
    group: Array
    signals: Array | None = None
    ctas: Array | None = None
    after: bool = False
    is_pending: bool = True
    is_unwaited: bool = True

    def note_performed(self, stage: int, lanes: Array) -> None:
        """Note that a stage has been performed for these lanes."""
        self.remaining[stage] = self.remaining[stage] & ~lanes
        if stage == len(self.stages) - 1:
            self.is_pending = bool(self.remaining[stage].any())

    def note_waited(self, lanes: Array) -> None:
        """Note that these lanes have waited for it."""
        self.unwaited = self.unwaited & ~lanes
        self.is_unwaited = bool(self.unwaited.any())


@dataclass(eq=False, slots=True)
class Queue:
    """The operations of one kind that the wave issued and has not waited for.

    Attributes:
        in_order: operations of a lane are performed in the order of their issue, and for its
            whole warpgroup (wgmma).
        groups: the number of groups that each lane committed.
    """

    wave: Wave
    in_order: bool = False
    operations: list[Operation] = field(default_factory=list)
    groups: Array = field(init=False)

    def __post_init__(self) -> None:
        self.groups = np.zeros(self.wave.lanes, np.int32)

    def issue(
        self,
        instruction: Instruction,
        *stages: Stage,
        signals: Array | None = None,
        ctas: Array | None = None,
        after: bool = False,
    ) -> None:
        """Issue an operation of the active lanes, in the group that they commit next.

        The arguments are fields of `Operation`.
        """
        lanes = self.wave.active()
        remaining = [lanes] * len(stages)
        operation = Operation(
            instruction, stages, remaining, lanes, self.groups, signals, ctas, after
        )
        self.operations.append(operation)
        self.wave.observer.issued(operation)
        if self.wave.order.performs_immediately():
            self.perform(operation, lanes)
            self.retire()

    def commit(self) -> None:
        """Close a group of the active lanes."""
        mask = self.wave.mask
        self.groups = self.groups + (1 if mask is None else mask)

    def wait(self, most: int = 0, *, stage: int | None = None) -> None:
        """Wait, in the active lanes, until at most their `most` newest groups are pending.

        Args:
            most: number of groups of each lane that may stay pending.
            stage: number of stages to wait for; None: all.
        """
        self._wait(self.groups - most, stage)

    def drain(self) -> None:
        """Wait, in the active lanes, for all operations, whether in a group or not."""
        self._wait(self.groups + 1, None)

    def _wait(self, newer: Array, stage: int | None) -> None:
        mask = self.wave.active()
        for operation in self._ordered():
            lanes = mask & operation.unwaited & (operation.group < newer)
            if not lanes.any():
                continue
            self.perform(operation, lanes, stage)
            self.wave.observer.waited(operation, lanes, stage)
            if stage is None:
                operation.note_waited(lanes)
        self.retire()

    def perform(self, operation: Operation, lanes: Array, stage: int | None = None) -> None:
        """Perform the remaining stages of an operation for some lanes, `stage` of them at most.

        Raises:
            LegoError: a bad access, located at the operation's instruction.
        """
        if self.in_order:
            lanes = self.wave.warpgroups.whole_warpgroups(lanes)
        if self.in_order or operation.after:
            for earlier in self.operations[: self.operations.index(operation)]:
                self._perform(earlier, lanes, stage)
                if operation.after:
                    earlier.note_waited(lanes)
        self._perform(operation, lanes, stage)

    def _perform(self, operation: Operation, lanes: Array, stage: int | None) -> None:
        wave = self.wave
        mask = wave.mask
        for number, step in enumerate(operation.stages[:stage]):
            performing = operation.remaining[number] & lanes
            if not performing.any():
                continue
            operation.note_performed(number, performing)
            wave.mask = None if performing.all() else performing
            wave.progress += 1
            wave.observer.performed(operation, number, performing)
            try:
                step(wave)
            except Fault as fault:
                raise wave.error_of(fault, operation.instruction) from None
            finally:
                wave.mask = mask
            wave.observer.finished(operation)
        if operation.signals is not None:
            # Its threads wait on the mbarrier instead.
            operation.note_waited(lanes)

    def pending(self) -> Iterator[Operation]:
        """Return the operations that are not complete in all their lanes, in order of issue."""
        return (op for op in self.operations if op.is_pending)

    def _ordered(self) -> list[Operation]:
        """Return the operations, shuffled if the order is random and the kind allows it."""
        found = list(self.operations)
        if self.wave.order.random is not None and not self.in_order:
            self.wave.order.random.shuffle(found)
        return found

    def retire(self) -> None:
        """Remove the operations that are complete and waited for."""
        self.operations = [op for op in self.operations if op.is_pending or op.is_unwaited]


class Queues:
    """All queues of a wave."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.copies = Queue(wave)
        self.stores = Queue(wave)
        self.loads = Queue(wave)
        self.matrix = Queue(wave, in_order=True)
        self.all = (self.copies, self.stores, self.loads, self.matrix)

    def perform_random(self) -> None:
        """Perform a random operation for some of its lanes (random order only)."""
        random = self.wave.order.random
        assert random is not None
        found = [(queue, op) for queue in self.all for op in queue.pending()]
        if found:
            queue, operation = found[random.integers(len(found))]
            lanes = operation.remaining[-1]
            some = lanes & (random.random(self.wave.warps) < 0.5)[self.wave.warp_of_lane]
            stage = int(random.integers(len(operation.stages))) + 1
            queue.perform(operation, some if some.any() else lanes, stage)
            queue.retire()

    def signal(self, awaited: Array) -> bool:
        """Perform one operation that completes on one of these mbarriers; False if none does."""
        random = self.wave.order.random
        found = []
        for queue in (self.copies, self.loads):
            for operation in queue.pending():
                if operation.signals is None:
                    continue
                hits = np.isin(operation.signals, awaited).reshape(self.wave.lanes, -1).any(axis=1)
                lanes = operation.remaining[-1] & hits
                if lanes.any():
                    found.append((queue, operation, lanes))
        if not found:
            return False
        queue, operation, lanes = found[0 if random is None else random.integers(len(found))]
        queue.perform(operation, lanes)
        queue.retire()
        return True

    def exited(self, ctas: Array) -> None:
        """Check, when CTAs of the wave exit, that no pending operation needs their shared memory.

        Raises:
            LegoError: one does.
        """
        for queue in self.all:
            for operation in queue.pending():
                if operation.ctas is None:
                    continue
                hits = np.isin(operation.ctas, ctas)
                hits = hits.reshape(self.wave.lanes, -1) & operation.remaining[0][:, None]
                if hits.any():
                    lane, which = np.argwhere(hits)[0]
                    cta = int(operation.ctas.reshape(self.wave.lanes, -1)[lane, which])
                    raise self.wave.error(
                        f"{self.wave.cta_name(cta)} exits while its shared memory is in use by "
                        f"{operation.instruction.opcode}, issued by {self.wave.lane_name(lane)}",
                        operation.instruction,
                        "before it exits, wait on the mbarrier of each bulk load, and for the "
                        "groups of bulk stores (cp.async.bulk.wait_group.read 0)",
                    )

    def finish(self) -> None:
        """Perform, at the end of the wave, the operations that no thread waited for."""
        for queue in self.all:
            for operation in list(queue.pending()):
                queue.perform(operation, operation.remaining[-1])
