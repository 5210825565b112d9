"""mbarriers: barriers in shared memory with phases. Source: PTX ISA 9.7.13.15.

A wait for a phase that is not complete fails the first time; a lane that tries again stalls until
it is (see `stalls`). When nothing else can run the wait fails, and the program does what it does
then; if it only tries again, that is a deadlock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.instructions.movement import address_of, space_of
from lego_mlir.sim.machine.mbarrier import MOST, pending_count
from lego_mlir.sim.machine.memory import Fault, MemoryAccess
from lego_mlir.sim.ptx.form import Form, Handler, Reader, Wait
from lego_mlir.sim.ptx.syntax import Sink
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import B64, PRED, U32, Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_OWN = "[shared|shared::cta]"
_ANY = "[shared|shared::cta|shared::cluster]"
_SENT = "[release|relaxed] [cta|cluster]"
_SEEN = "[acquire|relaxed] [cta|cluster]"


def active_words(w: Wave, access: MemoryAccess, address: Reader) -> tuple[Array, Array]:
    """Return the mbarriers that the active lanes name, as words, and those lanes."""
    lanes = np.flatnonzero(w.active())
    return w.mbarriers.locate(access, of_lanes(w, address, lanes), lanes), lanes


def of_lanes(w: Wave, read: Reader, lanes: Array) -> Array:
    """Return the values of an operand in lanes, given by number."""
    values = read(w)
    return values[lanes] if len(values) > 1 else np.repeat(values, len(lanes))


def _barrier(form: Form, at: int, *, sync: bool = True) -> tuple[MemoryAccess, Reader]:
    """Return the operand that names an mbarrier."""
    access = MemoryAccess(form.instruction, space_of(form), 8, 1, True, sync=sync)
    return access, address_of(form, form.operands[at], access.space)


@instruction("9.7.13.15.9", f"mbarrier init {_OWN} b64")
def init(form: Form) -> Handler:
    """Initialize an mbarrier whose phases expect a number of arrivals."""
    form.expect(2)
    access, address = _barrier(form, 0, sync=False)
    count = form.read(form.operands[1], U32)

    def execute(w: Wave) -> None:
        words, lanes = active_words(w, access, address)
        w.mbarriers.init(words, lanes, of_lanes(w, count, lanes).astype(np.int64))

    return execute


@instruction("9.7.13.15.10", f"mbarrier inval {_OWN} b64")
def inval(form: Form) -> Handler:
    """Turn an mbarrier back into plain memory."""
    form.expect(1)
    access, address = _barrier(form, 0, sync=False)
    return lambda w: w.mbarriers.inval(*active_words(w, access, address))


@instruction(
    "9.7.13.15.11",
    f"mbarrier expect_tx [relaxed] [cta|cluster] {_ANY} b64",
    f"mbarrier complete_tx [relaxed] [cta|cluster] {_ANY} b64",
)
def transact(form: Form) -> Handler:
    """Expect more bytes in the current phase, or complete bytes."""
    form.expect(2)
    access, address = _barrier(form, 0)
    amount = form.read(form.operands[1], U32)
    expects = form.has("expect_tx")

    def execute(w: Wave) -> None:
        words, lanes = active_words(w, access, address)
        amounts = of_lanes(w, amount, lanes).astype(np.int64)
        if expects:
            w.mbarriers.expect(words, lanes, amounts)
        else:
            w.mbarriers.complete(words, lanes, amounts)

    return execute


@instruction(
    "9.7.13.15.13",
    f"mbarrier arrive {_SENT} {_ANY} b64",
    f"mbarrier arrive expect_tx {_SENT} {_ANY} b64",
    f"mbarrier arrive noComplete [release] [cta] {_OWN} b64",
    f"mbarrier arrive_drop {_SENT} {_ANY} b64",
    f"mbarrier arrive_drop expect_tx {_SENT} {_ANY} b64",
    f"mbarrier arrive_drop noComplete [release] [cta] {_OWN} b64",
)
def arrive(form: Form) -> Handler:
    """Arrive with a count (1 by default); the result is the state before.

    With `expect_tx` the thread expects bytes before it arrives; `arrive_drop` lowers the count of
    later phases, too; `noComplete` promises that the phase does not become complete by it.
    """
    transaction, certain = form.has("expect_tx"), form.has("noComplete")
    # An arrival at a barrier of another CTA gives no state, and may be written without `_`.
    results = 0 if str(form.operands[0]).startswith("[") else 1
    needed = results + 1 + (transaction or certain)
    form.expect(needed, results + 2)
    stateless = space_of(form) == "shared::cluster"
    if stateless and results and not isinstance(form.operands[0], Sink):
        form.fail("a state of an mbarrier in shared::cluster", form.operands[0])
    write = form.write(form.operands[0] if results else Sink(), B64)
    access, address = _barrier(form, results)
    number = form.read(form.operands[-1], U32) if len(form.operands) == results + 2 else None
    drop = form.modifiers[0] == "arrive_drop"

    def execute(w: Wave) -> None:
        words, lanes = active_words(w, access, address)
        counts = np.ones(len(lanes), np.int64)
        if number is not None:
            operand_counts = of_lanes(w, number, lanes).astype(np.int64)
            if transaction:
                w.mbarriers.expect(words, lanes, operand_counts)
            else:
                counts = operand_counts
                _check_count(w, words, lanes, counts)
        state = w.mbarriers.arrive(words, lanes, counts, drop=drop)
        if certain:
            _check_incomplete(w, words, lanes, state)
        result = np.zeros(w.lanes, np.uint64)
        result[lanes] = state
        write(w, result)

    return execute


def _check_count(w: Wave, words: Array, lanes: Array, counts: Array) -> None:
    bad = (counts < 1) | (counts > MOST)
    if bad.any():
        at = int(np.argmax(bad))
        raise Fault(
            f"{int(counts[at])} arrivals at once at {w.mbarriers.name(int(words[at]))}: "
            f"1 to {MOST} are possible",
            int(lanes[at]),
        )


def _check_incomplete(w: Wave, words: Array, lanes: Array, state: Array) -> None:
    done = w.mbarriers.passed(words, lanes, state)
    if done.any():
        at = int(np.argmax(done))
        raise Fault(
            f"an arrival with .noComplete has completed a phase of "
            f"{w.mbarriers.name(int(words[at]))}",
            int(lanes[at]),
        )


@instruction(
    "9.7.13.15.16",
    f"mbarrier test_wait {_SEEN} {_OWN} b64",
    f"mbarrier test_wait parity {_SEEN} {_OWN} b64",
    f"mbarrier try_wait {_SEEN} {_OWN} b64",
    f"mbarrier try_wait parity {_SEEN} {_OWN} b64",
)
def wait(form: Form) -> Wait:
    """Test whether a phase is complete: that of a state, or the last one of a parity.

    Both forms wait for it here, from the second time on; no time limit means anything.
    """
    form.expect(3, 4 if form.has("try_wait") else 3)
    write = form.write(form.operands[0], PRED)
    access, address = _barrier(form, 1)
    by_parity = form.has("parity")
    phase = form.read(form.operands[2], U32 if by_parity else B64)
    if len(form.operands) == 4:
        form.read(form.operands[3], U32)

    def look(w: Wave) -> tuple[Array, Array, Array]:
        words, lanes = active_words(w, access, address)
        test = w.mbarriers.passed_parity if by_parity else w.mbarriers.passed
        return words, lanes, test(words, lanes, of_lanes(w, phase, lanes))

    def holds(w: Wave) -> Array:
        _, lanes, passed = look(w)
        result = np.ones(w.lanes, np.bool_)
        result[lanes] = passed
        return result

    def execute(w: Wave) -> None:
        words, lanes, passed = look(w)
        w.observer.phase_acquired(words[passed], lanes[passed])
        result = np.zeros(w.lanes, np.bool_)
        result[lanes] = passed
        write(w, result)

    def reason(w: Wave, lane: int) -> str:
        w.mask = np.arange(w.lanes) == lane
        words, _ = active_words(w, access, address)
        return f"for {w.mbarriers.describe(int(words[0]))}"

    return Wait(execute, holds, reason, lambda w: active_words(w, access, address)[0], True)


@instruction("9.7.13.15.17", "mbarrier pending_count b64")
def query_pending_count(form: Form) -> Handler:
    """Read the pending count of a state that `mbarrier.arrive` returned."""
    form.expect(2)
    write, read = form.write(form.operands[0], U32), form.read(form.operands[1], B64)
    return lambda w: write(w, pending_count(read(w)))
