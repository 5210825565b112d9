"""Asynchronous operations: issued now, performed when the program waits, or any time before.

A GPU promises of an asynchronous copy or matrix product only that it is done once the program has
waited for it. So a launch has an `Order`, which decides when the machine does it:

- `late`: when a wait names it, or when nothing else can run. A program that forgets a wait sees
  old data, and one that reuses a source too early spoils the copy.
- `early`: when it is issued. A program that issues one before its target is free spoils the target.
- `random`: at some moment between, by seed; warps of a block drift apart as well.

Operations of one kind stand in one `Queue` of the wave: `copies` (cp.async), `stores` (bulk copies
in bulk groups), `loads` (bulk copies that complete on an mbarrier), `matrix` (wgmma). Threads put
theirs in groups by `commit` and wait for all but the newest groups by `wait`; each lane has groups
of its own. An operation that a warp or warpgroup issues together is one of all its lanes.

    def issue(w: Wave) -> None:                  # the step of cp.async
        target, source = address(w), pointer(w)  # operands are read when it is issued
        def perform(w: Wave) -> None:            # w.mask: the lanes whose part is done now
            ...
        w.queues.copies.issue(instruction, perform)

A stage such as `perform` above is a step like any other, run later with `w.mask` set to lanes that
issued the operation; all of them or some of them, each lane once. Arrays of registers are never
changed in place, so what a reader gave at issue stays as it was. An operation may have two stages
(a bulk store reads its source, then writes its target), and `wait(..., stage=1)` waits for the
first one only (`cp.async.bulk.wait_group.read`).

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


class Order:
    """When asynchronous operations are performed, and which lanes run next.

    Args:
        kind: `late`, `early` or `random`.
        seed: of `random`; the same seed gives the same run.

    Raises:
        LegoError: no such order.
    """

    def __init__(self, kind: str, seed: int | tuple[int, ...] = 0) -> None:
        if kind not in ("late", "early", "random"):
            raise LegoError(
                f"the simulator has no order {kind!r}", hint="it has late, early and random"
            )
        self.kind = kind
        self.random = np.random.default_rng(seed) if kind == "random" else None

    def chance(self, probability: float) -> bool:
        """Whether to do what only the random order does."""
        return self.random is not None and self.random.random() < probability

    def now(self) -> bool:
        """Whether an operation is performed as soon as it is issued."""
        return self.kind == "early" or self.chance(0.25)


@dataclass(eq=False, slots=True)
class Operation:
    """One execution of an asynchronous instruction, by some lanes.

    Attributes:
        instruction: for errors.
        stages: what it does, in turn.
        left: for each stage the lanes whose part is still to be performed.
        unwaited: the lanes whose thread has not waited for it.
        group: number of the group of each lane that it belongs to.
        signals: the mbarriers that it completes on, as words of shared memory (see `mbarrier`):
            one row for each lane, -1 for none.
        slots: blocks of the wave whose shared memory the first stage touches, in the same shape;
            they must not exit before.
        after: whether it is performed only after all that its lanes have issued before it.
    """

    instruction: Instruction
    stages: tuple[Stage, ...]
    left: list[Array]
    unwaited: Array
    group: Array
    signals: Array | None = None
    slots: Array | None = None
    after: bool = False


@dataclass(eq=False, slots=True)
class Queue:
    """The operations of one kind that the wave has issued and not yet waited for.

    Attributes:
        in_order: operations of a lane are performed in the order of their issue, and for its
            whole warpgroup (wgmma).
        groups: number of groups that each lane has committed.
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
        slots: Array | None = None,
        after: bool = False,
    ) -> None:
        """The active lanes issue an operation; it joins the group that they commit next.

        The arguments are fields of `Operation`.
        """
        lanes = self.wave.active()
        left = [lanes] * len(stages)
        operation = Operation(instruction, stages, left, lanes, self.groups, signals, slots, after)
        self.operations.append(operation)
        self.wave.observer.issued(operation)
        if self.wave.order.now():
            self.perform(operation, lanes)
            self.retire()

    def commit(self) -> None:
        """The active lanes close a group."""
        mask = self.wave.mask
        self.groups = self.groups + (1 if mask is None else mask)

    def wait(self, most: int = 0, *, stage: int | None = None) -> None:
        """The active lanes wait until at most their `most` newest groups are left.

        Args:
            most: groups of each lane that may go on.
            stage: wait until so many stages are done; None for all.
        """
        self._wait(self.groups - most, stage)

    def drain(self) -> None:
        """The active lanes wait for all they have issued, whether in a group or not."""
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
                operation.unwaited = operation.unwaited & ~lanes
        self.retire()

    def perform(self, operation: Operation, lanes: Array, stage: int | None = None) -> None:
        """Perform what is left of an operation for some lanes, up to a number of stages.

        Raises:
            LegoError: a bad access, at the place of the operation's instruction.
        """
        if self.in_order:
            lanes = self.wave.warpgroups.widened(lanes)
        if self.in_order or operation.after:
            for earlier in self.operations[: self.operations.index(operation)]:
                self._perform(earlier, lanes, stage)
                if operation.after:
                    earlier.unwaited = earlier.unwaited & ~lanes
        self._perform(operation, lanes, stage)

    def _perform(self, operation: Operation, lanes: Array, stage: int | None) -> None:
        wave = self.wave
        mask = wave.mask
        for number, step in enumerate(operation.stages[:stage]):
            now = operation.left[number] & lanes
            if not now.any():
                continue
            operation.left[number] = operation.left[number] & ~now
            wave.mask = None if now.all() else now
            wave.progress += 1
            wave.observer.performed(operation, number, now)
            try:
                step(wave)
            except Fault as fault:
                raise wave.blame(fault, operation.instruction) from None
            finally:
                wave.mask = mask
            wave.observer.finished(operation)
        if operation.signals is not None:
            # Who waits for it waits for the mbarrier.
            operation.unwaited = operation.unwaited & ~lanes

    def pending(self) -> Iterator[Operation]:
        """The operations that are not performed in all their lanes, in the order of their issue."""
        return (op for op in self.operations if op.left[-1].any())

    def _ordered(self) -> list[Operation]:
        """The operations, in random order where the order is random and the kind allows it."""
        found = list(self.operations)
        if self.wave.order.random is not None and not self.in_order:
            self.wave.order.random.shuffle(found)
        return found

    def retire(self) -> None:
        """Forget the operations that are performed and waited for."""
        self.operations = [op for op in self.operations if op.left[-1].any() or op.unwaited.any()]


class Queues:
    """All queues of a wave; what is performed without that a wait asks for it."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.copies = Queue(wave)
        self.stores = Queue(wave)
        self.loads = Queue(wave)
        self.matrix = Queue(wave, in_order=True)
        self.all = (self.copies, self.stores, self.loads, self.matrix)

    def stir(self) -> None:
        """Perform a part of any operation, as a turn of the random order may."""
        random = self.wave.order.random
        assert random is not None
        found = [(queue, op) for queue in self.all for op in queue.pending()]
        if found:
            queue, operation = found[random.integers(len(found))]
            lanes = operation.left[-1]
            some = lanes & (random.random(self.wave.warps) < 0.5)[self.wave.warp_of_lane]
            stage = int(random.integers(len(operation.stages))) + 1
            queue.perform(operation, some if some.any() else lanes, stage)
            queue.retire()

    def signal(self, awaited: Array) -> bool:
        """Perform one operation that completes on one of these mbarriers. False: there is none."""
        random = self.wave.order.random
        found = []
        for queue in (self.copies, self.loads):
            for operation in queue.pending():
                if operation.signals is None:
                    continue
                hits = np.isin(operation.signals, awaited).reshape(self.wave.lanes, -1).any(axis=1)
                lanes = operation.left[-1] & hits
                if lanes.any():
                    found.append((queue, operation, lanes))
        if not found:
            return False
        queue, operation, lanes = found[0 if random is None else random.integers(len(found))]
        queue.perform(operation, lanes)
        queue.retire()
        return True

    def exited(self, slots: Array) -> None:
        """Blocks of the wave have exited; what is in flight must not need their shared memory.

        Raises:
            LegoError: it does.
        """
        for queue in self.all:
            for operation in queue.pending():
                if operation.slots is None:
                    continue
                hits = np.isin(operation.slots, slots)
                hits = hits.reshape(self.wave.lanes, -1) & operation.left[0][:, None]
                if hits.any():
                    lane, which = np.argwhere(hits)[0]
                    slot = int(operation.slots.reshape(self.wave.lanes, -1)[lane, which])
                    raise self.wave.error(
                        f"{self.wave.slot_name(slot)} exits while its shared memory is in use by "
                        f"{operation.instruction.opcode}, issued by {self.wave.lane_name(lane)}",
                        operation.instruction,
                        "before it exits, wait for the mbarrier of each bulk load, and for the "
                        "groups of bulk stores (cp.async.bulk.wait_group.read 0)",
                    )

    def finish(self) -> None:
        """The wave is done: perform what nobody has waited for."""
        for queue in self.all:
            for operation in list(queue.pending()):
                queue.perform(operation, operation.left[-1])
