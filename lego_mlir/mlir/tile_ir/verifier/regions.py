"""The functions of reductions and scans: regions of operations on single elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.interpreter.pointwise import POINTWISE
from lego_mlir.mlir.tile_ir.operations import CONSTANT
from lego_mlir.mlir.tile_ir.verifier.checked import Checked

_YIELD = "gpu.yield"


def check_function(
    c: Checked, elements: Sequence[Any], returns: Sequence[Any] | None = None
) -> None:
    """Check the region of an operation, and its identities, if it has any.

    Args:
        c: the operation.
        elements: the element types of its tiles.
        returns: the types that the function returns, by default one element of each tile.

    Raises:
        LegoError: the region is no function of one element of each tile and another of each.
    """
    returned = list(elements) if returns is None else list(returns)
    if not elements:
        c.fail("of no tiles")
    blocks = list(c.op.regions[0].blocks)
    wanted = ", ".join(str(e) for e in (*elements, *elements))
    arguments = [a.type for a in blocks[0].arguments] if blocks else []
    c.require(
        len(blocks) == 1 and arguments == [*elements, *elements],
        lambda: f"has a function of ({', '.join(map(str, arguments))}), not of ({wanted})",
        "its region has one block, whose arguments are one element of each tile, then another",
    )
    inside = [each.operation for each in blocks[0].operations]
    end = inside[-1] if inside else None
    yielded = [x.type for x in end.operands] if end is not None else []
    c.require(
        end is not None and end.name == _YIELD and yielded == returned,
        lambda: (
            f"has a function that returns ({', '.join(map(str, yielded))}), not "
            f"({', '.join(map(str, returned))})"
        ),
        "its region ends in a gpu.yield of them",
    )
    for op in inside[:-1]:
        if op.name != CONSTANT and op.name not in POINTWISE:
            raise c.source.error(
                f"'{op.name}' in the function of a '{c.op.name}', which combines single elements",
                op.location,
                hint="it has operations of arith and math, on numbers",
            )
    for op in inside:
        for value in (*op.operands, *op.results):
            if isinstance(value.type, ir.ShapedType):
                raise c.source.error(
                    f"the function of a '{c.op.name}' combines single elements, and '{op.name}' "
                    f"is about {value.type}",
                    op.location,
                )
    _check_identity(c, elements)


def _check_identity(c: Checked, elements: Sequence[Any]) -> None:
    if tiles.IDENTITY not in c.op.attributes:
        return
    given = list(c.attribute(tiles.IDENTITY, ir.ArrayAttr, "[0.0 : f32]"))
    kinds = [getattr(number, "type", None) for number in given]
    are_numbers = all(isinstance(n, ir.FloatAttr | ir.IntegerAttr) for n in given)
    c.require(
        are_numbers and kinds == list(elements),
        lambda: f"has the identity [{', '.join(map(str, given))}]",
        f"it is a number for each tile, of ({', '.join(map(str, elements))})",
    )
