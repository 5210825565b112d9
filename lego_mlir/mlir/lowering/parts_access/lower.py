"""Lower lego.load_parts and lego.store_parts to accesses of memory.

    %p:2 = "lego.load_parts"(%x, %i, %j)
        {layout = #X, registers = array<i64: 1, 2, 128, 1, 4, 1>, ...}

becomes, where rows are contiguous and aligned,

    %0 = vector.load %x[%at] {alignment = 16} : memref<4096xf32>, vector<4xf32>
    %1 = arith.addi %at, %c128 overflow<nsw> : index
    %2 = vector.load %x[%1] {alignment = 16} : memref<4096xf32>, vector<4xf32>
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.index import Int, construct
from lego_mlir.mlir.bindings import arith, ir, memref, scf, vector
from lego_mlir.mlir.lowering.accesses import Print, constant, takes_vectors, zero
from lego_mlir.mlir.lowering.parts_access import masks
from lego_mlir.mlir.lowering.parts_access.accesses import Access, accesses
from lego_mlir.mlir.lowering.parts_access.conditions import ALWAYS, Condition, conditions
from lego_mlir.mlir.lowering.parts_access.lanes import (
    Lane,
    bits_to_bytes,
    bytes_to_bits,
    element,
    grouped,
    lanes_of,
    with_elements,
)
from lego_mlir.mlir.lowering.parts_access.offsets import Factor, Registers, offset_of

_WIDEST = 16
"""Bytes that one access reads or writes at most."""


@dataclass(frozen=True, slots=True)
class PartsMemory:
    """The memory that parts are in, and how expressions are printed.

    Attributes:
        layout: of the tensor.
        first: the index of the thread's first element.
        factors: the register factors.
        flat: the memory, a buffer of one dimension.
        alignment: bytes that are known to divide the address of its first element.
        index: prints an expression.
        condition: prints an expression's truth.
    """

    layout: Layout
    first: Sequence[Int]
    factors: Sequence[Factor]
    flat: Any
    alignment: int
    index: Print
    condition: Print

    @property
    def element(self) -> Any:
        """The type of an element in memory."""
        return ir.MemRefType(self.flat.type).element_type


@dataclass(frozen=True, slots=True)
class _Guard:
    """What an access depends on: the elements exist, and the mask lets them through."""

    condition: Condition
    mask: masks.MaskElement | None


class _Plan:
    """The accesses of all registers, in groups with the same guard."""

    def __init__(self, memory: PartsMemory, mask: Sequence[Any]) -> None:
        self.memory = memory
        registers = Registers.of(memory.first, memory.factors)
        places = registers.places(offset_of(memory.layout, registers.index))
        let_through = masks.elements(mask) if mask else [None] * len(places)
        same: dict[Any, _Guard] = {}
        guards = []
        for exists, lets in zip(conditions(memory.layout, registers), let_through, strict=True):
            masked = None if lets is None or lets.key is True else lets
            key = exists, None if masked is None else masked.key
            guards.append(same.setdefault(key, _Guard(exists, masked)))
        self.groups: dict[_Guard, list[Access]] = {}
        for access in accesses(places, guards, self._widest):
            self.groups.setdefault(access.guard, []).append(access)  # type: ignore[arg-type]
        self._values: dict[Int, tuple[int, Any]] = {}

    @property
    def _widest(self) -> int:
        """The most elements of an access, a power of two."""
        if not takes_vectors(self.memory.flat.type):
            return 1
        size = bytes_of(self.memory.element)
        widest = min(_WIDEST, self.memory.alignment & -self.memory.alignment)
        return max(1, widest // size)

    def offset(self, access: Access) -> Any:
        """Build the offset of an access; those with the same base share it."""
        if access.base not in self._values:
            first = construct.add(access.base, access.constant)
            self._values[access.base] = access.constant, self.memory.index(first)
        known, value = self._values[access.base]
        if access.constant == known:
            return value
        distance = arith.ConstantOp(ir.IndexType.get(), access.constant - known).result
        return arith.AddIOp(value, distance, overflowFlags=arith.IntegerOverflowFlags.nsw).result

    def truth(self, guard: _Guard) -> Any:
        """Build the truth of a guard: a value, or a bool where it is known."""
        if guard.mask is not None and guard.mask.key is False:
            return False
        expression = guard.condition.expression
        if isinstance(expression, int) and not expression:
            return False
        found = [] if guard.condition == ALWAYS else [self.memory.condition(expression)]
        if guard.mask is not None:
            found.append(element(guard.mask.lane))
        match found:
            case []:
                return True
            case [one]:
                return one
        return arith.AndIOp(*found).result

    def unit(self, access: Access) -> Any:
        """Return the type of an access's value."""
        width = len(access.lanes)
        element = self.memory.element
        return element if width == 1 else ir.VectorType.get([width], element)

    def bytes(self, access: Access) -> int:
        """Return the bytes of an access."""
        return len(access.lanes) * bytes_of(self.memory.element)


def bytes_of(element: Any) -> int:
    """Return the bytes of an element in memory."""
    return max(1, getattr(element, "width", 64) // 8)


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
    plan = _Plan(memory, mask)
    nothing = zero(memory.element) if other is None else other
    lanes: dict[int, Lane] = {}
    for guard, group in plan.groups.items():
        units = [plan.unit(access) for access in group]
        match plan.truth(guard):
            case True:
                found = _read(plan, group)
            case False:
                found = [constant(unit, nothing) for unit in units]
            case truth:
                for access in group:
                    plan.offset(access)  # before the branch, where others find it
                branch = scf.IfOp(truth, units, has_else=True)
                with ir.InsertionPoint(branch.then_block):
                    scf.YieldOp(_read(plan, group))
                with ir.InsertionPoint(branch.else_block):
                    scf.YieldOp([constant(unit, nothing) for unit in units])
                found = list(branch.results)
        for access, value in zip(group, found, strict=True):
            for position, registers in enumerate(access.lanes):
                lanes.update(dict.fromkeys(registers, (value, position)))
    in_order = [lanes[register] for register in range(len(lanes))]
    held = [with_elements(kind, memory.element) for kind in kinds]
    parts = grouped(in_order, held)
    if held == list(kinds):
        return parts
    return [bytes_to_bits(part, kind) for part, kind in zip(parts, kinds, strict=True)]


def lower_store(memory: PartsMemory, parts: Sequence[Any], mask: Sequence[Any]) -> None:
    """Build the writes of parts.

    Args:
        memory: where they go.
        parts: the values. Parts of i1 become bytes in memory of i8.
        mask: parts of i1; none writes all.
    """
    plan = _Plan(memory, mask)
    if with_elements(parts[0].type, memory.element) != parts[0].type:
        parts = [bits_to_bytes(part) for part in parts]
    lanes = lanes_of(parts)
    for guard, group in plan.groups.items():
        truth = plan.truth(guard)
        if truth is False:
            continue
        values = [
            grouped([lanes[registers[0]] for registers in access.lanes], [plan.unit(access)])[0]
            for access in group
        ]
        offsets = [plan.offset(access) for access in group]
        with _where(truth):
            for access, value, offset in zip(group, values, offsets, strict=True):
                if len(access.lanes) == 1:
                    memref.StoreOp(value, memory.flat, [offset])
                else:
                    vector.StoreOp(value, memory.flat, [offset], alignment=plan.bytes(access))


def _read(plan: _Plan, group: Sequence[Access]) -> list[Any]:
    """Build the reads of some accesses."""
    flat = plan.memory.flat
    return [
        memref.LoadOp(flat, [plan.offset(access)]).result
        if len(access.lanes) == 1
        else vector.LoadOp(
            plan.unit(access), flat, [plan.offset(access)], alignment=plan.bytes(access)
        ).result
        for access in group
    ]


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
