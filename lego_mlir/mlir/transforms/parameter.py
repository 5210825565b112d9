"""`transform_lego.parameter`: a number that the caller of a schedule may set."""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform


@transform("parameter")
def parameter(step: TransformStep) -> list[list[Any]]:
    """Return the value of a parameter: the one of the run, else the default.

    %stages = "transform_lego.parameter"() {name = "stages", default = 4 : i64}
        : () -> !transform.param<i64>
    """
    name = step.op.attributes["name"].value
    default = step.number("default")
    value = step.pass_context.parameters.get(name, default)
    step.pass_context.used_parameters[name] = value
    return [[ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)]]
