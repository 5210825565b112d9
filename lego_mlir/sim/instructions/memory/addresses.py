"""Memory operands: their state space and address. Source: PTX ISA 6.4.1, 9.7.9."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.machine.memory import RANK_SHIFT
from lego_mlir.sim.ptx.decoded import Reader
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.syntax import Address, Integer, Operand, Register, Symbol
from lego_mlir.sim.ptx.types import B64, TYPES, Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

SPACE = "const|global|local|param|param::entry|param::func|shared|shared::cta|shared::cluster"


def space_of(form: Form) -> str:
    """The state space that the instruction names, or `generic`."""
    return space_named(form.one_of(*SPACE.split("|")))


def space_named(word: str) -> str:
    """The state space of a modifier: `shared` for `shared::cta`, `generic` where there is none."""
    return word if word == "shared::cluster" else word.split("::")[0] or "generic"


def space_at(form: Form, operand: Operand) -> str:
    """The state space of an access: `local` for the `.param` variables of functions and calls."""
    space = space_of(form)
    if space == "param" and isinstance(operand, Address):
        match operand.base:
            case Symbol(name) if form.address(operand.base, name)[0] in ("local", "frame"):
                return "local"
            case Register() if form.symbols.function is not None:
                form.fail("the address of a function's parameter in a register", operand)
    return space


def address_of(form: Form, operand: Operand, space: str) -> Reader:
    """The address in bytes of a memory operand, as uint64."""
    if not isinstance(operand, Address):
        form.fail(f"the operand {operand} where an address should stand", operand)
    match operand.base:
        case Symbol(name):
            home, start = form.address(operand.base, name)
            if home == "frame" and space == "local":
                at = np.uint64(start + operand.offset)
                return lambda w: w.calls.frame + at
            if home != space and (space, home) not in _CONTAINED:
                form.fail(f"{name} lies in {home} memory, not {space}", operand)
            return _fixed(start + operand.offset)
        case Integer(value):
            return _fixed(value + operand.offset)
        case Register() as register:
            return _dynamic(form, register, operand.offset, space)


_CONTAINED = {("generic", "global"), ("generic", "const"), ("shared::cluster", "shared")}
"""A space, and one whose addresses are valid in it as they are."""

_SHORT = ("shared", "shared::cluster", "local", "const", "param")
"""The spaces whose addresses may have 32 bits."""


def _fixed(address: int) -> Reader:
    value = np.array([address % (1 << 64)], np.uint64)
    return lambda w: value


def _dynamic(form: Form, register: Register, offset: int, space: str) -> Reader:
    declared = form.symbols.registers.get(register.name, (0, B64))[1]
    bits = declared.bits
    if bits != 64 and not (bits == 32 and space in _SHORT):
        form.fail(f"the register {register} is {declared} where an address should stand", register)
    read = form.read(register, TYPES[f"u{bits}"])
    if bits == 64:
        if offset == 0:
            return read
        step = np.uint64(offset % (1 << 64))
        return lambda w: read(w) + step
    # An address of 32 bits wraps: -64 + 68 is 4.
    short = np.uint32(offset % (1 << 32))
    return lambda w: (read(w) + short).astype(np.uint64)


def check_hint(form: Form, count: int, most: int = 0) -> None:
    """Check for `count` operands (to `most`), and a cache policy behind them if it is announced.

    A policy changes nothing.
    """
    hint = form.has("L2::cache_hint")
    form.expect(count + hint, max(count, most) + hint)
    if hint:
        form.read(form.operands[-1], B64)


def own_rank(w: Wave) -> Array:
    """The rank of each lane's CTA in its cluster."""
    rank: Array = w.cta_index_of_lane % w.cluster_size
    return rank


def rank_of(w: Wave, address: Array) -> Array:
    """The rank of the CTA that addresses of shared memory, generic or not, lie in."""
    named = (address.astype(np.uint64) >> RANK_SHIFT).astype(np.int64) & 0xFF
    return np.where(named == 0, own_rank(w), named - 1)
