"""What a block does for its tile of a product of matrices, said for the whole tile at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any, TypeAlias

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import ScalarType, TensorType, Value, block_id, dot, fold, zeros
from lego_mlir.kernels.gemm.matrices import tiled, transposed
from lego_mlir.kernels.gemm.problem import MmaConfig, Problem
from lego_mlir.kernels.gemm.wgmma_config import WgmmaConfig

Epilogue: TypeAlias = Callable[..., Value]
"""From the sums, and the operands' parts that go with them, to what is stored in C."""

Operand: TypeAlias = TensorType | ScalarType
"""A parameter of the kernel that its epilogue takes."""

Matrices: TypeAlias = tuple[Layout, Layout, Layout]
"""Of the first factor, the second, and the product."""


@dataclass(frozen=True, slots=True)
class Division:
    """A product of matrices, divided among blocks.

    Attributes:
        problem: what is multiplied.
        config: the sizes of tiles.
        blocks: from the number of a block to its tile of the product, (down, across), which the
            kernel's y then is the product of a batch for; or (product, down, across).
        lead: dimensions before those of the matrices: 1 of a batch, else 0.
        is_transposed: the problem is the transpose of what was asked for: its first factor is the
            kernel's parameter b, its second a.
    """

    problem: Problem
    config: MmaConfig | WgmmaConfig
    blocks: Layout
    lead: int
    is_transposed: bool


def multiply(
    division: Division,
    matrices: Matrices,
    sums: str,
    epilogue: Epilogue | None,
    operands: Mapping[str, Operand],
) -> Callable[..., None]:
    """The function of the kernel, whose parameters are a, b, c, and the operands.

    Args:
        division: of the product.
        matrices: where the elements of the problem's matrices lie.
        sums: the type of sums.
        epilogue: what becomes of them.
        operands: what the epilogue takes besides.
    """
    problem, config, lead = division.problem, division.config, division.lead
    m, n, k = config.tile
    ones, inside = (1,) * lead, (*(0,) * lead, slice(None), slice(None))
    sizes = ((m, k), (k, n), (m, n))
    first, second, product = (
        tiled(layout, (*ones, *size)) for layout, size in zip(matrices, sizes, strict=True)
    )
    staged_first, staged_second, staged_product = config.staging(problem)
    warps = config.warp_layout

    def matmul(a: Any, b: Any, c: Any, **given: Any) -> None:
        x, y = (b, a) if division.is_transposed else (a, b)
        *at, i, j = division.blocks.inv(block_id())
        at = at or [block_id("y")] * lead

        @fold(config.steps(problem), zeros((m, n), sums))
        def total(step: Any, total: Any) -> Value:
            left = x.view(first).staged(staged_first)[*at, i, step, *inside]
            right = y.view(second).staged(staged_second)[*at, step, j, *inside]
            return dot(left, right, total, warps=warps)

        result = total
        if epilogue is not None:
            parts = {
                name: _part(value, operands[name], division, (i, j))
                for name, value in given.items()
            }
            result = epilogue(total, **parts)
            if not isinstance(result, Value):
                raise LegoError(f"the epilogue of a product returned {result!r}, no kernel value")
        c.view(product).staged(staged_product)[*at, i, j, *inside] = result.to(problem.out)

    names = ("a", "b", "c", *operands)
    matmul.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return matmul


def _part(value: Any, kind: Operand, division: Division, at: tuple[Any, Any]) -> Any:
    """The part of an operand that goes with a tile of the product."""
    if isinstance(kind, ScalarType):
        return value
    layout, tile = kind.layout, division.config.tile[:2]
    if layout.rank == 1:  # goes with every row of C
        axis = 0 if division.is_transposed else 1
        part = value.view(tiled(layout, [tile[axis]]))[at[axis], :]
        return part[:, None] if division.is_transposed else part
    if division.is_transposed:
        layout = transposed(layout)
    sizes = [1 if n == 1 else size for n, size in zip(layout.dims, tile, strict=True)]
    outer = [0 if n == 1 else i for n, i in zip(layout.dims, at, strict=True)]
    inner = [0 if n == 1 else slice(None) for n in layout.dims]
    part = value.view(tiled(layout, sizes))[*outer, *inner]
    is_column = layout.dims[1] == 1 and layout.dims[0] != 1
    return part[:, None] if is_column else part
