"""Random inputs of attention, and hostile ones, which make the most of rounding errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.attention.cases import Sizes

NORMAL = "normal"

HOSTILE = ("random", "large", "growing", "offset")
"""Inputs whose errors are compared: of a normal distribution; with scores that leave one key most
of a row; with scores that grow along the keys, or fall; with scores that are large, and differ by
little."""

_LARGE, _GROWTH, _OFFSET = 16.0, 12.0, 8.0

_DTYPES = {"f16": "float16", "bf16": "bfloat16", "f8E4M3FN": "float8_e4m3fn"}


def inputs_of(torch: Any, kind: str, sizes: Sizes) -> tuple[Any, Any, Any]:
    """Return q, k and v on the GPU.

    Args:
        torch: PyTorch.
        kind: `NORMAL`, or one of `HOSTILE`.
        sizes: their shapes and element type.
    """
    dtype = getattr(torch, _DTYPES[sizes.dtype])
    shape_q = sizes.batch, sizes.queries, sizes.heads, sizes.depth
    shape_kv = sizes.batch, sizes.keys, sizes.heads_kv, sizes.depth
    q, k, v = (torch.randn(shape, device="cuda") for shape in (shape_q, shape_kv, shape_kv))
    if kind == "large":
        q *= _LARGE
    elif kind == "growing":
        growth = torch.linspace(0, _GROWTH, sizes.keys, device="cuda")[None, :, None, None]
        k *= growth
        k[:, :, ::2] = k[:, :, ::2].flip(1)
    elif kind == "offset":
        q, k = q / 8 + _OFFSET, k / 8 + _OFFSET
    return q.to(dtype), k.to(dtype), v.to(dtype)


def largest_error(torch: Any, found: Any, expected: Any) -> float:
    """Return the largest difference of two tensors; NaN if one has a NaN."""
    return float((found.to(expected.dtype) - expected).abs().max())
