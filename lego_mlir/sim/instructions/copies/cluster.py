"""Clusters: addresses in other CTAs, the cluster barrier, and stores that signal mbarriers.

Source: PTX ISA 9.7.9.23–24 (mapa, getctarank), 9.7.13.3 (barrier.cluster), 9.7.9.12 (st.async),
9.7.13.7 (red.async).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.instructions.copies.mbarrier import active_words
from lego_mlir.sim.instructions.memory.addresses import address_of, rank_of, space_of
from lego_mlir.sim.instructions.memory.atomic import exchange, update_of
from lego_mlir.sim.machine.memory import RANK_SHIFT, Fault, MemoryAccess
from lego_mlir.sim.ptx.decoded import Handler, Reader, Wait
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.syntax import Operand, Vector
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import TYPES, U32, Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_RANK = 0xFF << int(RANK_SHIFT)


@instruction("9.7.9.23", "mapa u32|u64", "mapa shared::cluster u32|u64")
def mapa(form: Form) -> Handler:
    """Map an address of the own CTA to another CTA of the cluster."""
    form.expect(3)
    kind = form.types[0]
    if kind.bits == 32 and not form.has("shared::cluster"):
        form.fail("a 32-bit generic address")
    write, read = form.write(form.operands[0], kind), form.read(form.operands[1], kind)
    rank = form.read(form.operands[2], U32)
    whole = kind.dtype.type

    def execute(w: Wave) -> None:
        number = rank(w)
        bad = w.active() & (number >= w.cluster_size)
        if bad.any():
            lane = int(np.argmax(bad))
            value = int(np.broadcast_to(number, w.lanes)[lane])
            raise Fault(f"mapa to rank {value} in a cluster of {w.cluster_size}", lane)
        named = (number.astype(kind.storage) + whole(1)) << whole(RANK_SHIFT)
        write(w, read(w) & ~whole(_RANK) | named)

    return execute


@instruction("9.7.9.24", "getctarank u32|u64", "getctarank shared::cluster u32|u64")
def getctarank(form: Form) -> Handler:
    """Return the rank of the CTA that a shared memory address lies in."""
    form.expect(2)
    write, read = form.write(form.operands[0], U32), form.read(form.operands[1], form.types[0])
    return lambda w: write(w, rank_of(w, read(w)).astype(np.uint32))


@instruction("9.7.13.3", "barrier cluster arrive [release|relaxed] [aligned]")
def cluster_arrive(form: Form) -> Handler:
    """Arrive at the barrier of the cluster without waiting."""
    form.expect(0)
    release = not form.has("relaxed")
    return lambda w: w.cluster.arrive(release=release)


@instruction("9.7.13.3", "barrier cluster wait [acquire] [aligned]")
def cluster_wait(form: Form) -> Wait:
    """Wait until all living threads of the cluster have arrived."""
    form.expect(0)

    def reason(w: Wave, lane: int) -> str:
        return f"for {w.cluster.missing(lane)} threads of the cluster"

    return Wait(
        lambda w: w.cluster.leave(),
        lambda w: w.cluster.passable(),
        reason,
        lambda w: np.zeros(0, np.int64),
        False,
    )


_DONE = "mbarrier::complete_tx::bytes"


@instruction(
    "9.7.9.12", f"st async [weak] [shared::cluster] {_DONE} [v2|v4] b32|b64|u32|u64|s32|s64|f32|f64"
)
def st_async(form: Form) -> Handler:
    """Store to the shared memory of a CTA of the cluster, and signal an mbarrier there."""
    form.expect(3)
    kind = form.types[0]
    bits = TYPES[f"b{kind.bits}"]
    elements = _elements(form, form.operands[1])
    reads = [form.read(element, bits) for element in elements]
    space = space_of(form)
    access = MemoryAccess(form.instruction, space, kind.bytes, len(reads), True)
    address = address_of(form, form.operands[0], space)
    barrier = _barrier(form, form.operands[2], space)

    def execute(w: Wave) -> None:
        target, values = address(w), [read(w) for read in reads]

        def store(w: Wave) -> None:
            w.memory.store(access, target, values, w.mask)

        _issue(form, w, barrier, access, store)

    return execute


def _elements(form: Form, operand: Operand) -> tuple[Operand, ...]:
    word = form.one_of("v2", "v4")
    if not word:
        return (operand,)
    if not isinstance(operand, Vector) or len(operand.elements) != int(word[1:]):
        form.fail(f"the operand {operand} where a vector of {word[1:]} should stand", operand)
    return operand.elements


@instruction(
    "9.7.13.7",
    f"red async [relaxed] [cluster] [shared::cluster] {_DONE} inc|dec u32",
    f"red async [relaxed] [cluster] [shared::cluster] {_DONE} min|max u32|s32",
    f"red async [relaxed] [cluster] [shared::cluster] {_DONE} and|or|xor b32",
    f"red async [relaxed] [cluster] [shared::cluster] {_DONE} add u32|s32|u64",
)
def red_async(form: Form) -> Handler:
    """Combine with shared memory of a CTA of the cluster, and signal an mbarrier there."""
    form.expect(3)
    kind = form.types[0]
    operation = form.one_of("inc", "dec", "min", "max", "and", "or", "xor", "add")
    update = update_of(operation, kind)
    read = form.read(form.operands[1], TYPES[f"b{kind.bits}"])
    space = space_of(form)
    access = MemoryAccess(form.instruction, space, kind.bytes, 1, True, sync=True)
    address = address_of(form, form.operands[0], space)
    barrier = _barrier(form, form.operands[2], space)

    def execute(w: Wave) -> None:
        target = np.broadcast_to(address(w), w.lanes)
        value = np.broadcast_to(read(w), w.lanes)

        def combine(w: Wave) -> None:
            exchange(w, access, target, update, value, value)

        _issue(form, w, barrier, access, combine)

    return execute


def _barrier(form: Form, operand: Operand, space: str) -> tuple[MemoryAccess, Reader]:
    access = MemoryAccess(form.instruction, space, 8, 1, True, sync=True)
    return access, address_of(form, operand, space)


def _issue(
    form: Form, w: Wave, barrier: tuple[MemoryAccess, Reader], access: MemoryAccess, store: Handler
) -> None:
    """Issue a store that completes its bytes on an mbarrier."""
    words, lanes = active_words(w, *barrier)
    w.mbarriers.rows(words, lanes)
    signals = np.full(w.lanes, -1)
    signals[lanes] = words

    def perform(w: Wave) -> None:
        store(w)
        now = np.flatnonzero(w.active())
        amounts: Array = np.full(len(now), access.bytes, np.int64)
        w.mbarriers.complete(signals[now], now, amounts)

    ctas = w.mbarriers.cta_indices(signals)
    w.queues.loads.issue(form.instruction, perform, signals=signals, ctas=ctas)
