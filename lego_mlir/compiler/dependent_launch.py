"""Programmatic dependent launch on targets that do not have it.

    nvvm.griddepcontrol launch_dependents  }  nothing before sm_90
    nvvm.griddepcontrol wait               }

There a launch begins when the one ahead of it on its stream has ended. So nothing is left to wait
for, and the code generator has no instruction for it.

Source: PTX ISA 9.7.13.13 (griddepcontrol, from sm_90 on).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lego_mlir.mlir import dialect

HAS_DEPENDENT_LAUNCH = (9, 0)
"""The least compute capability with dependent launches."""

_INSTRUCTION = "nvvm.griddepcontrol"


def drop_dependent_launch(operations: Iterable[Any], capability: tuple[int, int]) -> list[Any]:
    """Remove dependent launches, in place, where the target has none; return what is left.

    Args:
        operations: those of a module.
        capability: the compute capability of the target.
    """
    if capability >= HAS_DEPENDENT_LAUNCH:
        return list(operations)
    kept = []
    for op in operations:
        if op.name == _INSTRUCTION:
            op.erase()
            continue
        if dialect.PDL in op.attributes:
            del op.attributes[dialect.PDL]
        kept.append(op)
    return kept
