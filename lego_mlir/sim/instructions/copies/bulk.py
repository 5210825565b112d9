"""Bulk copies: contiguous bytes, moved by the copy engine for one thread.

Copies into shared memory complete on an mbarrier, by its tx-count; those to global memory in bulk
groups.
A multicast writes to the same offset, and signals the same mbarrier, in several CTAs.

Source: PTX ISA 9.7.9.25.4 (cp.async.bulk, cp.reduce.async.bulk), 9.7.9.25.4.6–7 (bulk groups).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.instructions.copies.mbarrier import of_lanes
from lego_mlir.sim.instructions.memory.addresses import address_of, space_named
from lego_mlir.sim.instructions.memory.atomic import Update, update_of
from lego_mlir.sim.machine.memory import RANK_SHIFT, Fault, MemoryAccess
from lego_mlir.sim.ptx.decoded import Handler, Reader
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import B64, TYPES, U32, Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

DONE = "mbarrier::complete_tx::bytes"
SHARED = "shared::cta|shared::cluster"
_OFFSET = np.uint64((1 << int(RANK_SHIFT)) - 1)

LaneAction = Callable[["Wave", int], None]
"""What an operation does for one lane, given by its number."""


def for_each_lane(do: LaneAction) -> Handler:
    """Return a stage that is performed for one lane after the other."""

    def stage(w: Wave) -> None:
        mask = w.mask
        for lane in np.flatnonzero(w.active()):
            do(w, int(lane))
        w.mask = mask

    return stage


class Signal:
    """The mbarrier on which a copy into shared memory completes, and its destination CTAs.

    Args:
        form: the copy.
        at: index of the operand that names the mbarrier.
        ranks: the operand with the CTAs of a multicast, one bit for each rank.
    """

    def __init__(self, form: Form, at: int, space: str, ranks: Reader | None) -> None:
        self.access = MemoryAccess(form.instruction, space, 8, 1, True, "async", sync=True)
        self.address = address_of(form, form.operands[at], space)
        self.ranks = ranks
        self.form = form

    def issue(self, w: Wave, target: Array, size: Array, copy: Callable[..., None]) -> None:
        """Issue a copy of the active lanes that completes on their mbarriers.

        Args:
            w: the wave.
            target: the destination of each lane in shared memory.
            size: the bytes of each lane, which are completed on the mbarriers.
            copy: performs the copy: a function of the wave, the lane and the targets (uint64),
                one for each destination CTA.
        """
        lanes = np.flatnonzero(w.active())
        reach = self._reached(w, lanes)
        most = max(len(ranks) for ranks in reach)
        words = np.full((w.lanes, most), -1)
        targets = np.zeros((w.lanes, most), np.uint64)
        barriers = of_lanes(w, self.address, lanes)
        for lane, address, barrier, ranks in zip(
            lanes, of_lanes(w, lambda w: target, lanes), barriers, reach, strict=True
        ):
            who = np.full(len(ranks), lane)
            words[lane, : len(ranks)] = w.mbarriers.locate(self.access, _at(barrier, ranks), who)
            w.mbarriers.rows(words[lane, : len(ranks)], who)
            targets[lane, : len(ranks)] = _at(address, ranks)
        amounts = np.broadcast_to(size, w.lanes).astype(np.int64)

        def do(w: Wave, lane: int) -> None:
            here = words[lane] >= 0
            copy(w, lane, targets[lane, here])
            count = int(here.sum())
            w.mbarriers.complete(
                words[lane, here], np.full(count, lane), np.full(count, amounts[lane])
            )

        w.queues.loads.issue(
            self.form.instruction,
            for_each_lane(do),
            signals=words,
            ctas=w.mbarriers.cta_indices(words),
        )

    def _reached(self, w: Wave, lanes: Array) -> list[list[int]]:
        """Return the destination ranks of each lane; -1 for the CTA that its addresses name."""
        if self.ranks is None:
            return [[-1]] * len(lanes)
        found = []
        for lane, mask in zip(lanes, of_lanes(w, self.ranks, lanes), strict=True):
            ranks = [r for r in range(16) if int(mask) >> r & 1]
            if not ranks or ranks[-1] >= w.cluster_size:
                raise Fault(
                    f"{self.form.instruction.opcode} to the CTAs {int(mask):#x} of a cluster of "
                    f"{w.cluster_size}",
                    int(lane),
                )
            found.append(ranks)
        return found


def _at(address: np.uint64, ranks: list[int]) -> Array:
    """Return a shared memory address in the CTAs of these ranks; -1 keeps it as it is."""
    named = [address if r < 0 else (address & _OFFSET) | _named(r) for r in ranks]
    return np.array(named, np.uint64)


def _named(rank: int) -> np.uint64:
    return np.uint64(rank + 1) << RANK_SHIFT


def check_aligned(w: Wave, address: Array, to: int, opcode: str, what: str) -> None:
    """Check that addresses or sizes of active lanes are multiples of `to`.

    Raises:
        Fault: there are any.
    """
    bad = w.active() & (address % address.dtype.type(to) != 0)
    if bad.any():
        lane = int(np.argmax(bad))
        value = int(np.broadcast_to(address, w.lanes)[lane])
        offset = value if value < 1 << 36 else value & ((1 << 35) - 1)
        raise Fault(
            f"misaligned: {opcode} with {what} {offset}, which is no multiple of {to}", lane
        )


class BulkCopy:
    """The operands that all bulk copies share: `[target], [source], size`."""

    def __init__(self, form: Form) -> None:
        words = [m for m in form.modifiers if m == "global" or m.startswith("shared")]
        self.opcode = form.instruction.opcode
        self.target_space, self.source_space = map(space_named, words)
        self.target = address_of(form, form.operands[0], self.target_space)
        self.source = address_of(form, form.operands[1], self.source_space)
        self.size = form.read(form.operands[2], U32)
        self.reads = MemoryAccess(form.instruction, self.source_space, 8, 1, False, "async")
        self.writes = MemoryAccess(form.instruction, self.target_space, 8, 1, True, "async")

    def operands(self, w: Wave) -> tuple[Array, Array, Array]:
        """Return target, source and size of each lane, checked for alignment."""
        target, source, size = self.target(w), self.source(w), self.size(w)
        check_aligned(w, target, 16, self.opcode, "a target at byte")
        check_aligned(w, source, 16, self.opcode, "a source at byte")
        check_aligned(w, size, 16, self.opcode, "a size of")
        everywhere = [np.broadcast_to(x, w.lanes) for x in (target, source, size)]
        return everywhere[0], everywhere[1], everywhere[2]


def addresses(start: np.uint64, size: int, step: int) -> Array:
    """Return the addresses of contiguous bytes, `step` apart."""
    return start + np.arange(0, size, step).astype(np.uint64)


@instruction(
    "9.7.9.25.4.1",
    f"cp async bulk {SHARED} global {DONE} [multicast::cluster] [L2::cache_hint]",
    f"cp async bulk shared::cluster shared::cta {DONE}",
)
def load(form: Form) -> Handler:
    """Copy bytes into shared memory, and signal an mbarrier."""
    hint, many = form.has("L2::cache_hint"), form.has("multicast::cluster")
    form.expect(4 + hint + many)
    copy_operands = BulkCopy(form)
    ranks = form.read(form.operands[4], TYPES["u16"]) if many else None
    signal = Signal(form, 3, copy_operands.target_space, ranks)
    if hint:
        form.read(form.operands[-1], B64)

    def execute(w: Wave) -> None:
        target, source, size = copy_operands.operands(w)

        def copy(w: Wave, lane: int, targets: Array) -> None:
            where = addresses(source[lane], int(size[lane]), 8)
            who = np.full(len(where), lane)
            values = w.memory.read(copy_operands.reads, where, who)
            for to in targets:
                w.memory.write(copy_operands.writes, addresses(to, int(size[lane]), 8), values, who)

        signal.issue(w, target, size, copy)

    return execute


@instruction(
    "9.7.9.25.4.1", "cp async bulk global shared::cta bulk_group [L2::cache_hint] [cp_mask]"
)
def store(form: Form) -> Handler:
    """Copy bytes from shared to global memory; with a mask, selected bytes of every 16."""
    hint, masked = form.has("L2::cache_hint"), form.has("cp_mask")
    form.expect(3 + hint + masked)
    copy_operands = BulkCopy(form)
    if hint:
        form.read(form.operands[3], B64)
    chosen = form.read(form.operands[-1], TYPES["u16"]) if masked else None
    writes = MemoryAccess(form.instruction, "global", 1, 1, True, "async")

    def execute(w: Wave) -> None:
        target, source, size = copy_operands.operands(w)
        bits = None if chosen is None else np.broadcast_to(chosen(w), w.lanes)
        data: dict[int, Array] = {}

        def read(w: Wave, lane: int) -> None:
            where = addresses(source[lane], int(size[lane]), 8)
            data[lane] = w.memory.read(copy_operands.reads, where, np.full(len(where), lane))

        def write(w: Wave, lane: int) -> None:
            values = data.pop(lane)
            if bits is None:
                where = addresses(target[lane], int(size[lane]), 8)
                w.memory.write(copy_operands.writes, where, values, np.full(len(where), lane))
                return
            kept = np.arange(int(size[lane])) % 16
            kept = np.flatnonzero(int(bits[lane]) >> kept & 1)
            where = target[lane] + kept.astype(np.uint64)
            w.memory.write(writes, where, values.view(np.uint8)[kept], np.full(len(kept), lane))

        issue_store(form, w, read, write)

    return execute


def issue_store(form: Form, w: Wave, read: LaneAction, write: LaneAction) -> None:
    """Issue a copy of the active lanes from their shared memory, for a bulk group."""
    ctas = np.where(w.active(), w.cta_index_of_lane, -1)
    w.queues.stores.issue(form.instruction, for_each_lane(read), for_each_lane(write), ctas=ctas)


_TO_SHARED = ("and|or|xor b32", "add u32|s32|u64", "inc|dec u32", "min|max u32|s32")
_TO_GLOBAL = (
    "and|or|xor b32|b64",
    "add u32|s32|u64|f32|f64",
    "add noftz f16|bf16",
    "inc|dec u32",
    "min|max u32|s32|u64|s64|f16|bf16",
)


@instruction(
    "9.7.9.25.4.2",
    *(f"cp reduce async bulk shared::cluster shared::cta {DONE} {row}" for row in _TO_SHARED),
    *(
        f"cp reduce async bulk global shared::cta bulk_group [L2::cache_hint] {row}"
        for row in _TO_GLOBAL
    ),
)
def reduce(form: Form) -> Handler:
    """Combine elements in shared memory with elements elsewhere."""
    hint, signals = form.has("L2::cache_hint"), form.has(DONE)
    form.expect(3 + hint + signals)
    copy_operands = BulkCopy(form)
    kind = form.types[0]
    update = update_of(form.one_of(*REDUCTIONS), kind)
    signal = Signal(form, 3, copy_operands.target_space, None) if signals else None
    if hint:
        form.read(form.operands[-1], B64)
    width = kind.bytes
    reads = MemoryAccess(form.instruction, "shared", width, 1, False, "async")
    target_access = MemoryAccess(
        form.instruction, copy_operands.target_space, width, 1, True, "async", sync=True
    )

    def execute(w: Wave) -> None:
        target, source, size = copy_operands.operands(w)
        data: dict[int, Array] = {}

        def read(w: Wave, lane: int) -> None:
            where = addresses(source[lane], int(size[lane]), width)
            data[lane] = w.memory.read(reads, where, np.full(len(where), lane))

        def write(w: Wave, lane: int) -> None:
            combine(
                w,
                target_access,
                addresses(target[lane], int(size[lane]), width),
                data.pop(lane),
                update,
                lane,
            )

        if signal is None:
            issue_store(form, w, read, write)
            return

        def copy(w: Wave, lane: int, targets: Array) -> None:
            read(w, lane)
            write(w, lane)

        signal.issue(w, target, size, copy)

    return execute


REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def combine(
    w: Wave, access: MemoryAccess, where: Array, values: Array, update: Update, lane: int
) -> None:
    """Combine elements at different addresses with values, on behalf of one lane."""
    who = np.full(len(where), lane)
    old = w.memory.read(access, where, who)
    w.memory.write(access, where, update(old, values, values), who)


@instruction("9.7.9.25.4.3", "cp async bulk prefetch L2 global [L2::cache_hint]")
def prefetch(form: Form) -> Handler:
    """Prefetch bytes: the simulator has no cache."""
    form.expect(2 + form.has("L2::cache_hint"))
    address = address_of(form, form.operands[0], "global")
    size = form.read(form.operands[1], U32)

    def execute(w: Wave) -> None:
        check_aligned(w, address(w), 16, form.instruction.opcode, "a source at byte")
        check_aligned(w, size(w), 16, form.instruction.opcode, "a size of")

    return execute


@instruction("9.7.9.25.4.6", "cp async bulk commit_group")
def commit_group(form: Form) -> Handler:
    """Close a group of the thread's bulk copies to global memory."""
    form.expect(0)
    return lambda w: w.queues.stores.commit()


@instruction("9.7.9.25.4.7", "cp async bulk wait_group [read]")
def wait_group(form: Form) -> Handler:
    """Wait until at most N bulk groups are pending; `.read`: have not read their source."""
    form.expect(1)
    most = form.constant(form.operands[0], 0, (1 << 31) - 1)
    stage = 1 if form.has("read") else None
    return lambda w: w.queues.stores.wait(most, stage=stage)
