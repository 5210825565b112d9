"""The semantics of tile IR, executable: an interpreter in NumPy, made to be read.

`interpret` runs the launches of a host function, one CTA after another. Passes are checked against
it (`mlir.tile_ir.step_check`), and so is the code that is compiled. It shares nothing with them.
"""

from lego_mlir.mlir.tile_ir.interpreter.host import (
    HostArgument,
    Interpretation,
    arguments_of,
    interpret,
    random_inputs,
)

__all__ = ["HostArgument", "Interpretation", "arguments_of", "interpret", "random_inputs"]
