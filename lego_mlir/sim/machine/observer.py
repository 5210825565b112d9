"""What a checker of a run hears: every access of memory, and every synchronisation.

The machine calls these methods, here without effect, at the moment that they name. Lanes are given
as masks (one bool a lane of the wave) unless a method says otherwise, mbarriers as words of the
wave's shared memory (see `mbarrier`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.asynchronous import Operation
    from lego_mlir.sim.machine.memory import Access, Buffer
    from lego_mlir.sim.machine.wave import Mask, Wave


class Observer:
    """Hears of everything and does nothing."""

    def begins(self, wave: Wave) -> None:
        """The wave is about to run."""

    def entered(self, at: int, mask: Mask) -> None:
        """Lanes are about to execute the basic block at a position of the program."""

    def accessed(self, access: Access, buffer: Buffer, index: Array, lanes: Array | None) -> None:
        """Lanes access memory, after the checks and before anything is read or written.

        Args:
            access: what they do, `access.width` bytes and `access.count` times in a row.
            buffer: the memory.
            index: first element of `buffer.view(access.width)` of each access.
            lanes: number of the lane of each access; None: the k-th is that of lane k.
        """

    # --- barriers ---

    def barrier_arrived(self, number: int, mask: Array) -> None:
        """Lanes come to a barrier of their block."""

    def barrier_opened(self, number: int, mask: Array, waited: Array) -> None:
        """These lanes have come to a barrier of their block; those that waited pass it."""

    def warp_converged(self, members: Array, mask: Mask) -> None:
        """Lanes meet those of their warp whose bits `members` names, in each lane."""

    def cluster_arrived(self, mask: Array, *, release: bool) -> None:
        """Lanes arrive at the barrier of their cluster."""

    def cluster_completed(self, mask: Array) -> None:
        """All living threads of the clusters of these lanes have arrived."""

    def cluster_opened(self, mask: Array) -> None:
        """Lanes pass the barrier of their cluster."""

    # --- mbarriers ---

    def mbarrier_made(self, words: Array, lanes: Array) -> None:
        """Each word becomes an mbarrier (`mbarrier.init`), by the lane of that number."""

    def mbarrier_arrived(self, words: Array, lanes: Array) -> None:
        """An arrival at each word, by the lane of that number."""

    def phase_completed(self, words: Array) -> None:
        """The current phase of mbarriers is complete."""

    def phase_acquired(self, words: Array, lanes: Array) -> None:
        """The lane of each number has seen that the last phase of the word is complete."""

    # --- asynchronous operations ---

    def issued(self, operation: Operation) -> None:
        """Lanes issue an operation; `operation.unwaited` are they."""

    def performed(self, operation: Operation, stage: int, mask: Array) -> None:
        """A stage of an operation is about to be performed; accesses that follow are its own."""

    def finished(self, operation: Operation) -> None:
        """A stage of an operation is performed."""

    def waited(self, operation: Operation, mask: Array, stage: int | None) -> None:
        """Lanes have waited for an operation of theirs (for its first stages, if not None)."""

    # --- fences, registers, exits ---

    def fenced(self, kind: str, mask: Mask) -> None:
        """`fence` or `membar`: lanes order their accesses; `kind` as written: `acq_rel.cta`."""

    def proxy_fenced(self, kind: str, mask: Mask) -> None:
        """`fence.proxy`: lanes order accesses of two proxies; `kind` as written: `async.global`."""

    def registers_set(self, count: int, mask: Mask) -> None:
        """`setmaxnreg`: lanes may use so many registers from now on."""

    def exited(self, mask: Array) -> None:
        """Lanes exit."""


_HEARD = [name for name in vars(Observer) if not name.startswith("_")]


class Observers(Observer):
    """Several observers as one: each hears of everything that it listens to, in their order."""

    def __init__(self, *observers: Observer) -> None:
        for name in _HEARD:
            listening = [
                getattr(observer, name)
                for observer in observers
                if getattr(type(observer), name) is not getattr(Observer, name)
            ]
            setattr(self, name, listening[0] if len(listening) == 1 else _told(listening))


def _told(listening: list[Callable[..., None]]) -> Callable[..., None]:
    def tell(*arguments: object, **named: object) -> None:
        for hear in listening:
            hear(*arguments, **named)

    return tell
