"""The barriers of a CTA: which threads arrived, and when they pass.

Threads are counted one by one. A barrier with a thread count opens as soon as that many arrived.
One without opens when no other lane of the wave can run, so that lanes that arrive at different
times continue together.

Source: PTX ISA 9.7.13.1 (bar, barrier).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.hardware.limits import MAX_NAMED_BARRIERS
from lego_mlir.sim.machine.memory import Fault
from lego_mlir.sim.ptx.decoded import Barrier, Reduction
from lego_mlir.sim.ptx.syntax import Instruction
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Mask, Wave


@dataclass(frozen=True, slots=True)
class Waiting:
    """Lanes that wait at, or arrived at, a barrier.

    Attributes:
        number, count: the barrier, and its thread count (None: all threads of the CTA).
        mask: the lanes.
        after: the basic block where they continue; None if they do not wait (`arrive`).
        reduction: the reduction of `red`.
    """

    number: int
    count: int | None
    mask: Array
    after: int | None
    instruction: Instruction
    reduction: Reduction | None


class Barriers:
    """The barriers 0 to 15 of each CTA of a wave."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.waiting: list[Waiting] = []

    def arrive(self, barrier: Barrier, after: int, mask: Mask, instruction: Instruction) -> None:
        """Let lanes arrive at a barrier; lanes of different barriers wait separately."""
        wave = self.wave
        wave.mask = mask
        number = barrier.number(wave)
        count = None if barrier.count is None else barrier.count(wave)
        goes = after if barrier.waits else None
        if mask is None and count is None and barrier.reduction is None and len(number) == 1:
            # The whole wave arrives at once: the common case.
            everyone = wave.active()
            _check(int(number[0]), None, 0)
            wave.observer.barrier_arrived(int(number[0]), everyone)
            wave.observer.barrier_opened(int(number[0]), everyone, everyone)
            wave.make_ready(after, None)
            return
        for which, threads, lanes in _by_barrier(number, count, wave.active()):
            _check(which, threads, int(np.argmax(lanes)))
            wave.observer.barrier_arrived(which, lanes)
            waiting = Waiting(which, threads, lanes, goes, instruction, barrier.reduction)
            self.waiting.append(waiting)
            if threads is not None or mask is None or wave.order.random is not None:
                self._open(which, threads)
        if not barrier.waits:
            wave.make_ready(after, mask)

    def open_all(self) -> None:
        """Open all barriers that are complete; lanes may have exited."""
        for number, count in {(w.number, w.count) for w in self.waiting}:
            self._open(number, count)

    def _open(self, number: int, count: int | None) -> None:
        """Open a barrier in the CTAs where enough threads arrived, in the order of arrival."""
        wave = self.wave
        here = [w for w in self.waiting if (w.number, w.count) == (number, count)]
        arrived = sum(self._per_cta(w.mask) for w in here)
        needed = self._per_cta(wave.alive) if count is None else np.array(count)
        opens = (arrived > 0) & (arrived >= needed)
        if not opens.any():
            return
        wave.progress += 1
        lanes = np.repeat(opens, wave.threads)
        before = np.zeros((len(wave.ctas), 1), np.int64)
        passed: list[Waiting] = []
        for w in here:
            self.waiting.remove(w)
            come = w.mask.reshape(len(wave.ctas), -1)
            rank = before + come.cumsum(axis=1)
            before = rank[:, -1:]
            passing = w.mask & lanes & (rank <= np.reshape(needed, (-1, 1))).reshape(-1)
            staying = w.mask & ~passing
            if passing.any():
                passed.append(replace(w, mask=passing))
            if staying.any():
                self.waiting.append(replace(w, mask=staying))
        come = np.logical_or.reduce([w.mask for w in passed])
        gone = [w.mask for w in passed if w.after is None]
        wave.observer.barrier_opened(number, come, come & ~np.logical_or.reduce(gone, axis=0))
        self._reduce(passed)
        for w in passed:
            if w.after is not None:
                wave.make_ready(w.after, w.mask)
        self._open(number, count)

    def _reduce(self, passed: list[Waiting]) -> None:
        """Combine the predicates of threads that pass together; write the result to each."""
        wave = self.wave
        holds, come = np.zeros(wave.lanes, np.bool_), np.zeros(wave.lanes, np.bool_)
        reducing = [(w.mask, w.reduction) for w in passed if w.reduction is not None]
        for mask, reduction in reducing:
            holds = np.where(mask, reduction.predicate(wave), holds)
            come = come | mask
        for mask, reduction in reducing:
            wave.mask = mask
            result = _REDUCE[reduction.operation](self._per_cta(holds), self._per_cta(come))
            reduction.write(wave, np.repeat(result, wave.threads))

    def _per_cta(self, mask: Array) -> Array:
        counts: Array = mask.reshape(len(self.wave.ctas), -1).sum(axis=1)
        return counts


_REDUCE: dict[str, Callable[[Array, Array], Array]] = {
    "popc": lambda yes, all_: yes.astype(np.uint32),
    "and": lambda yes, all_: yes == all_,
    "or": lambda yes, all_: yes > 0,
}


def _by_barrier(
    number: Array, count: Array | None, lanes: Array
) -> Iterator[tuple[int, int | None, Array]]:
    """Yield the barrier, its thread count and its lanes, for each barrier that lanes arrive at."""
    if len(number) == 1 and (count is None or len(count) == 1):
        yield int(number[0]), None if count is None else int(count[0]), lanes
        return
    key = np.broadcast_to(number, len(lanes)).astype(np.int64) << 32
    if count is not None:
        key = key | count.astype(np.int64)
    for k in np.unique(key[lanes]):
        yield int(k) >> 32, None if count is None else int(k) & 0xFFFFFFFF, lanes & (key == k)


def _check(number: int, threads: int | None, lane: int) -> None:
    if threads is not None and (threads == 0 or threads % 32):
        raise Fault(
            f"a barrier for {threads} threads: the number must be a positive multiple of 32 "
            f"(PTX ISA 9.7.13.1)",
            lane,
        )
    if number >= MAX_NAMED_BARRIERS:
        raise Fault(f"barrier {number}: a CTA has the barriers 0 to 15 (PTX ISA 9.7.13.1)", lane)
