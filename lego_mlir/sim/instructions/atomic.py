"""Atomic operations. Source: PTX ISA 9.7.13.5 (atom), 9.7.13.6 (red).

Lanes that meet at one address go one after the other, in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.instructions.movement import address_of, space_of, vector_operands
from lego_mlir.sim.machine.memory import MemoryAccess
from lego_mlir.sim.numerics.rounding import canonical
from lego_mlir.sim.ptx import types
from lego_mlir.sim.ptx.form import Form, Handler
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import UNSIGNED, Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

Update = Callable[[Array, Array, Array], Array]

_UPDATE: dict[str, Update] = {
    "and": lambda old, b, c: old & b,
    "or": lambda old, b, c: old | b,
    "xor": lambda old, b, c: old ^ b,
    "exch": lambda old, b, c: b,
    "cas": lambda old, b, c: np.where(old == b, c, old),
    "add": lambda old, b, c: old + b,
    "inc": lambda old, b, c: np.where(old >= b, old & 0, old + old.dtype.type(1)),
    "dec": lambda old, b, c: np.where((old == 0) | (old > b), b, old - old.dtype.type(1)),
    "min": lambda old, b, c: np.minimum(old, b),
    "max": lambda old, b, c: np.maximum(old, b),
}
_OF_FLOATS: dict[str, Update] = {
    "min": lambda old, b, c: np.fmin(old, b),
    "max": lambda old, b, c: np.fmax(old, b),
}
_WHERE = "[cta|cluster|gpu|sys] [global|shared|shared::cta|shared::cluster]"
_HEAD = f"[relaxed|acquire|release|acq_rel] {_WHERE}"
_RED_HEAD = f"[relaxed|release] {_WHERE}"
_OPS = (
    "and|or|xor b32|b64",
    "add u32|s32|u64|f32|f64",
    "add noftz f16|f16x2|bf16|bf16x2",
    "inc|dec u32",
    "min|max u32|s32|u64|s64",
)


@instruction(
    "9.7.13.5",
    *(f"atom {_HEAD} {row}" for row in _OPS),
    f"atom {_HEAD} exch b32|b64",
    f"atom {_HEAD} cas b16|b32|b64",
)
def atom(form: Form) -> Handler:
    """Compute d = the value at an address, which becomes `d op b`; for `cas` c if it equals b."""
    form.expect(4 if form.has("cas") else 3)
    return _atomic(form, True)


@instruction("9.7.13.6", *(f"red {_RED_HEAD} {row}" for row in _OPS))
def red(form: Form) -> Handler:
    """Update a value as `atom`, without a result."""
    form.expect(2)
    return _atomic(form, False)


@instruction("9.7.13.6", "red [relaxed|release] [cta|cluster|gpu|sys] [global] add v2|v4 f32")
def red_vector(form: Form) -> Handler:
    """Add the elements of a vector to neighbours in memory, each as `red.add` does."""
    form.expect(2)
    kind = form.types[0]
    registers = vector_operands(form, form.operands[1])
    count = len(registers)
    access = MemoryAccess(form.instruction, space_of(form), kind.bytes, count, True, sync=True)
    address = address_of(form, form.operands[0], access.space)
    raw = types.TYPES[f"b{kind.bits}"]
    reads = [form.read(register, raw) for register in registers]
    update = update_of("add", kind)

    def execute(w: Wave) -> None:
        target = np.broadcast_to(address(w), w.lanes)
        values = [np.broadcast_to(read(w), w.lanes) for read in reads]
        for buffer, index, where in w.memory.locate(access, target, w.mask):
            view = buffer.view(access.width)
            lanes = np.arange(w.lanes) if where is None else where
            for rank in _conflict_free(index):
                for k, value in enumerate(values):
                    slots, own = index[rank] + k, value[lanes[rank]]
                    view[slots] = update(view[slots], own, own)

    return execute


def _atomic(form: Form, returns: bool) -> Handler:
    kind = form.types[0]
    operation = form.one_of(*_UPDATE)
    at = 1 if returns else 0
    access = MemoryAccess(form.instruction, space_of(form), kind.bytes, 1, True, sync=True)
    address = address_of(form, form.operands[at], access.space)
    raw = types.TYPES[f"b{kind.bits}"]
    # Operands are read as bits and given their type where they are combined.
    reads = [form.read(operand, raw) for operand in form.operands[at + 1 :]]
    write = form.write(form.operands[0], raw) if returns else None
    update = update_of(operation, kind)

    def execute(w: Wave) -> None:
        target = np.broadcast_to(address(w), w.lanes)
        operands = [np.broadcast_to(read(w), w.lanes) for read in reads]
        before = exchange(w, access, target, update, operands[0], operands[-1])
        if write is not None:
            write(w, before)

    return execute


def exchange(
    w: Wave, access: MemoryAccess, target: Array, update: Update, b: Array, c: Array
) -> Array:
    """Update the element at each active lane's address; return the old values."""
    before = np.zeros(w.lanes, UNSIGNED[8 * access.width])
    for buffer, index, where in w.memory.locate(access, target, w.mask):
        view = buffer.view(access.width)
        lanes = np.arange(w.lanes) if where is None else where
        for rank in _conflict_free(index):
            slots, who = index[rank], lanes[rank]
            old = view[slots]
            before[who] = old
            view[slots] = update(old, b[who], c[who])
    return before


def update_of(operation: str, kind: types.Type) -> Update:
    """Return an operation on the register bits of a type.

    Of a number and a NaN, `min` and `max` take the number.
    """
    update = (_OF_FLOATS if kind.is_float else _UPDATE).get(operation, _UPDATE[operation])
    to_values, to_bits = types.values(kind), types.bits(kind)
    nan = kind.is_float and kind.bits < 64
    if to_values is None or to_bits is None:
        return update

    def apply(old: Array, b: Array, c: Array) -> Array:
        result = update(to_values(old), to_values(b), to_values(c))
        return to_bits(canonical(result) if nan else result)

    return apply


def _conflict_free(index: Array) -> Iterator[Array]:
    """Yield positions of `index` in rounds, none of which contains an address twice.

    First come the first lanes of each address, then the second ones, and so on.
    """
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    fresh = np.ones(len(ordered), np.bool_)
    fresh[1:] = ordered[1:] != ordered[:-1]
    start = np.maximum.accumulate(np.where(fresh, np.arange(len(ordered)), 0))
    rank = np.arange(len(ordered)) - start
    by_rank = np.argsort(rank, kind="stable")
    yield from np.split(order[by_rank], np.flatnonzero(np.diff(rank[by_rank])) + 1)
