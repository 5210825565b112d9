"""The instructions, one module a chapter of the PTX ISA. Importing this fills the table."""

from lego_mlir.sim.instructions import (
    atomic,
    bits,
    comparison,
    control,
    conversion,
    extended,
    floating,
    integer,
    logic,
    movement,
    warp,
)

__all__ = [
    "atomic",
    "bits",
    "comparison",
    "control",
    "conversion",
    "extended",
    "floating",
    "integer",
    "logic",
    "movement",
    "warp",
]
