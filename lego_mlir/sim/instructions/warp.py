"""Instructions that the lanes of a warp perform together. Source: PTX ISA 9.7.9.6, 9.7.13.9–14.

Lanes wait until all living lanes in the member mask have arrived (see `machine`). A lane that
executes such an instruction without being named in its own mask is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.machine.memory import Fault
from lego_mlir.sim.numerics.shuffles import source_lanes
from lego_mlir.sim.ptx.decoded import Handler, Reader, WarpCollective
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.syntax import Pair, Sink
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import B32, PRED, U32, Array, Type

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave


def _together(form: Form, members: Reader, execute: Handler) -> WarpCollective:
    """Return the handler, after a check that every lane names itself."""
    opcode = form.instruction.opcode

    def checked(w: Wave) -> None:
        mask = members(w)
        named = mask >> w.lane_in_warp.astype(np.uint32) & np.uint32(1) != 0
        strangers = ~named if w.mask is None else w.mask & ~named
        if strangers.any():
            lane = int(np.argmax(strangers))
            word = int(np.broadcast_to(mask, w.lanes)[lane])
            raise Fault(
                f"{opcode} in lane {int(w.lane_in_warp[lane])}, which its member mask "
                f"{word:#010x} does not name",
                lane,
            )
        execute(w)

    return WarpCollective(members, checked)


@instruction("9.7.9.6", "shfl sync up|down|bfly|idx b32")
def shfl(form: Form) -> WarpCollective:
    """d = a of another lane, and p whether that lane lies in range; else a of the own lane.

    What comes from a lane that does not take part is undefined; here it is all ones.
    """
    form.expect(5)
    target, a, b, c, members_operand = form.operands
    mode = form.modifiers[1]
    if isinstance(target, Pair):
        write, write_valid = form.write(target.first, B32), form.write(target.second, PRED)
    else:
        write, write_valid = form.write(target, B32), form.write(Sink(), PRED)
    source, by, clamp = form.read(a, B32), form.read(b, U32), form.read(c, U32)
    members = form.read(members_operand, U32)

    def execute(w: Wave) -> None:
        lane = w.lane_in_warp
        other, valid = source_lanes(mode, lane, by(w), clamp(w))
        here = w.warp_bits(w.mask) >> (other & 31).astype(np.uint32) & np.uint32(1) != 0
        at = np.where(here, np.arange(w.lanes) + other - lane, 0)
        value = np.broadcast_to(source(w), w.lanes)[at]
        write(w, np.where(here, value, np.uint32(0xFFFFFFFF)))
        write_valid(w, valid)

    return _together(form, members, execute)


@instruction("9.7.13.9", "vote sync all|any|uni pred", "vote sync ballot b32")
def vote(form: Form) -> WarpCollective:
    """Whether a predicate holds in all lanes, in any, in all or none; or in which."""
    form.expect(3)
    mode = form.modifiers[1]
    holds = form.predicate(form.operands[1])
    members = form.read(form.operands[2], U32)
    write = form.write(form.operands[0], B32 if mode == "ballot" else PRED)

    def execute(w: Wave) -> None:
        active = np.ones(w.lanes, np.bool_) if w.mask is None else w.mask
        named = members(w)
        yes = w.warp_bits(active & holds(w)) & named
        everyone = w.warp_bits(active) & named
        match mode:
            case "all":
                write(w, yes == everyone)
            case "any":
                write(w, yes != 0)
            case "uni":
                write(w, (yes == everyone) | (yes == 0))
            case _:
                write(w, yes)

    return _together(form, members, execute)


@instruction("9.7.13.11", "activemask b32")
def activemask(form: Form) -> Handler:
    """Return the lanes of the warp that the simulator runs together now."""
    form.expect(1)
    write = form.write(form.operands[0], B32)
    return lambda w: write(w, w.warp_bits(w.mask))


@instruction("9.7.13.14", "elect sync")
def elect(form: Form) -> WarpCollective:
    """One lane of the members is elected: p holds in it, d is its number. It is the lowest."""
    form.expect(2)
    target = form.operands[0]
    if not isinstance(target, Pair):
        form.fail(f"the operand {target} where d|p should stand", target)
    write, write_chosen = form.write(target.first, B32), form.write(target.second, PRED)
    members = form.read(form.operands[1], U32)

    def execute(w: Wave) -> None:
        named = w.warp_bits(w.mask) & members(w)
        # The lowest set bit alone; a single bit below 2**32 has an exact logarithm.
        leader = np.log2((named & (~named + np.uint32(1))).astype(np.float64))
        number = np.where(named != 0, leader, 0).astype(np.uint32)
        write(w, number)
        write_chosen(w, number == w.lane_in_warp)

    return _together(form, members, execute)


@instruction("9.7.13.10", "match any sync b32|b64", "match all sync b32|b64")
def match_(form: Form) -> WarpCollective:
    """d = the members with the same value; or with `.all` all members, if their values are equal.

    With `.all`, d is 0 otherwise, and p says which of the two it is.
    """
    form.expect(3)
    target, every = form.operands[0], form.has("all")
    if isinstance(target, Pair) and every:
        write, write_holds = form.write(target.first, B32), form.write(target.second, PRED)
    else:
        write, write_holds = form.write(target, B32), form.write(Sink(), PRED)
    source, members = form.read(form.operands[1], form.types[0]), form.read(form.operands[2], U32)

    def execute(w: Wave) -> None:
        value = np.broadcast_to(source(w), w.lanes)
        result = np.zeros(w.lanes, np.uint32)
        for lanes in _same_members(w, members(w)):
            # Equal values in a warp have equal keys: ranks of the values, apart for each warp.
            _, rank = np.unique(value[lanes], return_inverse=True)
            key = w.warp_of_lane[lanes] * (int(rank.max()) + 1) + rank
            words = np.bincount(key, np.exp2(w.lane_in_warp[lanes]))
            result[lanes] = words[key].astype(np.uint32)
        same = result == w.warp_bits(w.mask) & members(w)
        write(w, np.where(same, result, np.uint32(0)) if every else result)
        write_holds(w, same)

    return _together(form, members, execute)


_REDUCE: dict[str, tuple[Callable[..., Array], Callable[[Type], int]]] = {
    "add": (np.add.reduce, lambda kind: 0),
    "min": (np.minimum.reduce, lambda kind: int(np.iinfo(kind.dtype).max)),
    "max": (np.maximum.reduce, lambda kind: int(np.iinfo(kind.dtype).min)),
    "and": (np.bitwise_and.reduce, lambda kind: 0xFFFFFFFF),
    "or": (np.bitwise_or.reduce, lambda kind: 0),
    "xor": (np.bitwise_xor.reduce, lambda kind: 0),
}


@instruction("9.7.13.12", "redux sync add|min|max u32|s32", "redux sync and|or|xor b32")
def redux(form: Form) -> WarpCollective:
    """d = a of all members, combined."""
    form.expect(3)
    kind = form.types[0]
    reduce, neutral = _REDUCE[form.modifiers[1]]
    fill = kind.dtype.type(neutral(kind))
    write, source = form.write(form.operands[0], kind), form.read(form.operands[1], kind)
    members = form.read(form.operands[2], U32)

    def execute(w: Wave) -> None:
        value = np.broadcast_to(source(w), w.lanes)
        result = np.zeros(w.lanes, kind.dtype)
        for lanes in _same_members(w, members(w)):
            table = np.full((w.warps, 32), fill)
            table[w.warp_of_lane[lanes], w.lane_in_warp[lanes]] = value[lanes]
            combined = reduce(table, axis=1, dtype=kind.dtype)
            result[lanes] = combined[w.warp_of_lane[lanes]]
        write(w, result)

    return _together(form, members, execute)


def _same_members(w: Wave, members: Array) -> Iterator[Array]:
    """Yield the active lanes, by the member mask that they name."""
    active = np.ones(w.lanes, np.bool_) if w.mask is None else w.mask
    if len(members) == 1:
        yield np.flatnonzero(active)
        return
    for word in np.unique(members[active]):
        yield np.flatnonzero(active & (members == word))
