"""Compute equal scalars of a kernel once.

    %c64 = arith.constant 64 : index
    %i = arith.muli %n, %c64 : index
    scf.for ... {
      %c64_0 = arith.constant 64 : index             // is %c64
      %j = arith.muli %n, %c64_0 : index             // is %i

Programs compute the index of each tile that they load or store, so scalars are half of their
operations, and every pass looks at all of them. MLIR's CSE would merge them with those of the host.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.modules import named_attributes
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.operations import COMBINING


def merge_scalars(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place."""
    _merge(kernel.body, {})


def _merge(block: Any, known: dict[Any, Any]) -> None:
    """Replace scalars of a block that one before them, or around them, is equal to."""
    for op in [o.operation for o in block.operations]:
        if op.name.startswith("arith."):
            results = list(op.results)
            kinds = tuple(result.type for result in results)
            if isinstance(kinds[0], ir.RankedTensorType):
                continue  # tiles have a pass of their own
            key = op.name, tuple(op.operands), frozenset(named_attributes(op).items()), kinds
            same = known.setdefault(key, results)
            if same is not results:
                for old, new in zip(results, same, strict=True):
                    old.replace_all_uses_with(new)
                op.erase()
        elif op.name not in COMBINING:  # their bodies stand for themselves
            for region in op.regions:
                for inner in region.blocks:
                    _merge(inner, dict(known))
