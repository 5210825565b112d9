"""`transform_lego.keep_operands`: operand A of a loop's dots stays in registers.

    scf.for %i ... {
      %s = "lego.dot"(%q, %k, %zero) : (tensor<128x64xf16, #lego.shared<"...">>, ...)
    }

becomes, where all iterations multiply the same %q,

    %a = "lego.convert"(%q) : ... -> tensor<128x64xf16, #A>
    scf.for %i ... {
      %s = "lego.dot"(%a, %k, %zero) : (tensor<128x64xf16, #A>, ...)
    }

So `wgmma` reads shared memory for operand B alone. An operand is kept that takes at most
`operand_registers` registers of a thread.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.analysis.distributed.wgmma_grids import warpgroup_operand_a
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import body_of
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.dots import is_warpgroup_dot
from lego_mlir.mlir.tile_ir.types import (
    bytes_of,
    element_of,
    is_shared_tile,
    layout_of,
    shape_of,
    tile_type,
)
from lego_mlir.mlir.tile_steps.kernels import in_block, loops_of, operations_of

_DOTS = (tiles.DOT, pipelines.DOT_ASYNC)
_WORD_BYTES = 4


@transform("keep_operands")
def keep_operands(step: TransformStep) -> list[list[Any]]:
    """Load operands A that loops do not change into registers, in front of the loops."""
    most = step.number("operand_registers")
    if most < 0:
        raise step.misuse(f"operand_registers is {most}", hint=step.option("operand_registers", 32))
    for _, loop in loops_of(step):
        kept: dict[tuple[Any, Any], Any] = {}
        for dot in operations_of(body_of(loop)):
            if dot.name not in _DOTS or not is_warpgroup_dot(dot):
                continue
            operand = dot.operands[0]
            if not is_shared_tile(operand) or _is_made_in(operand, body_of(loop)):
                continue
            kind = _type_in_registers(dot, most)
            if kind is None:
                continue
            if (operand, kind) not in kept:
                with ir.InsertionPoint(loop), dot.location:
                    kept[operand, kind] = tiles.convert(kind, operand)
            dot.operands[0] = kept[operand, kind]
    return []


def _is_made_in(value: Any, block: Any) -> bool:
    """Return whether a value is computed in a block, or is one of its arguments."""
    if isinstance(value, ir.BlockArgument):
        return bool(value.owner == block)
    return in_block(value.owner.operation, block) is not None


def _type_in_registers(dot: Any, most: int) -> Any | None:
    """Return the type of a dot's operand A in registers; `None` if it takes more than `most`."""
    operand, _, accumulator = dot.operands
    element, of = element_of(operand), layout_of(accumulator)
    assert of is not None, "the verifier has seen to it"
    size = bytes_of(element)
    layout = warpgroup_operand_a(of, shape_of(operand), 8 * size)
    if layout.registers * size > most * _WORD_BYTES:
        return None
    return tile_type(shape_of(operand), element, layout)
