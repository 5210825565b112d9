"""Atomic operations. Source: PTX ISA 9.7.13.5 (atom), 9.7.13.6 (red).

Lanes that meet at one address go one after the other, in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.instructions.memory.addresses import address_of, check_hint, space_of
from lego_mlir.sim.machine.memory import MemoryAccess
from lego_mlir.sim.numerics.rounding import canonical
from lego_mlir.sim.ptx import types
from lego_mlir.sim.ptx.decoded import Handler, Reader
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.syntax import Vector
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
_HINT = "[L2::cache_hint]"
_OPS = (
    f"and|or|xor {_HINT} b32|b64",
    f"add {_HINT} u32|s32|u64|s64|f32|f64",
    f"add noftz {_HINT} f16|f16x2|bf16|bf16x2",
    f"inc|dec {_HINT} u32",
    f"min|max {_HINT} u32|s32|u64|s64",
    f"add {_HINT} v2|v4 f32",
    f"add|min|max noftz {_HINT} v2|v4|v8 f16|bf16",
    f"add|min|max noftz {_HINT} v2|v4 f16x2|bf16x2",
)


@instruction(
    "9.7.13.5",
    *(f"atom {_HEAD} {row}" for row in _OPS),
    f"atom {_HEAD} exch {_HINT} b32|b64|b128",
    f"atom {_HEAD} cas {_HINT} b16|b32|b64|b128",
)
def atom(form: Form) -> Handler:
    """Compute d = the value at an address, which becomes `d op b`; for `cas` c if it equals b.

    The elements of a vector are updated one after the other: only each of them is atomic.
    """
    check_hint(form, 4 if form.has("cas") else 3)
    return _atomic(form, True)


@instruction("9.7.13.6", *(f"red {_RED_HEAD} {row}" for row in _OPS))
def red(form: Form) -> Handler:
    """Update a value as `atom`, without a result."""
    check_hint(form, 2)
    return _atomic(form, False)


def _atomic(form: Form, returns: bool) -> Handler:
    kind = form.types[0]
    operation = form.one_of(*_UPDATE)
    at = 1 if returns else 0
    access = MemoryAccess(form.instruction, space_of(form), kind.bytes, 1, True, sync=True)
    address = address_of(form, form.operands[at], access.space)
    raw = types.TYPES[f"b{kind.bits}"]
    update = update_of(operation, kind)
    vector = form.one_of("v2", "v4", "v8")
    stop = len(form.operands) - form.has("L2::cache_hint")
    if vector:
        return _atomic_vector(form, access, address, update, int(vector[1:]), at)
    # Operands are read as bits and given their type where they are combined.
    reads = [form.read(operand, raw) for operand in form.operands[at + 1 : stop]]
    write = form.write(form.operands[0], raw) if returns else None

    def execute(w: Wave) -> None:
        target = np.broadcast_to(address(w), w.lanes)
        operands = [np.broadcast_to(read(w), w.lanes) for read in reads]
        before = exchange(w, access, target, update, operands[0], operands[-1])
        if write is not None:
            write(w, before)

    return execute


def _atomic_vector(
    form: Form, access: MemoryAccess, address: Reader, update: Update, count: int, at: int
) -> Handler:
    """Return the handler of an update of `count` adjacent elements, one after the other."""
    raw = types.TYPES[f"b{8 * access.width}"]
    lists = [form.operands[at + 1], *form.operands[:at]]
    for operand in lists:
        if not isinstance(operand, Vector) or len(operand.elements) != count:
            form.fail(f"the operand {operand} where a vector of {count} should stand", operand)
    given, *results = (operand.elements for operand in lists if isinstance(operand, Vector))
    reads = [form.read(element, raw) for element in given]
    writes = [form.write(element, raw) for found in results for element in found]
    whole = replace(access, count=count)

    def execute(w: Wave) -> None:
        target = np.broadcast_to(address(w), w.lanes)
        values = [np.broadcast_to(read(w), w.lanes) for read in reads]
        before = [np.zeros(w.lanes, UNSIGNED[8 * access.width]) for _ in values]
        for buffer, index, where in w.memory.locate(whole, target, w.mask):
            view = buffer.view(access.width)
            lanes = np.arange(w.lanes) if where is None else where
            for rank in _conflict_free(index):
                who = lanes[rank]
                for k, value in enumerate(values):
                    slots = index[rank] + k
                    old = view[slots]
                    before[k][who] = old
                    view[slots] = update(old, value[who], value[who])
        for write, old in zip(writes, before, strict=False):
            write(w, old)

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
