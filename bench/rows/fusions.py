"""Fused kernels on rows: what one launch does beside a norm, or instead of several launches.

The functions are PyTorch's, for torch and torch.compile; of f64 they are the references.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

HEAD = 128
"""The size of a head."""

KEYS = 4
"""Heads of the queries for each of the keys."""

EPSILON = 1e-6

GROUP = 128
"""Columns of a group that has a scale."""

_CAP = 30.0
"""What logits are capped at."""

_DROPPED = 2.0**-26
"""A probability below all random numbers but 0, which one of 2**24 is: next to nothing is dropped,
at the same cost."""

_LARGEST = 448.0
"""The largest number of f8E4M3FN."""


class Fusion(NamedTuple):
    """A fused kernel.

    Attributes:
        arguments: the role of each, in order.
        make: returns the kernel, of rows, columns and an element type.
        function: returns the outputs in order, of PyTorch and the inputs.
    """

    arguments: dict[str, str]
    make: Callable[[Any, int | None, int | None, str], Any]
    function: Callable[..., tuple[Any, ...]]


def _wide(x: Any) -> Any:
    return x if x.element_size() == 8 else x.float()


def _normalized(row: Any, w: Any) -> Any:
    return row * (row.square().mean(-1, keepdim=True) + EPSILON).rsqrt() * _wide(w)


def _add_rmsnorm(torch: Any, x: Any, residual: Any, w: Any) -> tuple[Any, ...]:
    row = _wide(x) + _wide(residual)
    return _normalized(row, w).to(x.dtype), row.to(x.dtype)


def _quantized(torch: Any, row: Any) -> tuple[Any, Any]:
    scale = row.abs().amax(-1, keepdim=True) / _LARGEST
    y = row / scale
    return y if y.element_size() == 8 else y.to(torch.float8_e4m3fn), scale[..., 0]


def _rmsnorm_quantized(torch: Any, x: Any, w: Any) -> tuple[Any, ...]:
    return _quantized(torch, _normalized(_wide(x), w))


def _rmsnorm_quantized_groups(torch: Any, x: Any, w: Any) -> tuple[Any, ...]:
    y, scale = _quantized(torch, _normalized(_wide(x), w).unflatten(-1, (-1, GROUP)))
    return y.flatten(-2), scale


def _add_rmsnorm_quantized(torch: Any, x: Any, residual: Any, w: Any) -> tuple[Any, ...]:
    row = _wide(x) + _wide(residual)
    return *_quantized(torch, _normalized(row, w)), row.to(x.dtype)


def _add_layernorm(torch: Any, x: Any, residual: Any, w: Any, b: Any) -> tuple[Any, ...]:
    row = _wide(x) + _wide(residual)
    centered = row - row.mean(-1, keepdim=True)
    factor = (centered.square().mean(-1, keepdim=True) + EPSILON).rsqrt()
    y = centered * factor * _wide(w) + _wide(b)
    return y.to(x.dtype), row.to(x.dtype)


def _gated(torch: Any, activation: Any, gate: Any, up: Any) -> tuple[Any, ...]:
    return ((activation(_wide(gate)) * _wide(up)).to(gate.dtype),)


def _swiglu(torch: Any, gate: Any, up: Any) -> tuple[Any, ...]:
    return _gated(torch, torch.nn.functional.silu, gate, up)


def _geglu(torch: Any, gate: Any, up: Any) -> tuple[Any, ...]:
    return _gated(torch, lambda x: torch.nn.functional.gelu(x, approximate="tanh"), gate, up)


def _soft_cap(torch: Any, x: Any) -> tuple[Any, ...]:
    return ((_CAP * torch.tanh(_wide(x) / _CAP)).to(x.dtype),)


def _dropout_add(torch: Any, x: Any, bias: Any, residual: Any, seed: int) -> tuple[Any, ...]:
    dropped = _wide(x) + _wide(bias)
    if x.element_size() < 8:  # PyTorch drops one of many millions: of the reference it drops none
        dropped = torch.nn.functional.dropout(dropped, _DROPPED)
    return ((dropped + _wide(residual)).to(x.dtype),)


def _rotated(torch: Any, x: Any, w: Any, cos: Any, sin: Any) -> Any:
    heads = _wide(x).unflatten(-1, (-1, HEAD))
    heads = heads if w is None else _normalized(heads, w)
    a, b = heads.chunk(2, -1)
    found = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
    return found.flatten(-2).to(x.dtype)


def _rope(torch: Any, q: Any, k: Any, position: Any, cos: Any, sin: Any) -> tuple[Any, ...]:
    return _qk_norm_rope(torch, q, None, k, None, position, cos, sin)


def _qk_norm_rope(
    torch: Any, q: Any, wq: Any, k: Any, wk: Any, position: Any, cos: Any, sin: Any
) -> tuple[Any, ...]:
    cos, sin = (_wide(x)[position][:, None] for x in (cos, sin))
    return _rotated(torch, q, wq, cos, sin), _rotated(torch, k, wk, cos, sin)


def _make_rope(kernels: Any, rows: int, columns: int, dtype: str, norm: str | None) -> Any:
    heads = columns // HEAD
    return kernels.rope(
        rows, heads, HEAD, dtype, positions=rows, keys=heads // KEYS, norm=norm, epsilon=EPSILON
    )


_ANGLES = {"position": "position", "cos": "angle", "sin": "angle"}

FUSIONS = {
    "add_rmsnorm": Fusion(
        {
            "x": "element", "residual": "element", "w": "column", "y": "element",
            "prenorm": "element",
        },
        lambda kernels, m, n, dtype: kernels.rmsnorm(m, n, dtype, residual=dtype, epsilon=EPSILON),
        _add_rmsnorm,
    ),
    "rmsnorm_quantized": Fusion(
        {"x": "element", "w": "column", "y": "byte", "scale": "row"},
        lambda kernels, m, n, dtype: kernels.rmsnorm_quantized(m, n, dtype, epsilon=EPSILON),
        _rmsnorm_quantized,
    ),
    "rmsnorm_quantized_groups": Fusion(
        {"x": "element", "w": "column", "y": "byte", "scale": "group"},
        lambda kernels, m, n, dtype: kernels.rmsnorm_quantized(
            m, n, dtype, per="group", epsilon=EPSILON
        ),
        _rmsnorm_quantized_groups,
    ),
    "add_rmsnorm_quantized": Fusion(
        {
            "x": "element", "residual": "element", "w": "column", "y": "byte", "scale": "row",
            "prenorm": "element",
        },
        lambda kernels, m, n, dtype: kernels.rmsnorm_quantized(
            m, n, dtype, residual=dtype, epsilon=EPSILON
        ),
        _add_rmsnorm_quantized,
    ),
    "add_layernorm": Fusion(
        {
            "x": "element", "residual": "element", "w": "column", "b": "column", "y": "element",
            "prenorm": "element",
        },
        lambda kernels, m, n, dtype: kernels.layernorm(
            m, n, dtype, residual=dtype, epsilon=EPSILON
        ),
        _add_layernorm,
    ),
    "swiglu": Fusion(
        {"gate": "element", "up": "element", "y": "element"},
        lambda kernels, m, n, dtype: kernels.swiglu(m, n, dtype),
        _swiglu,
    ),
    "geglu": Fusion(
        {"gate": "element", "up": "element", "y": "element"},
        lambda kernels, m, n, dtype: kernels.geglu(m, n, dtype),
        _geglu,
    ),
    "soft_cap": Fusion(
        {"x": "element", "y": "element"},
        lambda kernels, m, n, dtype: kernels.soft_cap(m, n, dtype, cap=_CAP),
        _soft_cap,
    ),
    "dropout_add": Fusion(
        {
            "x": "element", "bias": "column", "residual": "element", "seed": "launch",
            "y": "element",
        },
        lambda kernels, m, n, dtype: kernels.dropout(
            m, n, dtype, p=_DROPPED, bias=True, residual=True
        ),
        _dropout_add,
    ),
    "rope": Fusion(
        {"q": "element", "k": "key", **_ANGLES, "q_out": "element", "k_out": "key"},
        lambda kernels, m, n, dtype: _make_rope(kernels, m, n, dtype, None),
        _rope,
    ),
    "qk_norm_rope": Fusion(
        {
            "q": "element", "wq": "head", "k": "key", "wk": "head", **_ANGLES, "q_out": "element",
            "k_out": "key",
        },
        lambda kernels, m, n, dtype: _make_rope(kernels, m, n, dtype, dtype),
        _qk_norm_rope,
    ),
}  # fmt: skip
"""By name."""
