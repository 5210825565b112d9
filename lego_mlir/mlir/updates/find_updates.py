"""Elements that are read, changed and written back, and by what path: `h[i] = h[i] + 1`.

Such an update is a lego.store of what was computed from a lego.load of the same element. Two loads
and stores are of the same element here where they name it in the same way: the same buffer, layout
and index. What else a store overwrites is nobody's to tell but the simulator's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.modules import named_attributes

_OWN_UPDATES = {dialect.EXCLUSIVE, dialect.KIND}
"""Attributes of stores that lose no update: by promise, or since they are atomic."""


def updates(operations: Iterable[Any]) -> Iterator[Any]:
    """Return the stores of a module that write back what was read and changed, and promise nothing.

    Args:
        operations: all of the module, outer before inner, in order.
    """
    operations = list(operations)
    stored = {op.operands[1] for op in operations if op.name == dialect.STORE}
    loads = [op for op in operations if op.name == dialect.LOAD and op.operands[0] in stored]
    if not loads:
        return
    carried = _carried(operations, loads)
    number = _numbered(operations)

    def element(op: Any, buffer: int) -> tuple[Any, ...]:
        """Name the element of an access, whose operands from number `buffer` on say which it is."""
        places = [op.attributes[a] for a in (dialect.LAYOUT, dialect.SLICE) if a in op.attributes]
        return *(number[operand] for operand in list(op.operands)[buffer:]), *places

    of_element: dict[tuple[Any, ...], int] = {}
    for k, load in enumerate(loads):
        key = element(load, 0)
        of_element[key] = of_element.get(key, 0) | 1 << k
    for op in operations:
        if op.name == dialect.STORE and not _OWN_UPDATES & set(named_attributes(op)):
            from_loads = carried.get(op.operands[0], 0)
            if from_loads and from_loads & of_element.get(element(op, 1), 0):
                yield op


def _carried(operations: list[Any], loads: list[Any]) -> dict[Any, int]:
    """Return the loads that each value is computed from, a bit for each."""
    number = {load: k for k, load in enumerate(loads)}
    found: dict[Any, int] = {}
    for op in operations:
        together = 1 << number[op] if op in number else 0
        if op.name != dialect.LOAD:
            for operand in op.operands:
                together |= found.get(operand, 0)
        if not together:
            continue
        results = list(op.results)
        if op.name == "scf.yield":
            results = list(op.parent.results)
        if op.name == "scf.for":
            results += list(op.regions[0].blocks[0].arguments)[1:]
        for result in results:
            found[result] = found.get(result, 0) | together
    return found


def _numbered(operations: list[Any]) -> dict[Any, int]:
    """Return a number for each value, which values that are computed in the same way share."""
    found: dict[Any, int] = {}
    known: dict[tuple[Any, ...], int] = {}
    for op in operations:
        # Arguments of blocks and results of regions are equal to nothing but themselves.
        operands = tuple(found.setdefault(value, len(found)) for value in op.operands)
        if len(op.regions):
            continue
        alike = (op.name, *named_attributes(op).items(), *operands)
        for result in op.results:
            number = known.setdefault((*alike, result.result_number), len(found))
            found[result] = number
    return found
