"""QuACK and Liger, as far as they have the kernels on rows and are installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bench.peers.base import Absent
from bench.rows.cases import RowsCase

_LLAMA = 0
"""Liger's casting mode of RMSNorm with statistics in f32."""


def quack(case: RowsCase, tensors: Mapping[str, Any]) -> Callable[[], Any]:
    """Return QuACK's call; raises ImportError where it is not installed."""
    from quack.cross_entropy import cross_entropy_bwd, cross_entropy_fwd
    from quack.rmsnorm import layernorm_bwd, layernorm_fwd, rmsnorm_bwd, rmsnorm_fwd
    from quack.softmax import softmax_bwd, softmax_fwd

    t = dict(tensors)
    match case.kernel:
        case "softmax":
            return lambda: softmax_fwd(t["x"])
        case "rmsnorm":
            w = t["w"].float()
            return lambda: rmsnorm_fwd(t["x"], w, eps=1e-6)
        case "add_rmsnorm":
            w = t["w"].float()
            return lambda: rmsnorm_fwd(t["x"], w, residual=t["residual"], eps=1e-6)
        case "layernorm":
            w, b = t["w"].float(), t["b"].float()
            return lambda: layernorm_fwd(t["x"], w, b, eps=1e-5)
        case "cross_entropy":
            return lambda: cross_entropy_fwd(t["logits"], t["labels"])
        case "softmax_backward":
            return lambda: softmax_bwd(t["dy"], t["y"])
        case "rmsnorm_backward":
            return lambda: rmsnorm_bwd(t["x"], t["w"], t["dy"], t["rstd"])
        case "layernorm_backward":
            return lambda: layernorm_bwd(t["x"], t["w"], t["dy"], t["rstd"], t["mean"])
        case "cross_entropy_backward":
            return lambda: cross_entropy_bwd(t["logits"], t["labels"], t["dloss"], t["lse"])
    raise Absent(f"QuACK has no {case.kernel}")


def liger(case: RowsCase, tensors: Mapping[str, Any]) -> Callable[[], Any]:
    """Return Liger's call; raises ImportError where it is not installed.

    Liger's cross-entropy reads its labels on the host, so no CUDA graph can have it.
    """
    from liger_kernel.ops.fused_add_rms_norm import fused_add_rms_norm_forward
    from liger_kernel.ops.geglu import geglu_forward
    from liger_kernel.ops.layer_norm import layer_norm_backward, layer_norm_forward
    from liger_kernel.ops.rms_norm import rms_norm_backward, rms_norm_forward
    from liger_kernel.ops.softmax import _softmax_backward, _softmax_forward
    from liger_kernel.ops.swiglu import swiglu_forward
    from liger_kernel.ops.utils import calculate_settings

    t = dict(tensors)
    match case.kernel:
        case "softmax":
            return lambda: _softmax_forward(t["x"])
        case "softmax_backward":
            block, warps = calculate_settings(case.columns)
            return lambda: _softmax_backward(t["dy"], t["y"], block, warps, case.columns > block)
        case "rmsnorm":
            return lambda: rms_norm_forward(t["x"], t["w"], 1e-6, 0.0, _LLAMA, None)
        case "rmsnorm_backward":
            block, warps = calculate_settings(case.columns)
            return lambda: rms_norm_backward(
                t["dy"], t["x"], t["w"], t["rstd"], 0.0, _LLAMA, block, warps, False, None
            )
        case "layernorm":
            return lambda: layer_norm_forward(t["x"], t["w"], t["b"], 1e-5)
        case "layernorm_backward":
            return lambda: layer_norm_backward(
                t["dy"], t["x"], t["w"], t["w"], t["mean"], t["rstd"]
            )
        case "add_rmsnorm":
            return lambda: fused_add_rms_norm_forward(
                t["x"], t["residual"], t["w"], 1e-6, 0.0, _LLAMA
            )
        case "swiglu":
            return lambda: swiglu_forward(t["gate"], t["up"])
        case "geglu":
            return lambda: geglu_forward(t["gate"], t["up"])
    raise Absent(f"Liger has no {case.kernel} for CUDA graphs")
