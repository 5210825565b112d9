"""What compilation leaves behind: PTX, cubin, and how to launch them.

An artifact is plain data. The compiler makes it, `runtime` and `sim` run it, and neither needs
MLIR or SymPy for that: a saved artifact runs on a machine that has only NumPy and cuda-core.

`model` has the data, with a rule for every field; `schema` applies the rules; `consistency` has
those that concern several fields; `expressions` has what a launch computes from its arguments;
`bundle` is the file. A bundle may come from a stranger, so it is
checked when it is loaded; an artifact that the compiler makes passes the same checks, so it can
always be loaded.
"""

from __future__ import annotations

from lego_mlir.artifact.model import (
    CHECK_MARK,
    FORMAT,
    Argument,
    ArgumentAccess,
    Artifact,
    Computed,
    Constant,
    Dim3,
    Fact,
    KernelLaunch,
    Parameter,
    TensorMapParameter,
    TensorMapParameters,
    Workspace,
    WorkspaceIndex,
    known_numbers,
    workspace_offsets,
)

__all__ = [
    "CHECK_MARK",
    "FORMAT",
    "Argument",
    "ArgumentAccess",
    "Artifact",
    "Computed",
    "Constant",
    "Dim3",
    "Fact",
    "KernelLaunch",
    "Parameter",
    "TensorMapParameter",
    "TensorMapParameters",
    "Workspace",
    "WorkspaceIndex",
    "known_numbers",
    "workspace_offsets",
]
