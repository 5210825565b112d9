"""What is known of the iterations of a loop: how many there are, and which one a branch leaves out.

A branch that all iterations of a loop take but the first is guarded by it:

    scf.for %t = %first to %n {
      scf.if %first < %t { ... }
    }
"""

from __future__ import annotations

from typing import Any

from lego_mlir.index import construct
from lego_mlir.index.proofs import prover
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.modules import surroundings

LOOP, BRANCH = "scf.for", "scf.if"

LESS = (2, 6)
"""The predicates of arith.cmpi that compare whether one number is below another: slt, ult."""


def first_of(value: Any) -> Any | None:
    """Return the first value of a loop's variable; `None` for any other value."""
    if not isinstance(value, ir.BlockArgument) or value.arg_number > 0:
        return None
    around = value.owner.owner.operation
    return around.operands[0] if around.name == LOOP else None


def runs_at_least(loop: Any, count: Any) -> bool:
    """Return whether a loop is known to have so many iterations, a number or an index."""
    reader = IndexReader()
    low, high, stride = list(loop.operands)[:3]
    least = count if isinstance(count, int) else reader.read(count)
    span = construct.sub(reader.read(high), reader.read(low))
    before = construct.mul(construct.sub(least, 1), reader.read(stride))
    return prover.is_nonnegative(construct.sub(construct.sub(span, before), 1))


def conditions(branch: Any) -> list[Any]:
    """Return what has to be true for a branch to be taken."""
    found: list[Any] = []
    pending = [branch.operands[0]]
    while pending:
        condition = pending.pop()
        if not isinstance(condition, ir.BlockArgument) and condition.owner.name == "arith.andi":
            pending += reversed(list(condition.owner.operands))
        else:
            found.append(condition)
    return found


def compared(condition: Any) -> tuple[Any, Any] | None:
    """Return a and b of a condition a < b; `None` if it is another."""
    if isinstance(condition, ir.BlockArgument) or condition.owner.name != "arith.cmpi":
        return None
    if ir.IntegerAttr(condition.owner.attributes["predicate"]).value not in LESS:
        return None
    a, b = condition.owner.operands
    return a, b


def guarding_loop(branch: Any, condition: Any) -> Any | None:
    """Return the loop around a branch in whose first iteration alone a condition is false.

    `None` if there is none, or if the branch has another way.
    """
    numbers = compared(condition)
    if numbers is None or any(len(block.operations) > 1 for block in branch.regions[1].blocks):
        return None
    low, variable = numbers
    loops = (op for op in surroundings(branch) if op.name == LOOP)
    return next((x for x in loops if variable == _variable(x) and low == x.operands[0]), None)


def open_conditions(branch: Any) -> list[Any]:
    """Return the conditions of a branch that are no guards by loops around it."""
    return [c for c in conditions(branch) if guarding_loop(branch, c) is None]


def is_guarded_by(op: Any, loop: Any) -> bool:
    """Return whether the first iteration of a loop does not execute an operation in it."""
    for around in surroundings(op):
        if around == loop:
            return False
        if around.name == BRANCH:
            loops = [guarding_loop(around, condition) for condition in conditions(around)]
            if any(found is not None and found == loop for found in loops):
                return True
    return False


def _variable(loop: Any) -> Any:
    return loop.regions[0].blocks[0].arguments[0]
