"""Products of tiles that are added to an accumulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import named_attributes
from lego_mlir.mlir.tile_ir.verifier.checked import Checked

_ACCUMULATORS = {
    "f16": ("f16", "f32"),
    "bf16": ("f32",),
    "f32": ("f32",),
    "f64": ("f64",),
    "i8": ("i32",),
    "f8E4M3FN": ("f16", "f32"),
    "f8E5M2": ("f16", "f32"),
}
"""The element types of accumulators, by those of the operands."""


def check_dot(c: Checked) -> None:
    """Check shapes and element types of a dot.

    Raises:
        LegoError: they do not belong together.
    """
    a, b, accumulator = c.op.operands
    asked = dict(named_attributes(c.op)).get(tiles.INSTRUCTION)
    known = [ir.StringAttr.get(name) for name in tiles.DOT_INSTRUCTIONS]
    c.require(
        asked is None or asked in known,
        lambda: f"has the instruction {asked}",
        f"one of {', '.join(map(str, known))}, or none",
    )
    shapes = [c.shape(x) for x in (a, b, accumulator)]
    fits = all(len(s) == 2 for s in shapes) and (
        shapes[0][1] == shapes[1][0] and (shapes[0][0], shapes[1][1]) == shapes[2]
    )
    shown = ", ".join(str(list(s)) for s in shapes)
    c.require(
        fits,
        lambda: f"of tiles {shown}",
        "it takes m×k, k×n and the accumulator m×n; lego.transpose turns a tile",
    )
    element = str(c.element(a))
    c.same_element(b, c.element(a), "an operand")
    allowed = _ACCUMULATORS.get(element, ())
    c.require(
        str(c.element(accumulator)) in allowed,
        lambda: f"of {element} accumulates in {c.element(accumulator)}",
        f"it accumulates in {' or '.join(allowed)}"
        if allowed
        else f"dots are of {', '.join(_ACCUMULATORS)}",
    )
    c.results_like(accumulator)


CHECKS: Mapping[str, Callable[[Checked], None]] = {
    tiles.DOT: check_dot,
}
"""By the operation's name."""
