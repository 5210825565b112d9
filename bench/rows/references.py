"""What the kernels on rows must compute, in f64 by PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.rows.cases import ARGUMENTS, OUTPUTS
from bench.rows.fusions import FUSIONS

_EPSILON = {"rmsnorm": 1e-6, "layernorm": 1e-5}


def saved(kernel: str, name: str, tensors: Mapping[str, Any], torch: Any) -> Any:
    """Return an input of a gradient that the forward kernel saves, in f64."""
    x = tensors["logits" if "entropy" in kernel else "x"].double()
    match name:
        case "lse":
            return x.logsumexp(-1)
        case "mean":
            return x.mean(-1)
        case "rstd" if kernel.startswith("rmsnorm"):
            return (x.square().mean(-1) + _EPSILON["rmsnorm"]).rsqrt()
        case "rstd":
            return (x.var(-1, correction=0) + _EPSILON["layernorm"]).rsqrt()
    raise ValueError(name)


def reference(kernel: str, tensors: Mapping[str, Any], torch: Any) -> dict[str, Any]:
    """Return the outputs of a kernel by name."""
    t = {n: x.double() if _is_floating(x) else x for n, x in tensors.items()}
    functional = torch.nn.functional
    if kernel in FUSIONS:
        roles = ARGUMENTS[kernel]
        found = FUSIONS[kernel].function(torch, *(t[n] for n in roles if n not in OUTPUTS))
        return dict(zip((n for n in roles if n in OUTPUTS), found, strict=True))
    match kernel:
        case "softmax":
            return {"y": t["x"].softmax(-1)}
        case "rmsnorm" | "layernorm":
            return {"y": _normalized(kernel, t)}
        case "cross_entropy":
            return {"loss": functional.cross_entropy(t["logits"], t["labels"], reduction="none")}
        case "softmax_backward":
            return {"dx": t["y"] * (t["dy"] - (t["dy"] * t["y"]).sum(-1, keepdim=True))}
        case "cross_entropy_backward":
            slope = (t["logits"] - t["lse"][:, None]).exp()
            slope[torch.arange(len(slope), device=slope.device), t["labels"]] -= 1
            return {"dlogits": slope * t["dloss"][:, None]}
    return _norm_gradient(kernel, t)


def _is_floating(x: Any) -> bool:
    return not isinstance(x, int) and bool(x.is_floating_point())


def _normalized(kernel: str, t: Mapping[str, Any]) -> Any:
    x = t["x"]
    if kernel == "rmsnorm":
        return x * (x.square().mean(-1, keepdim=True) + _EPSILON[kernel]).rsqrt() * t["w"]
    centered = x - x.mean(-1, keepdim=True)
    factor = (centered.square().mean(-1, keepdim=True) + _EPSILON[kernel]).rsqrt()
    return centered * factor * t["w"] + t["b"]


def _norm_gradient(kernel: str, t: Mapping[str, Any]) -> dict[str, Any]:
    is_layernorm, rstd = kernel.startswith("layernorm"), t["rstd"][:, None]
    normal = (t["x"] - t["mean"][:, None] if is_layernorm else t["x"]) * rstd
    slope = t["dy"] * t["w"]
    rest = slope - normal * (slope * normal).mean(-1, keepdim=True)
    if is_layernorm:
        rest = rest - slope.mean(-1, keepdim=True)
    found = {"dx": rest * rstd, "dw": (t["dy"] * normal).sum(0)}
    return found | {"db": t["dy"].sum(0)} if is_layernorm else found
