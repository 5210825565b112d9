"""How many registers a thread needs, by the values that live at the same time."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, TypeAlias

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.buffer_users import ancestor_in

_REGISTER_BITS = 32

Spans: TypeAlias = dict[Any, tuple[int, int]]
"""The numbers of operations: of each its own, and the last of those inside it."""


def spans_in(block: Any) -> Spans:
    """Return the numbers of the operations in a block, which count from 0 as the text does."""
    spans: Spans = {}

    def number(block: Any, n: int) -> int:
        for op in block.operations:
            first, n = n, n + 1
            for region in op.operation.regions:
                for inner in region.blocks:
                    n = number(inner, n)
            spans[op.operation] = first, n - 1
        return n

    number(block, 0)
    return spans


def live_registers(spans: Spans) -> int:
    """Return the registers of the values that live where most do, in the order of the text.

    A value lives from its definition to its last use, and through a loop that uses it inside. What
    a loop is given ends where the loop begins, and its results begin behind it. Constants need no
    registers.
    """
    kinds: dict[Any, int] = {}
    change = [0] * (3 + max((end for _, end in spans.values()), default=0))
    for op, (first, last) in spans.items():
        if op.name == "arith.constant":
            continue
        for value in op.results:
            _live(value, last, op.block, spans, change, kinds)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    _live(argument, first + 1, block, spans, change, kinds)
    return max(accumulate(change))


def _live(
    value: Any, begin: int, block: Any, spans: Spans, change: list[int], kinds: dict[Any, int]
) -> None:
    """Add the registers of a value where it begins to live, and subtract them behind its end."""
    kind = value.type
    count = kinds.get(kind)
    if count is None:
        count = kinds[kind] = _registers(kind)
    if not count:
        return
    last = begin
    for use in value.uses:
        user = use.owner.operation
        around = ancestor_in(block, user)
        last = max(last, spans[around][0 if around == user else 1])
    change[begin] += count
    change[last + 1] -= count


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
