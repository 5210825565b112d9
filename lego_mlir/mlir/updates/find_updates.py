"""Elements that are read, changed and written back, and by what path: `h[i] = h[i] + 1`.

Such an update is a lego.store of what was computed from a lego.load of the same element. Two loads
and stores are of the same element here where they name it in the same way: the same buffer, layout
and index. What else a store overwrites is nobody's to tell but the simulator's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.modules import named_attributes


def updates(operations: Iterable[Any]) -> Iterator[Any]:
    """Return the stores of a module that write back what was read and changed, and promise nothing.

    Args:
        operations: all of the module, outer before inner, in order.
    """
    operations = list(operations)
    stored = {op.operands[1] for op in operations if op.name == dialect.STORE}
    loads = [op for op in operations if op.name == dialect.LOAD and op.operands[0] in stored]
    if loads:
        carried = _carried(operations, loads)
        for op in operations:
            if op.name == dialect.STORE and dialect.EXCLUSIVE not in op.attributes:
                from_loads = carried.get(op.operands[0], 0)
                if any(from_loads >> k & 1 and _meet(load, op) for k, load in enumerate(loads)):
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


def _meet(load: Any, store: Any) -> bool:
    """Return whether a load and a store name the same element."""
    read, written = list(load.operands), list(store.operands)[1:]
    same = len(read) == len(written) and all(map(_same, read, written))
    attributes = [
        {
            name: a
            for name, a in named_attributes(op).items()
            if name in (dialect.LAYOUT, dialect.SLICE)
        }
        for op in (load, store)
    ]
    return same and attributes[0] == attributes[1]


def _same(a: Any, b: Any) -> bool:
    """Return whether two values are computed in the same way."""
    if a == b:
        return True
    if isinstance(a, ir.BlockArgument) or isinstance(b, ir.BlockArgument):
        return False
    x, y = a.owner, b.owner
    alike = x.name == y.name and len(x.operands) == len(y.operands) and not len(x.regions)
    if not alike or named_attributes(x) != named_attributes(y):
        return False
    same_result = ir.OpResult(a).result_number == ir.OpResult(b).result_number
    return same_result and all(map(_same, x.operands, y.operands))
