"""Asynchronous copies by threads, in groups. Source: PTX ISA 9.7.9.25.1–3 (cp.async)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.instructions.mbarrier import active_words
from lego_mlir.sim.instructions.movement import address_of, space_of
from lego_mlir.sim.machine.memory import Fault, MemoryAccess
from lego_mlir.sim.ptx.form import Form, Handler, Reader
from lego_mlir.sim.ptx.syntax import Operand
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import B64, PRED, U32, Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_HINTS = "[L2::cache_hint] [L2::64B|L2::128B|L2::256B]"


@instruction(
    "9.7.9.25.3.1",
    f"cp async ca shared|shared::cta global {_HINTS}",
    f"cp async cg shared|shared::cta global {_HINTS}",
)
def cp_async(form: Form) -> Handler:
    """Copy 4, 8 or 16 bytes from global to shared memory; `.cg` 16 only.

    Of a source size less than that so many bytes are read, and zeros follow; where the source is
    ignored, all are zeros. Cache hints change nothing.
    """
    form.expect(3 + form.has("L2::cache_hint"), 4 + form.has("L2::cache_hint"))
    size = form.constant(form.operands[2], 4, 16)
    if size not in (4, 8, 16) or (form.has("cg") and size != 16):
        form.fail(f"a copy of {size} bytes", form.operands[2])
    rest = list(form.operands[3:])
    if form.has("L2::cache_hint"):
        form.read(rest.pop(), B64)
    width = min(size, 8)
    count = size // width
    reads = MemoryAccess(form.instruction, "global", width, count, False)
    writes = MemoryAccess(form.instruction, "shared", width, count, True)
    target = address_of(form, form.operands[0], "shared")
    source = address_of(form, form.operands[1], "global")
    length = _source_size(form, rest[0], size) if rest else None

    def execute(w: Wave) -> None:
        to, where = target(w), source(w)
        copied = None if length is None else length(w)
        if copied is not None:
            _check_length(w, copied, size)

        def perform(w: Wave) -> None:
            if copied is None:
                values = w.memory.load(reads, where, w.mask, w.lanes)
            else:
                values = _padded(w, reads, where, copied)
            w.memory.store(writes, to, values, w.mask)

        w.queues.copies.issue(form.instruction, perform)

    return execute


def _source_size(form: Form, operand: Operand, size: int) -> Reader:
    """Return the reader of the source size: a number, or 0 where a predicate holds (ignore-src)."""
    declared = form.symbols.registers.get(str(operand))
    if declared is None or declared[1] is not PRED:
        return form.read(operand, U32)
    ignored = form.read(operand, PRED)
    return lambda w: np.where(ignored(w), np.uint32(0), np.uint32(size))


def _check_length(w: Wave, copied: Array, size: int) -> None:
    over = w.active() & (copied > size)
    if over.any():
        lane = int(np.argmax(over))
        value = int(np.broadcast_to(copied, w.lanes)[lane])
        raise Fault(f"cp.async of {size} bytes with a source of {value}", lane)


def _padded(w: Wave, access: MemoryAccess, source: Array, copied: Array) -> list[Array]:
    """Load the source of a copy, padded with zeros behind its `copied` bytes."""
    mask = w.active()
    full = mask & (copied == access.bytes)
    values = [np.zeros(w.lanes, f"u{access.width}") for _ in range(access.count)]
    if full.any():
        values = w.memory.load(access, source, full, w.lanes)
    single = MemoryAccess(access.instruction, access.space, 1, 1, False)
    partial = mask & ~full
    for byte in range(int(copied[partial if len(copied) > 1 else slice(None)].max(initial=0))):
        some = partial & (copied > byte)
        if not some.any():
            break
        loaded = w.memory.load(single, source + np.uint64(byte), some, w.lanes)[0]
        part, shift = divmod(byte, access.width)
        kind = values[part].dtype.type
        values[part] = values[part] | loaded.astype(kind) << kind(8 * shift)
    return values


@instruction("9.7.9.25.3.2", "cp async commit_group")
def commit_group(form: Form) -> Handler:
    """Close a group of the copies issued since the last group."""
    form.expect(0)
    return lambda w: w.queues.copies.commit()


@instruction("9.7.9.25.3.3", "cp async wait_group")
def wait_group(form: Form) -> Handler:
    """Wait until at most the N newest groups are pending."""
    form.expect(1)
    most = form.constant(form.operands[0], 0, (1 << 31) - 1)
    return lambda w: w.queues.copies.wait(most)


@instruction("9.7.9.25.3.3", "cp async wait_all")
def wait_all(form: Form) -> Handler:
    """Wait for all copies of the thread."""
    form.expect(0)
    return lambda w: w.queues.copies.drain()


@instruction("9.7.13.15.15", "cp async mbarrier arrive [noinc] [shared|shared::cta] b64")
def mbarrier_arrive(form: Form) -> Handler:
    """Arrive at an mbarrier when all copies that the thread issued so far are complete.

    The pending count is raised by one before, so that the two make no difference, unless `.noinc`
    says that the arrival is counted already.
    """
    form.expect(1)
    access = MemoryAccess(form.instruction, space_of(form), 8, 1, True, sync=True)
    address = address_of(form, form.operands[0], access.space)
    counted = form.has("noinc")

    def execute(w: Wave) -> None:
        words, lanes = active_words(w, access, address)
        if not counted:
            w.mbarriers.add_pending(words, lanes)
        signals = np.full(w.lanes, -1)
        signals[lanes] = words

        def perform(w: Wave) -> None:
            now = np.flatnonzero(w.active())
            w.mbarriers.arrive(signals[now], now, np.ones(len(now), np.int64))

        w.queues.copies.issue(form.instruction, perform, signals=signals, after=True)

    return execute
