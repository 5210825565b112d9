"""The events of a run that checks and counters observe: memory accesses and synchronization.

The machine calls these methods, which do nothing here, when the event occurs. Lanes are passed as
masks (a bool for each lane of the wave) unless a method says otherwise, mbarriers as word indices
of the wave's shared memory (see `mbarrier`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.asynchronous import Operation
    from lego_mlir.sim.machine.memory import Buffer, MemoryAccess
    from lego_mlir.sim.machine.wave import Mask, Wave


class Observer:
    """An observer that ignores every event."""

    def begins(self, wave: Wave) -> None:
        """Handle the start of a wave."""

    def entered(self, at: int, mask: Mask) -> None:
        """Handle lanes that are about to execute basic block `at` of the program."""

    def accessed(
        self, access: MemoryAccess, buffer: Buffer, index: Array, lanes: Array | None
    ) -> None:
        """Handle a checked memory access, before anything is read or written.

        Args:
            access: the access: `access.count` adjacent elements of `access.width` bytes.
            buffer: the memory.
            index: for each lane, its first element in `buffer.view(access.width)`.
            lanes: the lane of each access; None: access k belongs to lane k.
        """

    # --- barriers ---

    def barrier_arrived(self, number: int, mask: Array) -> None:
        """Handle lanes that arrive at a barrier of their CTA."""

    def barrier_opened(self, number: int, mask: Array, waited: Array) -> None:
        """Handle a completed CTA barrier: `mask` arrived, `waited` of them continue."""

    def warp_converged(self, members: Array, mask: Mask) -> None:
        """Handle `bar.warp.sync` of lanes with the members that each lane names, as bits."""

    def cluster_arrived(self, mask: Array, *, release: bool) -> None:
        """Handle lanes that arrive at the barrier of their cluster."""

    def cluster_completed(self, mask: Array) -> None:
        """Handle the arrival of all living threads of the clusters of these lanes."""

    def cluster_opened(self, mask: Array) -> None:
        """Handle lanes that continue behind the barrier of their cluster."""

    # --- mbarriers ---

    def mbarrier_made(self, words: Array, lanes: Array) -> None:
        """Handle `mbarrier.init` of each word by a lane."""

    def mbarrier_arrived(self, words: Array, lanes: Array) -> None:
        """Handle an arrival at each mbarrier by a lane."""

    def phase_completed(self, words: Array) -> None:
        """Handle the completion of the current phase of mbarriers."""

    def phase_acquired(self, words: Array, lanes: Array) -> None:
        """Handle lanes that observed the completion of the last phase of mbarriers."""

    # --- asynchronous operations ---

    def issued(self, operation: Operation) -> None:
        """Handle the issue of an asynchronous operation by the lanes `operation.unwaited`."""

    def performed(self, operation: Operation, stage: int, mask: Array) -> None:
        """Handle the start of a stage of an operation, to which the next accesses belong."""

    def finished(self, operation: Operation) -> None:
        """Handle the end of a stage of an operation."""

    def waited(self, operation: Operation, mask: Array, stage: int | None) -> None:
        """Handle lanes that waited for an operation (None: for all its stages)."""

    # --- fences, registers, exits ---

    def fenced(self, kind: str, mask: Mask) -> None:
        """Handle `fence` or `membar`; `kind` is its modifiers: `acq_rel.cta`."""

    def proxy_fenced(self, kind: str, mask: Mask) -> None:
        """Handle `fence.proxy`; `kind` is its modifiers: `async.global`."""

    def registers_set(self, count: int, mask: Mask) -> None:
        """Handle `setmaxnreg`: lanes may use `count` registers from now on."""

    def exited(self, mask: Array) -> None:
        """Handle lanes that exit."""


_EVENTS = [name for name in vars(Observer) if not name.startswith("_")]


class Observers(Observer):
    """An observer that forwards each event to the observers that override its method, in order."""

    def __init__(self, *observers: Observer) -> None:
        for name in _EVENTS:
            handlers = [
                getattr(observer, name)
                for observer in observers
                if getattr(type(observer), name) is not getattr(Observer, name)
            ]
            setattr(self, name, handlers[0] if len(handlers) == 1 else _notify_all(handlers))


def _notify_all(handlers: list[Callable[..., None]]) -> Callable[..., None]:
    def notify(*arguments: object, **named: object) -> None:
        for handle in handlers:
            handle(*arguments, **named)

    return notify
