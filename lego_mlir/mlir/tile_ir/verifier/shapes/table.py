"""The check of each operation on tiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lego_mlir.mlir.tile_ir.verifier.checked import Checked
from lego_mlir.mlir.tile_ir.verifier.shapes import combining, dots, memory, values, views

SHAPES: Mapping[str, Callable[[Checked], None]] = {
    **memory.CHECKS,
    **values.CHECKS,
    **views.CHECKS,
    **combining.CHECKS,
    **dots.CHECKS,
}
"""By the operation's name."""
