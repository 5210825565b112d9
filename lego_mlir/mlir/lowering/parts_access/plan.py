"""The accesses of all registers of a thread, and what they depend on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from lego_mlir.algebra import Layout
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES
from lego_mlir.index import Int, construct
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.emit.operations import make, plus
from lego_mlir.mlir.lowering.accesses import Print, takes_vectors
from lego_mlir.mlir.lowering.parts_access import masks
from lego_mlir.mlir.lowering.parts_access.accesses import Access, accesses
from lego_mlir.mlir.lowering.parts_access.conditions import (
    ALWAYS,
    Condition,
    RegisterPlaces,
    places_of,
)
from lego_mlir.mlir.lowering.parts_access.lanes import element
from lego_mlir.mlir.lowering.parts_access.offsets import Factor

_MOST_GROUPS = 4
"""The most guards that are tested one by one; of more, one test of all of them comes first."""


@dataclass(frozen=True, slots=True)
class PartsMemory:
    """The memory that parts are in, and how expressions are read and printed.

    Attributes:
        layout: of the tensor.
        first: the index of the thread's first element.
        factors: the register factors.
        in_bounds: whether all indices are known to be inside of the layout's dimensions.
        flat: the memory, a buffer of one dimension.
        alignment: bytes that are known to divide the address of its first element.
        read: returns the expression of a value of type index.
        note: takes notice of an expression that is computed.
        index: prints an expression.
        condition: prints an expression's truth.
    """

    layout: Layout
    first: Sequence[Int]
    factors: Sequence[Factor]
    in_bounds: bool
    flat: Any
    alignment: int
    read: Callable[[Any], Int]
    note: Callable[[Int], None]
    index: Print
    condition: Print

    @property
    def element(self) -> Any:
        """The type of an element in memory."""
        return ir.MemRefType(self.flat.type).element_type

    @property
    def registers(self) -> tuple[Layout, tuple[Int, ...], tuple[Factor, ...], bool]:
        """What determines where the registers of a thread lie: the arguments of `places_of`."""
        return self.layout, tuple(self.first), tuple(self.factors), self.in_bounds


@dataclass(frozen=True, slots=True)
class Guard:
    """What an access depends on: the elements exist, and the mask lets them through."""

    condition: Condition
    mask: masks.MaskElement | None

    @property
    def is_never(self) -> bool:
        """Whether it is known that nothing is accessed."""
        return self.condition.is_never or (self.mask is not None and self.mask.key is False)


Groups = Mapping[Guard, Sequence[Access]]
"""Accesses by what they depend on."""


class _Grouped(NamedTuple):
    """Accesses in groups, those of `Plan.whole`, and the condition of all registers."""

    groups: Groups
    whole: Sequence[Access] | None
    all_exist: Condition


def _grouped(
    where: RegisterPlaces, let_through: Sequence[masks.MaskElement | None], widest: int
) -> _Grouped:
    """Return the accesses of all registers in groups with the same guard.

    Args:
        where: the registers lie.
        let_through: the element of the mask for each register; `None` of a mask that is not there.
        widest: the most elements of an access.
    """
    same: dict[Any, Guard] = {}
    guards = []
    for exists, lets in zip(where.exist, let_through, strict=True):
        masked = None if lets is None or lets.key is True else lets
        key = exists, None if masked is None else masked.key
        guards.append(same.setdefault(key, Guard(exists, masked)))
    grouped: dict[Guard, list[Access]] = {}
    for access in accesses(where.places, guards, widest):
        grouped.setdefault(access.guard, []).append(access)  # type: ignore[arg-type]
    whole = None
    if len(grouped) > 1 and not any(guard.is_never for guard in grouped):
        together = accesses(where.places, [None] * len(guards), widest)
        count = sum(map(len, grouped.values()))
        if len(together) < count or len(grouped) > _MOST_GROUPS:
            whole = together
    return _Grouped(grouped, whole, where.all_exist)


@lru_cache(maxsize=1 << 10)
def _unmasked(
    registers: tuple[Layout, tuple[Int, ...], tuple[Factor, ...], bool], widest: int
) -> _Grouped:
    """Return the accesses without a mask; `registers` as `PartsMemory.registers` has them."""
    where = places_of(*registers)
    return _grouped(where, [None] * len(where.places), widest)


class Plan:
    """The accesses of all registers, in groups with the same guard.

    Args:
        memory: where they go.
        mask: parts of i1; none lets all through.

    Attributes:
        groups: the accesses, with their guards.
        truths: for each guard its truth: a value, or a bool where it is known.
        whole: the accesses if all guards hold; `None` if a test of that saves nothing.
        all_hold: whether they do.
    """

    def __init__(self, memory: PartsMemory, mask: Sequence[Any]) -> None:
        self.memory = memory
        if mask:
            let_through = masks.elements(mask, memory.read)
            found = _grouped(places_of(*memory.registers), let_through, self._widest)
        else:
            find = _unmasked.__wrapped__ if memory.layout.functions else _unmasked
            found = find(memory.registers, self._widest)
        self.groups, self.whole, self._all_exist = grouped, _, _ = found
        self._masks = {m.key: m for guard in grouped if (m := guard.mask) is not None}
        made = [access for guard in grouped if not guard.is_never for access in grouped[guard]]
        for access in made:
            memory.note(construct.add(access.base, access.constant))
        # Printed here, before all branches, so that any of them and later operations may use it.
        self._bases = self._printed_bases([*(self.whole or ()), *made])
        self.truths = {guard: self._truth(guard) for guard in grouped}
        self.all_hold = None if self.whole is None else self._truth_of_all()

    @property
    def _widest(self) -> int:
        """The most elements of an access, a power of two."""
        if not takes_vectors(self.memory.flat.type) or self.memory.element == ir.IndexType.get():
            return 1
        widest = min(MAX_ACCESS_BYTES, self.memory.alignment & -self.memory.alignment)
        return max(1, widest // bytes_of(self.memory.element))

    def _printed_bases(self, made: Sequence[Access]) -> dict[Int, tuple[int, Any]]:
        """Return the offset of the first access with each base: its constant, and the value."""
        first: dict[Int, int] = {}
        for access in made:
            first[access.base] = min(access.constant, first.get(access.base, access.constant))
        return {b: (c, self.memory.index(construct.add(b, c))) for b, c in first.items()}

    def offset(self, access: Access) -> Any:
        """Build the offset of an access; those with the same base share its computation."""
        known, value = self._bases[access.base]
        if access.constant == known:
            return value
        return plus(value, access.constant - known)

    def _truth(self, guard: Guard) -> Any:
        if guard.is_never:
            return False
        return self._conjunction(guard.condition, [] if guard.mask is None else [guard.mask])

    def _truth_of_all(self) -> Any:
        return self._conjunction(self._all_exist, list(self._masks.values()))

    def _conjunction(self, condition: Condition, let_through: Sequence[masks.MaskElement]) -> Any:
        found = [] if condition == ALWAYS else [self.memory.condition(condition.expression)]
        found += [element(mask.lane) for mask in let_through]
        if not found:
            return True
        truth = found[0]
        for other in found[1:]:
            truth = make("arith.andi", truth.type, truth, other)
        return truth

    def unit(self, access: Access) -> Any:
        """Return the type of an access's value."""
        width = len(access.lanes)
        kind = self.memory.element
        return kind if width == 1 else ir.VectorType.get([width], kind)

    def bytes(self, access: Access) -> int:
        """Return the bytes of an access, to which its address is aligned."""
        return len(access.lanes) * bytes_of(self.memory.element)


def bytes_of(kind: Any) -> int:
    """Return the bytes of an element in memory."""
    return max(1, getattr(kind, "width", 64) // 8)
