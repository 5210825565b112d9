"""Operations that only compute scalars, which may be repeated wherever their results are needed.

Views of whole buffers, and the choice of one of several, are among them.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.tile_ir.types import has_tiles

_DIALECTS = ("arith.", "affine.", "math.", "gpu.block_id", "gpu.grid_dim", "memref.dim")
_INDEX_OPERATIONS = (
    dialect.APPLY,
    dialect.INV,
    dialect.MASK,
    dialect.SIZE,
    dialect.DIM,
    dialect.TABLE,
    dialect.PICK,
    "memref.cast",
    "memref.collapse_shape",
)


def is_scalar(op: Any) -> bool:
    """Return whether an operation only computes scalars, so that every role may repeat it."""
    return not has_tiles(op) and (op.name.startswith(_DIALECTS) or op.name in _INDEX_OPERATIONS)
