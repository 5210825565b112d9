"""How many registers a thread needs, by the values that live at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from lego_mlir.mlir.bindings import ir

_REGISTER_BITS = 32


@dataclass(slots=True)
class _Life:
    """The life of a value.

    Attributes:
        registers: that hold it.
        depth: of the block that defines it.
        begin: the number of the operation from which on it lives.
        last: that of the last one that uses it.
    """

    registers: int
    depth: int
    begin: int
    last: int


def live_registers(body: Any) -> int:
    """Return the registers of the values that live where most do, in the order of the text.

    A value lives from its definition to its last use, and through a loop that uses it inside. What
    a loop is given ends where the loop begins, and its results begin behind it. Constants need no
    registers.

    Args:
        body: the block of a kernel.
    """
    lives = _Lives()
    change = [0] * (2 + lives.block(body, 0, 0))
    for life in lives.found.values():
        change[life.begin] += life.registers
        change[life.last + 1] -= life.registers
    return max(accumulate(change))


class _Lives:
    """Finds the lives of values on one walk, which numbers operations as the text does.

    Attributes:
        found: the lives so far, by value.
    """

    def __init__(self) -> None:
        self.found: dict[Any, _Life] = {}
        self._kinds: dict[Any, int] = {}
        self._around: dict[int, list[_Life]] = {}

    def block(self, block: Any, depth: int, number: int) -> int:
        """Walk over a block; return the number of the operation behind it.

        Args:
            block: the block.
            depth: how many operations it is inside of.
            number: of its first operation.
        """
        for op in (each.operation for each in block.operations):
            first, number = number, number + 1
            for value in op.operands:
                life = self.found.get(value)
                if life is None:
                    continue
                if life.depth == depth:
                    life.last = first
                else:
                    self._around.setdefault(life.depth, []).append(life)
            for region in op.regions:
                for inner in region.blocks:
                    for argument in inner.arguments:
                        self._begin(argument, depth + 1, first + 1)
                    number = self.block(inner, depth + 1, number)
            for life in self._around.pop(depth, ()):  # used inside
                life.last = number - 1
            if op.name != "arith.constant":
                for value in op.results:
                    self._begin(value, depth, number - 1)
        return number

    def _begin(self, value: Any, depth: int, number: int) -> None:
        kind = value.type
        count = self._kinds.get(kind)
        if count is None:
            count = self._kinds[kind] = _registers(kind)
        if count:
            self.found[value] = _Life(count, depth, number, number)


def _registers(kind: Any) -> int:
    """Return the registers that hold a value; none for a truth value, which is a predicate."""
    count = 1
    if isinstance(kind, ir.VectorType):
        count, kind = int(ir.VectorType(kind).shape[0]), ir.VectorType(kind).element_type
    match kind:
        case ir.IndexType():
            return count
        case ir.IntegerType() | ir.FloatType() if kind.width > 1:
            return -(-count * int(kind.width) // _REGISTER_BITS)
    return 0
