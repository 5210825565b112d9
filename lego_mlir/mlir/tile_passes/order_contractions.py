"""Order what dots contract so that operand A stays where the dot before it has left it.

    %s = "lego.dot"(%q, %k, %zero) : ... -> tensor<64x32xf32>
    %p = arith.truncf %s : tensor<64x32xf32> to tensor<64x32xf8E4M3FN>
    %o = "lego.dot"(%p, %v, %sum) : ... -> tensor<64x64xf32>

becomes

    %p1 = "lego.reshape"(%p) : ... -> tensor<64x2x2x4x2xf8E4M3FN>
    %p2 = "lego.transpose"(%p1) {order = [0, 1, 3, 2, 4]} : ... -> tensor<64x2x4x2x2xf8E4M3FN>
    %p3 = "lego.reshape"(%p2) : ... -> tensor<64x32xf8E4M3FN>
    %v3 = the same of the rows of %v
    %o = "lego.dot"(%p3, %v3, %sum)

Operand A of 8-bit elements is in other lanes than accumulators are. A dot may sum in any order, and
`analysis.distributed.reordering` solves for the one in which no element leaves its lane. What comes
of it is left to operand B, which is written to shared memory anyway. For 16-bit elements the order
is the one that is there.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from lego_mlir.analysis.distributed.reordering import Reordering, reordering
from lego_mlir.analysis.distributed.tensor_cores import mma_accumulator, mma_operand_a
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import MMA_ROWS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.layout_rules import element_bits
from lego_mlir.mlir.tile_ir.operations import is_pointwise
from lego_mlir.mlir.tile_ir.types import element_of, is_tile, layout_of, shape_of, tile_type

_BRANCH = "scf.if"


def order_contractions(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place."""
    for op in kernel.operations((tiles.DOT,)):
        if all(layout_of(x) is None for x in list(op.operands)[:2]):
            a, b, _ = op.operands
            found = _order(shape_of(a)[1], element_bits(a)) if _is_accumulated(a) else None
            if found is not None:
                with ir.InsertionPoint(op), op.location:
                    op.operands[0] = _reordered(a, 1, found)
                    op.operands[1] = _reordered(b, 0, found)


@lru_cache(maxsize=1 << 6)
def _order(depth: int, bits: int) -> Reordering | None:
    """Return the order of k in which accumulators are operand A; `None` if it is the given one.

    It is the same for `mma.sync` and `wgmma`, whose warps divide rows.
    """
    try:
        held, needed = mma_accumulator((MMA_ROWS, depth)), mma_operand_a((MMA_ROWS, depth), bits)
    except LegoError:  # no instruction has such operands
        return None
    found = reordering(held, needed, 1)
    return None if found is None or found.is_identity else found


def _is_accumulated(tile: Any) -> bool:
    """Return whether a tile is computed from a dot, element by element."""
    pending: list[Any] = [tile]
    seen: set[Any] = set()
    while pending:
        x = pending.pop()
        if x in seen or isinstance(x, ir.BlockArgument):
            continue
        seen.add(x)
        op = x.owner.operation
        if op.name == tiles.DOT:
            return True
        if op.name == _BRANCH:
            number = list(op.results).index(x)
            ends = (list(r.blocks[0].operations)[-1].operation for r in op.regions)
            pending += [end.operands[number] for end in ends]
        elif is_pointwise(op):
            pending += [x for x in op.operands if is_tile(x)]
    return False


def _reordered(tile: Any, dim: int, by: Reordering) -> Any:
    """Build the tile with one dimension in another order."""
    shape, element = shape_of(tile), element_of(tile)
    rank, digits = len(shape), len(by.sizes)
    assert shape[dim] == prod(by.sizes)
    split = (*shape[:dim], *by.sizes, *shape[dim + 1 :])
    order = [
        *range(dim),
        *(dim + k for k in by.order),
        *range(dim + digits, rank + digits - 1),
    ]
    apart = tiles.reshape(tile_type(split, element, None), tile)
    turned = tiles.transpose(tile_type([split[d] for d in order], element, None), apart, order)
    return tiles.reshape(tile_type(shape, element, None), turned)
