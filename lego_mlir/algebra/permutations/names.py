"""The names of permutations in a layout's text."""

from __future__ import annotations

from lego_mlir.algebra.permutations.blocked import block_cyclic, bricks, row_groups
from lego_mlir.algebra.permutations.curves import hilbert, morton
from lego_mlir.algebra.permutations.permutation import Permutation
from lego_mlir.algebra.permutations.swizzles import swizzle, tma_swizzle
from lego_mlir.algebra.permutations.traversals import antidiagonal, reverse
from lego_mlir.diagnostics import LegoError

_FIXED = {p.text: p for p in (antidiagonal, hilbert, morton, reverse)}

NAMES = tuple(sorted([*_FIXED, "block_cyclic", "bricks", "row_groups", "swizzle", "tma_swizzle"]))
"""What a layout's text may name."""


def named(name: str, parameters: tuple[int, ...]) -> Permutation | None:
    """Return the permutation that a layout's text calls `name`, or `None` if there is none.

    Raises:
        LegoError: its parameters are wrong.
    """
    count = len(parameters)
    match name:
        case "block_cyclic":
            return block_cyclic(*parameters)
        case "bricks":
            return bricks(*parameters)
        case "row_groups":
            if count != 1:
                raise LegoError(f"row_groups takes the rows of a group, not {count} numbers")
            return row_groups(*parameters)
        case "swizzle":
            if count > 3:
                raise LegoError(f"swizzle takes vec, per_phase and max_phase, not {count} numbers")
            return swizzle(*parameters)
        case "tma_swizzle":
            if count != 2:
                raise LegoError(
                    f"tma_swizzle takes a mode and an element's bytes, not {count} numbers",
                    hint="tma_swizzle(128, 2)",
                )
            return tma_swizzle(*parameters)
    if name in _FIXED and parameters:
        raise LegoError(f"{name} takes no parameters")
    return _FIXED.get(name)
