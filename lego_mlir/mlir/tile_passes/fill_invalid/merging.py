"""What is known of a tile that control flow makes out of several."""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.tile_passes.fill_invalid.conditions import (
    EVERYWHERE,
    Bound,
    Domain,
    JoinedParts,
    Mask,
    Merged,
    is_everywhere,
)


def simplified(merged: Merged) -> Domain:
    """Return the conditions that all alternatives have, if they are known where these merge."""
    own = frozenset([merged])
    if is_everywhere(own):
        return EVERYWHERE
    different = {alternative - own for alternative in merged.alternatives}
    if len(different) == 1:
        (same,) = different
        if not any(_is_inside(condition, merged.op) for condition in same):
            return same
    return own


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
