"""What the bodies of GEMM kernels have in common: the GEMM in tiles, matrices, epilogues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import ScalarType, TensorType, Value
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.problem import Problem

Epilogue: TypeAlias = Callable[..., Value]
"""A function from the accumulator tile, and the tiles of the epilogue's operands, to C's tile."""

Operand: TypeAlias = TensorType | ScalarType
"""A parameter of the kernel that only its epilogue uses."""

Matrices: TypeAlias = tuple[Layout, Layout, Layout]
"""The layouts of A, B and C."""


@dataclass(frozen=True, slots=True)
class TiledGemm:
    """A GEMM with its config and its rasterization.

    Attributes:
        problem: the GEMM that the kernel computes.
        config: its config.
        rasterization: the layout from a CTA's id to its tile of C, (down, across) or (GEMM, down,
            across). In the first case a CTA's id along y is its position in the batch.
        batch_rank: the number of dimensions before those of the matrices: 1 in a batch, else 0.
        is_transposed: whether the kernel computes the transpose of C, so that the operand A of the
            problem is the kernel's parameter b, and B is a.
        workspaces: the names of the config's workspaces, which the kernel takes last.
    """

    problem: Problem
    config: GemmConfig
    rasterization: Layout
    batch_rank: int
    is_transposed: bool
    workspaces: tuple[str, ...] = ()


def check_epilogue_result(result: object) -> None:
    """Check that an epilogue has returned a kernel value.

    Raises:
        LegoError: it has not.
    """
    if not isinstance(result, Value):
        raise LegoError(
            f"the epilogue of the GEMM returned {result!r}, not a kernel value",
            hint="return the tile of C: lambda x: lg.relu(x)",
        )
