"""What decoding makes of an instruction: a handler, or what ends or begins a basic block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

Handler = Callable[["Wave"], None]
Reader = Callable[["Wave"], Array]
Writer = Callable[["Wave", Array], None]


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch to `target` where the guard holds."""

    target: str


@dataclass(frozen=True, slots=True)
class Switch:
    """A branch to the label of `targets` that `index` selects."""

    index: Reader
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Called:
    """A function that a call may reach.

    Attributes:
        enter: passes the arguments, before the stack grows.
        leave: passes the results, after it has shrunk, before the caller's registers are restored;
            it returns what then writes them.
    """

    name: str
    enter: Handler
    leave: Callable[[Wave], Handler]


@dataclass(frozen=True, slots=True)
class Call:
    """A call.

    Attributes:
        target: the address of the function; None: there is only one.
        callees: by address.
        caller: the function that calls; None: the kernel.
        saved: the caller's registers that the callee may overwrite, as it may call the caller.
    """

    target: Reader | None
    callees: Mapping[int, Called]
    caller: str | None
    saved: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Return:
    """The return from a function."""


@dataclass(frozen=True, slots=True)
class Exit:
    """The exit of the thread."""


@dataclass(frozen=True, slots=True)
class Trap:
    """A trap, which aborts the kernel."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """The reduction of a predicate over the threads at a barrier: `popc`, `and` or `or`."""

    operation: str
    predicate: Reader
    write: Writer


@dataclass(frozen=True, slots=True)
class Barrier:
    """An arrival at barrier `number`, of `count` threads or of all threads of the CTA.

    Attributes:
        waits: whether the thread waits, or only arrives.
    """

    number: Reader
    count: Reader | None
    waits: bool = True
    reduction: Reduction | None = None


@dataclass(frozen=True, slots=True)
class WarpCollective:
    """A handler that the lanes of a warp in `members` execute together.

    Attributes:
        warpgroup: whether all warps of the warpgroup must converge first.
    """

    members: Reader
    execute: Handler
    warpgroup: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """A handler before which a lane stalls until a condition holds.

    Attributes:
        execute: the handler.
        holds: whether each active lane may continue.
        reason: what a lane waits for, for the report of a deadlock: `for ...`.
        awaits: the mbarriers of the active lanes, as words of shared memory (see `mbarrier`).
        tries: whether the wait may fail, the first time and when nothing else can run; the handler
            then does what the instruction does when it fails.
    """

    execute: Handler
    holds: Reader
    reason: Callable[[Wave, int], str]
    awaits: Reader
    tries: bool


Decoded = Handler | Branch | Switch | Call | Return | Exit | Trap | Barrier | WarpCollective | Wait


@dataclass(frozen=True, slots=True)
class Uses:
    """The registers that an instruction accesses, by index.

    Attributes:
        reads, writes: of its operands, in those lanes where the guard holds.
        guard: where the instruction is performed; None: in all lanes.
        decides: the register of the guard, where it is one.
        undefined: the registers that get an undefined value before the instruction (see `Kernel`).
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    guard: Reader | None
    decides: tuple[int, ...]
    undefined: tuple[int, ...]
