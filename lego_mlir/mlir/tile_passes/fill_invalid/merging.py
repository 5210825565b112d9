"""What is known of a tile that control flow makes out of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.tile_passes.fill_invalid.conditions import (
    EVERYWHERE,
    Bound,
    Condition,
    Domain,
    JoinedParts,
    Mask,
    Merged,
    is_dropped,
    is_everywhere,
)


def simplified(merged: Merged) -> Domain:
    """Return the conditions that all alternatives have, if they are known where these merge."""
    if is_everywhere(frozenset([merged])):
        return EVERYWHERE
    return _settled(merged, merged.alternatives)


def not_dropped(domain: Domain, bounds: Sequence[Bound]) -> Domain:
    """Return the conditions that may fail where all bounds of a store hold.

    What control flow makes out of several tiles has the conditions that are left of all of these.
    """
    kept: set[Condition] = set()
    for condition in domain:
        if is_dropped(condition, bounds):
            continue
        if isinstance(condition, Merged):
            own = frozenset([condition])
            left = [not_dropped(a - own, bounds) | (a & own) for a in condition.alternatives]
            kept |= _settled(condition, left)
        else:
            kept.add(condition)
    return frozenset(kept)


def _settled(merged: Merged, alternatives: Sequence[Domain]) -> Domain:
    """Return the conditions with which all alternatives begin and that none adds to.

    An alternative that has the merged condition itself comes after others, as what a loop yields.
    """
    own = frozenset([merged])
    first = {alternative for alternative in alternatives if merged not in alternative}
    if len(first) != 1:
        return own
    (same,) = first
    is_kept = all(alternative - own <= same for alternative in alternatives)
    return same if is_kept and not any(_is_inside(c, merged.op) for c in same) else own


def _is_inside(condition: Any, op: Any) -> bool:
    """Return whether a condition needs a value that is made inside of an operation."""
    match condition:
        case Bound(addends=addends):
            return any(value is not None and _is_made_in(value, op) for value, _ in addends)
        case Mask(value=value):
            return _is_made_in(value, op)
        case Merged(op=merging):
            return _is_within(merging, op)
        case JoinedParts(parts=parts):
            return any(_is_inside(c, op) for part in parts for c in part)
    return any(_is_inside(c, op) for c in condition.conditions)


def _is_made_in(value: Any, op: Any) -> bool:
    owner = value.owner
    return _is_within(owner.owner if isinstance(value, ir.BlockArgument) else owner, op)


def _is_within(at: Any, op: Any) -> bool:
    """Return whether an operation is another one, or inside of it."""
    while at is not None:
        if at.operation == op:
            return True
        at = at.operation.parent
    return False
