"""Rings whose tiles come and go together: one pair of barriers guards a stage of all of them.

    "lego.acquire"(%as, %n)
    "lego.copy_async"(%as, %n, %a, ...)
    "lego.commit"(%as, %n)
    "lego.acquire"(%bs, %n)                does nothing more
    "lego.copy_async"(%bs, %n, %b, ...)
    "lego.commit"(%bs, %n)

    %x = "lego.wait"(%as, %i)
    %y = "lego.wait"(%bs, %i)              does nothing more
    ...
    "lego.release"(%as, %i)                does nothing yet
    "lego.release"(%bs, %i)

So it is with the operands of a GEMM. Nothing but scalars, and such rings, stands between operations
that become one: none waits for another ring in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles

_FIRST, _LAST = (pipelines.ACQUIRE, pipelines.WAIT), (pipelines.RELEASE,)
"""Which of several operations that become one does it all."""

_BETWEEN = ("arith.", "affine.", dialect.APPLY, dialect.INV, tiles.TRANSPOSE)


def joint_rings(rings: Iterable[Any]) -> list[list[Any]]:
    """Return groups of rings that are filled and read together, in the order of the rings.

    Args:
        rings: the rings, all of which TMA fills.
    """
    groups: list[list[Any]] = []
    for ring in rings:
        for group in groups:
            if _is_joint([*group, ring]):
                group.append(ring)
                break
        else:
            groups.append([ring])
    return groups


def doing_nothing(group: Sequence[Any]) -> set[Any]:
    """Return the operations on rings of a group that become part of one on another of its rings."""
    found: set[Any] = set()
    for name in (*_FIRST, *_LAST):
        for listed in _together(group, name) or []:
            found |= set(listed[1:] if name in _FIRST else listed[:-1])
    return found


def _is_joint(group: Sequence[Any]) -> bool:
    """Return whether rings are used together everywhere."""
    if len({pipelines.stages_of(ring) for ring in group}) > 1:
        return False
    for name in (*_FIRST, *_LAST):
        found = _together(group, name)
        if found is None or not all(_is_near(listed, group) for listed in found):
            return False
    return True


def _together(group: Sequence[Any], name: str) -> list[list[Any]] | None:
    """Return the operations of a name by block and number, each with one on every ring of a group.

    `None` if there are others.
    """
    first, *rest = ([u.owner.operation for u in r.uses if u.owner.name == name] for r in group)
    if any(len(each) != len(first) for each in rest):
        return None
    found = []
    for op in first:
        same = [[x for x in each if _is_same(x, op)] for each in rest]
        if any(len(each) != 1 for each in same):
            return None
        found.append(_in_order([op, *(x for (x,) in same)]))
    return found


def _is_same(op: Any, other: Any) -> bool:
    """Return whether two operations on rings are of the same number, in one block."""
    return bool(op.operands[1] == other.operands[1] and op.block == other.block)


def _in_order(operations: Iterable[Any]) -> list[Any]:
    """Return operations of one block in their order."""
    found: list[Any] = []
    for op in operations:
        found.insert(sum(other.is_before_in_block(op) for other in found), op)
    return found


def _is_near(operations: list[Any], group: Collection[Any]) -> bool:
    """Return whether nothing stands between operations of a block that one of them may not pass."""
    listed = [op.operation for op in operations[0].block.operations]
    first, last = listed.index(operations[0]), listed.index(operations[-1])
    return all(_may_pass(op, group) for op in listed[first:last])


def _may_pass(op: Any, group: Collection[Any]) -> bool:
    if op.name in pipelines.OF_RING:
        return op.operands[0] in group
    return bool(op.name.startswith(_BETWEEN))
