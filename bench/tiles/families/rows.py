"""Kernels on rows: softmax and norms."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from bench.tiles.case import TORCH_NAMES, TileCase

if TYPE_CHECKING:
    from lego_mlir import Kernel

_BYTES = 1 << 28
"""The bytes of the input, beyond every cache."""

_TOLERANCE = {"f32": 1e-5, "f16": 2e-3, "bf16": 1e-2}
_VECTORS = {"softmax": 0, "rmsnorm": 1, "layernorm": 2}


def rows_case(what: str, columns: int, dtype: str) -> TileCase:
    """Return a kernel whose CTAs have a row each.

    Args:
        what: `softmax`, `rmsnorm` or `layernorm`.
        columns: of a row.
        dtype: of the elements.
    """
    size = 4 if dtype == "f32" else 2
    rows = _BYTES // (columns * size)
    shapes = _arguments(what, (rows, columns), (columns,))
    return TileCase(
        f"{what}_{dtype}_{rows}x{columns}",
        partial(_row_kernel, what, rows, columns, dtype),
        shapes,
        (TORCH_NAMES[dtype],) * len(shapes),
        _REFERENCES[what],
        (
            f"torch {what}",
            f"torch.compile {what}",
            *(["triton softmax"] if what == "softmax" else []),
        ),
        _TOLERANCE[dtype],
    )


def _row_kernel(what: str, rows: int, columns: int, dtype: str) -> Kernel:
    import lego_mlir as lg

    matrix, vector = lg.Tensor[dtype, (rows, columns), 16], lg.Tensor[dtype, (columns,), 16]
    warps = max(1, min(16, columns // 1024 * 2))
    decorate = lg.kernel(grid=rows, warps=warps)

    def softmax(x: matrix, y: matrix) -> None:  # type: ignore[valid-type]
        row = x[lg.block_id(), :].to("f32")
        e = lg.exp(row - lg.max(row))
        y[lg.block_id(), :] = (e / lg.sum(e)).to(dtype)

    def rmsnorm(x: matrix, w: vector, y: matrix) -> None:  # type: ignore[valid-type]
        row = x[lg.block_id(), :].to("f32")
        scale = lg.rsqrt(lg.sum(row * row) / columns + 1e-6)
        y[lg.block_id(), :] = (row * scale * w[:].to("f32")).to(dtype)

    def layernorm(x: matrix, w: vector, b: vector, y: matrix) -> None:  # type: ignore[valid-type]
        row = x[lg.block_id(), :].to("f32")
        centered = row - lg.sum(row) / columns
        scale = lg.rsqrt(lg.sum(centered * centered) / columns + 1e-6)
        y[lg.block_id(), :] = (centered * scale * w[:].to("f32") + b[:].to("f32")).to(dtype)

    body = {"softmax": softmax, "rmsnorm": rmsnorm, "layernorm": layernorm}[what]
    kinds = _arguments(what, matrix, vector)
    body.__annotations__ = dict(zip(body.__code__.co_varnames, kinds, strict=False))
    return decorate(body)


def _arguments(what: str, matrix: Any, vector: Any) -> tuple[Any, ...]:
    """Return what the arguments are: a matrix, the vectors of a norm, and the output."""
    return (matrix, *(vector,) * _VECTORS[what], matrix)


def _softmax(x: Any) -> Any:
    return x.softmax(-1)


def _rmsnorm(x: Any, w: Any) -> Any:
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w


def _layernorm(x: Any, w: Any, b: Any) -> Any:
    centered = x - x.mean(-1, keepdim=True)
    return centered * (centered.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w + b


_REFERENCES = {"softmax": _softmax, "rmsnorm": _rmsnorm, "layernorm": _layernorm}
