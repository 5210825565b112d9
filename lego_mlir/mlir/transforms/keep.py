"""`transform_lego.keep`: record the payload's text between two steps. The payload is unchanged."""

from __future__ import annotations

from typing import Any

from lego_mlir.artifact.names import NAME_RULE, is_name
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform


@transform("keep")
def keep(step: TransformStep) -> list[list[Any]]:
    """Record the payload's text under a name, which becomes a file's name.

    Raises:
        LegoError: the name cannot be a file's name.
    """
    name = str(step.op.attributes["name"].value)
    if not is_name(name):
        raise step.misuse(f"'{name}' cannot be the name of a step", hint=f"a name has {NAME_RULE}")
    for op in step.payload():
        step.pass_context.kept.append((name, str(op)))
    return []
