"""Grouped GEMM whose K is ragged: C[g] = A[rows of g]ᵀ · B[rows of g]; the device knows the rows.

It is the gradient of a ragged grouped GEMM with respect to its matrices. A work item multiplies
whole tiles of rows, from the one in which its group begins to the one in which it ends; the rows of
other groups in these two count as zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lego_mlir import runtime
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import (
    Kernel,
    TensorType,
    arange,
    block_id,
    dot,
    fill,
    fold,
    kernel,
    restrict,
    zeros,
)
from lego_mlir.index import maximum, minimum
from lego_mlir.kernels.gemm.arguments import check_sizes, check_types
from lego_mlir.kernels.public import public

_ROWS = 64
"""Rows of a tile of A and B: K of the instructions, four times."""

_TILE, _LEAST = 128, 16
_MOST_WARPS, _WARP_ELEMENTS = 8, 1024
"""Warps of a CTA, and the least elements of C that each has."""


@public
def ragged_k_matmul(
    m: int,
    n: int,
    k: int,
    groups: int,
    dtype: str = "f16",
    *,
    out: str | None = None,
    target: str | None = None,
) -> Kernel:
    """Return a kernel that multiplies, for each group of rows, the transpose of A by B.

        ragged_k_matmul(8192, 4096, 1024, groups=64)(a, b, c, offsets)

    C[g] is the sum over group g's rows r of A[r]ᵀ · B[r], zeros if there are none. `offsets` are
    those of `ragged_matmul`, whose gradient with respect to its matrices this is. All matrices are
    row-major.

    Args:
        m: rows of A and B.
        n: columns of B and of each matrix of C.
        k: columns of A, rows of each matrix of C.
        groups: the number of groups; any of them may be empty.
        dtype: element type of A and B: f16 or bf16.
        out: element type of C; by default that of A and B.
        target: the GPU architecture; by default that of the GPU in this machine, and sm_90a
            without one.

    Raises:
        LegoError: a size or a type is wrong.
    """
    what = "ragged_k_matmul"
    name = target or runtime.select().target or DEFAULT_TARGET
    check_sizes(what, (m, n, k, groups))
    if dtype not in ("f16", "bf16"):
        raise LegoError(f"{what}: A and B are of f16 or bf16, not of {dtype!r}")
    accumulator, out = check_types(what, dtype, out, name, promote=0)
    down, across = _tile(k), _tile(n)
    kinds = {
        "a": TensorType(dtype, OrderBy(Row(m, k))),
        "b": TensorType(dtype, OrderBy(Row(m, n))),
        "c": TensorType(out, OrderBy(Row(groups, k, n))),
        "offsets": TensorType("i32", OrderBy(Row(groups))),
    }
    return kernel(
        grid=(-(-n // across), -(-k // down), groups),
        warps=max(1, min(_MOST_WARPS, down * across // _WARP_ELEMENTS)),
        parameters=kinds,
        strict=True,
    )(_body(m, (down, across), (accumulator, out)))


def _tile(size: int) -> int:
    """Return the size of a tile of C along a dimension: a power of two."""
    return max(_LEAST, min(_TILE, 1 << (size - 1).bit_length()))


def _body(m: int, tile: tuple[int, int], types: tuple[str, str]) -> Callable[..., None]:
    """Return the function of the kernel.

    Args:
        m: rows of A and B.
        tile: of C.
        types: of the accumulator and of C.
    """
    down, across = tile
    accumulator, out = types
    tiles = -(-m // _ROWS)

    def ragged_k(a: Any, b: Any, c: Any, offsets: Any) -> None:
        j, i, group = block_id("x"), block_id("y"), block_id("z")
        start = offsets[maximum(group - 1, 0)].below(m + 1) * minimum(group, 1)
        end = offsets[group].below(m + 1)
        first = start // _ROWS
        count = maximum((end + _ROWS - 1) // _ROWS - first, 0).below(tiles + 1)

        @fold(count, zeros(tile, accumulator))
        def total(step: Any, total: Any) -> Any:
            at = first + step
            row = at * _ROWS + arange(_ROWS)
            is_own = ((row >= start) & (row < end))[:, None]
            left = restrict(a.tile(_ROWS, down)[at, i], is_own)
            right = restrict(b.tile(_ROWS, across)[at, j], is_own)
            return dot(fill(left, 0.0).T, fill(right, 0.0), total)

        c.tile(down, across)[group, i, j] = total.to(out)

    return ragged_k
