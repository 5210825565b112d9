"""`transform_lego.keep`: the payload's text between two steps."""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.transforms.operation import Step, transform


@transform("keep")
def keep(step: Step) -> list[list[Any]]:
    """Keep the payload's text under a name."""
    for op in step.payload():
        step.setting.kept.append((step.op.attributes["name"].value, str(op)))
    return []
