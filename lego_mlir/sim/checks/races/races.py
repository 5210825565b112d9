"""The decision whether accesses race, and the reports of those that do.

Two accesses of one address race if different agents make them, at least one writes, they are not
both atomic, and neither happens before the other (see `ordering`). This does not depend on the
order in which this run performs them, so one run finds every race among the accesses that it makes.

Lanes of one warp that write the same address by one instruction do not race: one of them wins.
Otherwise only `bar.warp.sync` and the barriers order the lanes of a warp. Threads that write the
same value get a `LegoWarning`, and no error: every order has the same result.

Source: PTX ISA 8 (memory consistency).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from lego_mlir.diagnostics import LegoWarning
from lego_mlir.sim.checks.races.access_log import SAME, WRITE, AccessEvent
from lego_mlir.sim.checks.races.ordering import Ordering
from lego_mlir.sim.checks.races.shadow_memory import Conflict, HappensBefore, ShadowMemory
from lego_mlir.sim.checks.used_elements import used_elements
from lego_mlir.sim.machine.memory import Buffer, Fault, MemoryAccess
from lego_mlir.sim.ptx.types import UNSIGNED, Array


@dataclass(frozen=True, slots=True, eq=False)
class CheckedMemory:
    """Memory whose accesses are checked.

    Attributes:
        shadow, buffer: its shadow, and its bytes.
        name: names a byte of it, for errors.
        agent: names who made an earlier access, for errors, by `AccessEvent.threads`.
        remedy: says what would order two accesses: of an event, and an earlier one.
    """

    shadow: ShadowMemory
    buffer: Buffer
    name: Callable[[int], str]
    agent: Callable[[int], str]
    remedy: Callable[[AccessEvent, Conflict], str]

    def name_of(self, event: AccessEvent, at: int) -> str:
        """Return the name of the first byte of an element of an event."""
        return self.name(self.shadow.byte(int(event.granules[at])))

    def stored_before(self, event: AccessEvent) -> Array:
        """Return the bytes of each element before a write: (elements, granule)."""
        step = self.shadow.granule
        data = self.buffer.data
        if len(data) % step == 0:
            found: Array = data.reshape(-1, step)[event.granules]
            return found
        bytes_of: Array = event.granules[:, None] * step + np.arange(step)
        return np.take(data, bytes_of, mode="clip")


class Races(Ordering):
    """Finds the races of one wave; raises a `Fault` at the second of two accesses that race."""

    def _expanded(
        self, access: MemoryAccess, index: Array, lanes: Array | None
    ) -> tuple[MemoryAccess, Array, Array]:
        """Return an access with one index for each lane, and only the elements that are used.

        Compilers widen loads: of `ld.shared.v4 {a, b, c, d}` the program may need three elements.
        """
        wave = self.wave
        if lanes is None:
            lanes = np.flatnonzero(wave.active()) if len(index) == 1 else np.arange(wave.lanes)
        index = np.broadcast_to(index, len(lanes))
        used = None
        if access.count > 1 and not access.writes:
            used = used_elements(wave.program).get(id(access.instruction))
        if used is None:
            return access, index, lanes
        single = replace(access, count=1)
        return single, (index[:, None] + used).reshape(-1), np.repeat(lanes, len(used))

    def _turns(self, access: MemoryAccess, index: Array) -> Iterator[Array | slice]:
        """Yield the elements of an access in turns, in which no flag is accessed twice.

        The lanes of an atomic instruction access one address one after the other: a lane acquires
        what the lanes before it release.
        """
        head, *words = access.opcode.split(".")
        releases = "release" in words or "acq_rel" in words
        if head != "atom" or not (releases or self.at_fence is not self.clocks.initial):
            yield slice(None)
            return
        order = np.argsort(index, kind="stable")
        first = np.searchsorted(index[order], index[order])
        turn = np.empty(len(order), np.int64)
        turn[order] = np.arange(len(order)) - first
        for number in range(int(turn.max()) + 1):
            yield np.flatnonzero(turn == number)

    def check(
        self,
        event: AccessEvent,
        memory: CheckedMemory,
        before: Callable[[AccessEvent], HappensBefore],
        floor: int,
        also: Callable[[], None] = lambda: None,
    ) -> None:
        """Check an event for races, and record it.

        Args:
            event: the access.
            memory: the memory that it accesses.
            before: for an event, decides which accesses happen before its elements.
            floor: accesses of lanes up to this time happen before it.
            also: checks that follow, before the event is recorded.

        Raises:
            Fault: there is one.
        """
        shadow = memory.shadow
        conflict = shadow.conflict(event, before(event), floor)
        same = new = None
        if conflict is not None:
            new = self._stored(event, shadow.granule)
            if new is None:
                raise self._race(event, conflict, memory)
            old = memory.stored_before(event)
            is_same, unchanged = shadow.same_values(event, new, old, before(event))
            same = event.part(is_same, SAME)
            parts = (
                (event.part(~is_same & ~unchanged, WRITE), 0),
                (event.part(~is_same & unchanged, WRITE), SAME),
                (same, 0),
            )
            for part, ignored in parts:
                if len(part.granules):
                    found = shadow.conflict(part, before(part), floor, ignored)
                    if found is not None:
                        raise self._race(part, found, memory)
            self._warn(event, conflict, memory)
            event, new = event.part(~is_same, WRITE), new[~is_same]
        also()
        if len(event.granules):
            shadow.record(
                event, lambda: self._stored(event, shadow.granule) if new is None else new
            )
        if same is not None and len(same.granules):
            shadow.record(same)

    def _stored(self, event: AccessEvent, granule: int) -> Array | None:
        """Return the bytes that each element of a plain store by threads writes; else None."""
        access, values = event.access, self.wave.memory.storing
        if event.kind != WRITE or values is None or self.performing is not None:
            return None
        each = access.bytes // granule
        lanes = event.lanes[::each]
        columns = [
            np.broadcast_to(value, self.wave.lanes)[lanes].astype(UNSIGNED[8 * access.width])
            for value in values
        ]
        return np.stack(columns, axis=1).view(np.uint8).reshape(-1, granule)

    # --- reports ---

    def _race(self, event: AccessEvent, conflict: Conflict, memory: CheckedMemory) -> Fault:
        access, other = event.access, conflict.access
        return Fault(
            f"data race: {access.opcode} {verb(access)} {memory.name_of(event, conflict.at)}, "
            f"which {self._instruction_name(other)} {verb(other)} in "
            f"{memory.agent(conflict.thread)}; nothing orders the two",
            int(event.lanes[conflict.at]),
            memory.remedy(event, conflict),
        )

    def _warn(self, event: AccessEvent, conflict: Conflict, memory: CheckedMemory) -> None:
        """Warn, once for each pair of instructions, of unordered writes of the same value."""
        pair = (id(event.access.instruction), id(conflict.access.instruction))
        if pair not in self.warned:
            self.warned.add(pair)
            fault = self._race(event, conflict, memory)
            message = f"{fault}, but both write the same value".replace("data race: ", "", 1)
            error = self.wave.error(message, event.access.instruction, fault.hint)
            warnings.warn(LegoWarning(error), stacklevel=2)

    def _instruction_name(self, access: MemoryAccess) -> str:
        """Return an instruction's opcode with its location in the PTX and in the source."""
        return f"{access.opcode} ({self.wave.location_name(access.instruction)})"


def verb(access: MemoryAccess) -> str:
    """Return what an access does, as a verb."""
    if access.sync and access.opcode.startswith("mbarrier"):
        return "uses"
    return "writes" if access.writes else "reads"
