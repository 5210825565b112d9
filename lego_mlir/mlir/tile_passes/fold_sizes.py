"""Sizes of layouts that are numbers become constants, also those in front of the launch.

    %n = "lego.dim"() {layout = #A, dim = 1} : () -> index     // %n = arith.constant 4 : index
    scf.for %k = %c0 to %n step %c1

So steps know how often a loop runs. Sizes that only the launch knows stay.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_passes.lower_tiles import build


def fold_sizes(kernel: TileKernel) -> None:
    """Run the pass on the function of a kernel, in place."""
    function = kernel.launch.parent
    for op in operations_in(function):
        if op.name not in (dialect.SIZE, dialect.DIM):
            continue
        size = _size(op, kernel)
        if isinstance(size, int):
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(build.index(size))
            op.erase()


def _size(op: Any, kernel: TileKernel) -> object:
    """Return the size that an operation computes: a number or an expression; `None` if wrong.

    An operation that asks for a dimension that is not there fails when it is lowered.
    """
    layout = kernel.layouts.of(op)
    if op.name == dialect.SIZE:
        return layout.size
    number = dialect.dim_of(op)
    return layout.dims[number] if 0 <= number < layout.rank else None
