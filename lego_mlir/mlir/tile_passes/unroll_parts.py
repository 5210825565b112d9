"""Unroll loops over the parts of a tile in registers.

    scf.for %k = 0 to 2 step 1 {
      %part = "lego.extract_part"(%x, %k)
      "lego.put"(%ring, %n + %k, %part)
    }

becomes

    %part0 = "lego.extract_part"(%x, 0)
    "lego.put"(%ring, %n + 0, %part0)
    %part1 = "lego.extract_part"(%x, 1)
    "lego.put"(%ring, %n + 1, %part1)

Registers have no addresses. A part whose number only the program knows is chosen by branches that
copy its registers, and meanwhile those of all parts are needed.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.structure import clone
from lego_mlir.mlir.tile_ir.kernels import TileKernel, constant_size
from lego_mlir.mlir.tile_passes.lower_tiles import build

_LOOP = "scf.for"


def unroll_parts(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place."""
    for loop in [op for op in operations_in(kernel.launch) if op.name == _LOOP]:
        bounds = [constant_size(x) for x in list(loop.operands)[:3]]
        known = [n for n in bounds if n is not None]
        if not list(loop.results) and _extracts_parts(loop) and len(known) == len(bounds):
            _unroll(loop, range(*known))


def _extracts_parts(loop: Any) -> bool:
    """Return whether the number of an iteration is that of a part."""
    uses = loop.regions[0].blocks[0].arguments[0].uses
    return any(use.owner.name == tiles.EXTRACT_PART for use in uses)


def _unroll(loop: Any, numbers: range) -> None:
    """Replace a loop that carries nothing by its iterations."""
    block = loop.regions[0].blocks[0]
    *operations, _ = [op.operation for op in block.operations]
    with ir.InsertionPoint(loop), loop.location:
        for number in numbers:
            values = {block.arguments[0]: build.index(number)}
            for op in operations:
                clone(op, values)
    loop.erase()
