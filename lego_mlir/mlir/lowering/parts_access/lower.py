"""Lower lego.load_parts and lego.store_parts to accesses of memory.

    %p:2 = "lego.load_parts"(%x, %i, %j)
        {layout = #X, registers = array<i64: 1, 2, 128, 1, 4, 1>, ...}

becomes, where rows are contiguous and aligned,

    %0 = vector.load %x[%at] {alignment = 16} : memref<4096xf32>, vector<4xf32>
    %1 = arith.addi %at, %c128 overflow<nsw> : index
    %2 = vector.load %x[%1] {alignment = 16} : memref<4096xf32>, vector<4xf32>

What may not exist, or is masked, is accessed in a branch. Where that would take many branches or
narrow accesses, a test that everything is there comes first. A store with `kind` updates memory
atomically.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lego_mlir.mlir.bindings import ir, scf
from lego_mlir.mlir.emit.operations import make
from lego_mlir.mlir.lowering.accesses import constant, zero
from lego_mlir.mlir.lowering.parts_access.accesses import Access
from lego_mlir.mlir.lowering.parts_access.lanes import (
    Lane,
    bits_to_bytes,
    bytes_to_bits,
    grouped,
    lanes_of,
    with_elements,
)
from lego_mlir.mlir.lowering.parts_access.plan import PartsMemory, Plan
from lego_mlir.mlir.lowering.parts_access.updates import Updates

_Write = Callable[[Plan, Access, Any], None]
"""Builds what an access does with a value."""


def lower_load(
    memory: PartsMemory, kinds: Sequence[Any], mask: Sequence[Any], other: Any
) -> list[Any]:
    """Build the reads of parts of the types `kinds`; return the parts.

    Args:
        memory: where they lie.
        kinds: the types of the parts. Parts of i1 are bytes in memory of i8.
        mask: parts of i1; none reads all.
        other: the attribute of what is not read; `None` for 0.
    """
    plan = Plan(memory, mask)
    nothing = zero(memory.element) if other is None else other
    held = [with_elements(kind, memory.element) for kind in kinds]
    if plan.whole is None:
        parts = grouped(_read_by_groups(plan, nothing), held)
    else:
        branch = scf.IfOp(plan.all_hold, held, has_else=True)
        with ir.InsertionPoint(branch.then_block):
            found = _by_register(plan.whole, _read(plan, plan.whole))
            scf.YieldOp(grouped(_in_order(found), held))
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp(grouped(_read_by_groups(plan, nothing), held))
        parts = list(branch.results)
    if held == list(kinds):
        return parts
    return [bytes_to_bits(part) for part in parts]


def lower_store(
    memory: PartsMemory,
    parts: Sequence[Any],
    mask: Sequence[Any],
    updates: Updates | None = None,
) -> None:
    """Build the writes of parts.

    Args:
        memory: where they go.
        parts: the values. Parts of i1 become bytes in memory of i8.
        mask: parts of i1; none writes all.
        updates: the atomic updates that they are; `None` if they replace what was there.
    """
    plan = Plan(memory, mask)
    write = _put if updates is None else updates
    if with_elements(parts[0].type, memory.element) != parts[0].type:
        parts = [bits_to_bytes(part) for part in parts]
    lanes = lanes_of(parts)
    if plan.whole is None:
        _write_by_groups(plan, lanes, write)
        return
    branch = scf.IfOp(plan.all_hold, has_else=True)
    with ir.InsertionPoint(branch.then_block):
        _write(plan, plan.whole, lanes, write, True)
        scf.YieldOp([])
    with ir.InsertionPoint(branch.else_block):
        _write_by_groups(plan, lanes, write)
        scf.YieldOp([])


# Reads.
def _read_by_groups(plan: Plan, nothing: Any) -> list[Lane]:
    """Build the reads of each group under its guard; return what each register holds."""
    lanes: dict[int, Lane] = {}
    for guard, group in plan.groups.items():
        units = [plan.unit(access) for access in group]
        match plan.truths[guard]:
            case True:
                found = _read(plan, group)
            case False:
                found = [constant(unit, nothing) for unit in units]
            case truth:
                branch = scf.IfOp(truth, units, has_else=True)
                with ir.InsertionPoint(branch.then_block):
                    scf.YieldOp(_read(plan, group))
                with ir.InsertionPoint(branch.else_block):
                    scf.YieldOp([constant(unit, nothing) for unit in units])
                found = list(branch.results)
        lanes |= _by_register(group, found)
    return _in_order(lanes)


def _read(plan: Plan, group: Sequence[Access]) -> list[Any]:
    """Build the reads of some accesses."""
    found = []
    for access in group:
        where = plan.memory.flat, plan.offset(access)
        if len(access.lanes) == 1:
            found.append(make("memref.load", plan.unit(access), *where))
        else:
            found.append(make("vector.load", plan.unit(access), *where, **_aligned(plan, access)))
    return found


def _by_register(group: Sequence[Access], values: Sequence[Any]) -> dict[int, Lane]:
    """Return what registers hold when accesses have read some values."""
    return {
        register: (value, position)
        for access, value in zip(group, values, strict=True)
        for position, registers in enumerate(access.lanes)
        for register in registers
    }


def _in_order(lanes: dict[int, Lane]) -> list[Lane]:
    return [lanes[register] for register in range(len(lanes))]


# Writes.
def _write_by_groups(plan: Plan, lanes: Sequence[Lane], write: _Write) -> None:
    """Build the writes of each group under its guard."""
    for guard, group in plan.groups.items():
        truth = plan.truths[guard]
        if truth is not False:
            _write(plan, group, lanes, write, truth)


def _write(
    plan: Plan, group: Sequence[Access], lanes: Sequence[Lane], write: _Write, truth: Any
) -> None:
    """Build the writes of some accesses where a value is true, or `True`."""
    values = [
        grouped([lanes[registers[0]] for registers in access.lanes], [plan.unit(access)])[0]
        for access in group
    ]
    with _where(truth):
        for access, value in zip(group, values, strict=True):
            write(plan, access, value)


def _put(plan: Plan, access: Access, value: Any) -> None:
    """Build the store of the elements of one access."""
    operands = [value, plan.memory.flat, plan.offset(access)]
    if len(access.lanes) == 1:
        ir.Operation.create("memref.store", operands=operands)
    else:
        ir.Operation.create("vector.store", operands=operands, attributes=_aligned(plan, access))


def _aligned(plan: Plan, access: Access) -> dict[str, Any]:
    i64 = ir.IntegerType.get_signless(64)
    return {"alignment": ir.IntegerAttr.get(i64, plan.bytes(access))}


@contextmanager
def _where(truth: Any) -> Iterator[None]:
    """Build within a branch that is taken where a value is true; `True` needs none."""
    if truth is True:
        yield
        return
    branch = scf.IfOp(truth)
    with ir.InsertionPoint(branch.then_block):
        yield
        scf.YieldOp([])
