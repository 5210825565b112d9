"""What MLIR does not verify of tiles: shapes, kinds and regions, and their distributed layouts.

`verify_tiles` runs after parsing and after every pass. `canonicalize_encodings` runs once before:
MLIR compares types by text, so each layout is written in one way.
"""

from lego_mlir.mlir.tile_ir.verifier.encodings import canonicalize_encodings
from lego_mlir.mlir.tile_ir.verifier.verify import verify_tiles

__all__ = ["canonicalize_encodings", "verify_tiles"]
