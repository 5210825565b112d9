"""The kernels that are launched: as small as they can be, so that only launches take time."""

from __future__ import annotations

from typing import Any

TENSORS = (3, 8)
"""Numbers of tensors of the sums: the last one is the sum of the others."""

SIZE = 1024
"""Elements of each tensor, f32."""

THREADS = 256

GEMM = 256
"""m, n and k of the GEMM, f16, whose operands are tensor maps."""


MOST_ROWS = 2048
"""Rows of a GEMM that takes any: more than a launcher remembers."""


def sum_kernel(tensors: int) -> Any:
    """Return our kernel of a sum of `tensors - 1` tensors."""
    from inspect import Parameter, Signature

    import lego_mlir as lg

    kind = lg.Tensor["f32", lg.OrderBy(lg.Row(SIZE // THREADS, THREADS))]
    names = [f"x{i}" for i in range(tensors)]

    def add(**given: Any) -> None:
        *inputs, output = (given[name] for name in names)
        i, j = lg.block_id(), lg.thread_id()
        total = inputs[0][i, j]
        for x in inputs[1:]:
            total = total + x[i, j]
        output[i, j] = total

    add.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    parameters = dict.fromkeys(names, kind)
    return lg.kernel(grid=SIZE // THREADS, block=THREADS, parameters=parameters)(add)


def gemm_kernel(target: str) -> Any:
    """Return our GEMM."""
    from lego_mlir.kernels import matmul

    return matmul(GEMM, GEMM, GEMM, target=target)


def any_rows_kernel(target: str) -> Any:
    """Return a GEMM whose rows only the launch knows, with one config for all of them."""
    from lego_mlir.kernels import WgmmaConfig, matmul

    return matmul(None, GEMM, GEMM, config=WgmmaConfig((64, 64, 64), 1, 4), target=target)
