"""The range of a number that a loop counts up.

    %n = scf.for %i = %c0 to %trips step %c1 iter_args(%k = %c0) -> (index) {
      ...
      %next = arith.addi %k, %more : index
      scf.yield %next : index
    }

If at most T iterations add from 0 to M each, %k and %n are from 0 to T·M. Rings of persistent CTAs
are numbered so: %more is how many tiles a program takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lego_mlir.algebra.sizes import ceildiv
from lego_mlir.index import Int, bounds, construct
from lego_mlir.index.proofs.prover import is_nonnegative
from lego_mlir.mlir.bindings import ir


def counter_range(
    loop: Any, number: int, read: Callable[[Any], Int], is_readable: Callable[[Any], bool]
) -> tuple[int, int] | None:
    """Return the range of a value that a loop carries, `None` if it is no counter of known range.

    Args:
        loop: the scf.for.
        number: of the carried value.
        read: returns the expression of an index value.
        is_readable: whether all is known that the expression of a value needs.
    """
    lower, upper, step, *carried = loop.operands
    added = _added(loop, number)
    if added is None or not all(map(is_readable, (lower, upper, step, carried[number], added))):
        return None
    more, each = read(added), read(step)
    low, high = bounds(read(carried[number]))
    _, most = bounds(more)
    _, span = bounds(construct.sub(read(upper), read(lower)))
    if low is None or high is None or most is None or span is None:
        return None
    if not isinstance(each, int) or each < 1 or not is_nonnegative(more):
        return None
    return low, high + max(0, ceildiv(span, each)) * most


def _added(loop: Any, number: int) -> Any | None:
    """Return what an iteration adds to a carried value, `None` if it does anything else."""
    body = loop.regions[0].blocks[0]
    own, next_ = body.arguments[number + 1], body.operations[len(body.operations) - 1]
    yielded = next_.operands[number]
    if isinstance(yielded, ir.BlockArgument) or yielded.owner.name != "arith.addi":
        return None
    added = [x for x in yielded.owner.operands if x != own]
    return added[0] if len(added) == 1 else None
