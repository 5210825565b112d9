"""What the kernels on rows are measured beside: PyTorch, torch.compile, QuACK, and copies.

Gradients of PyTorch are those of autograd, captured in a CUDA graph: kernels only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from bench.case import COPIES
from bench.peers.base import Absent
from bench.rows.cases import RowsCase
from bench.rows.fusions import FUSIONS

PEERS = (*COPIES, "torch", "torch.compile", "quack")

_COPY_BLOCK = 2048
"""Words that a CTA copies: four vectors a thread."""


def peer(name: str, case: RowsCase, tensors: Mapping[str, Any], torch: Any) -> Callable[[], Any]:
    """Return a call that does the work of a case.

    Args:
        name: one of `PEERS`.
        case: the kernel.
        tensors: its arguments by name.
        torch: the module.
    """
    if name in COPIES:
        return _copy(name, case, torch)
    if name == "quack":
        return _quack(case, tensors)
    if case.kernel.endswith("_backward"):
        return _gradient(name, case, tensors, torch)
    function = _forward(name, case.kernel, torch)
    inputs = [x for n, x in tensors.items() if n not in case.outputs]
    return lambda: function(*inputs)


def _copy(name: str, case: RowsCase, torch: Any) -> Callable[[], Any]:
    """Return a copy that moves the bytes of the case's matrices, half of them each way."""
    words = case.bytes // 8
    source = torch.randint(0, 1 << 30, (words,), dtype=torch.int32, device="cuda")
    target = torch.empty_like(source)
    if name == "memcpy":
        return lambda: target.copy_(source)
    import triton
    import triton.language as tl

    @triton.jit
    def copy(x_ptr, y_ptr, count, block: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
        tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < count), mask=at < count)

    grid = (triton.cdiv(words, _COPY_BLOCK),)
    return lambda: copy[grid](source, target, words, _COPY_BLOCK, num_warps=4)


def _forward(name: str, kernel: str, torch: Any) -> Callable[..., Any]:
    functional = torch.nn.functional
    eager: dict[str, Callable[..., Any]] = {
        "softmax": lambda x: torch.softmax(x, -1),
        "rmsnorm": lambda x, w: functional.rms_norm(x, x.shape[-1:], w, 1e-6),
        "layernorm": lambda x, w, b: functional.layer_norm(x, x.shape[-1:], w, b, 1e-5),
        "cross_entropy": lambda x, t: functional.cross_entropy(x, t, reduction="none"),
    }
    fused = {n: partial(fusion.function, torch) for n, fusion in FUSIONS.items()}
    function = {**eager, **fused}[kernel]
    if name == "torch":
        return function
    torch._dynamo.reset()  # it gives up on a function that it has compiled for many shapes
    # A graph is replayed many times: the gradient keeps what the forward kernels saved.
    torch._functorch.config.donated_buffer = False
    compiled: Callable[..., Any] = torch.compile(function, dynamic=False)
    return compiled


def _gradient(
    name: str, case: RowsCase, tensors: Mapping[str, Any], torch: Any
) -> Callable[[], Any]:
    function = _forward(name, case.kernel.removesuffix("_backward"), torch)
    t = dict(tensors)
    if "entropy" in case.kernel:
        logits = t["logits"].detach().requires_grad_()
        y, leaves, dy = function(logits, t["labels"]), [logits], t["dloss"]
        dy = dy.to(y.dtype)
    else:
        x = (t["y"].log() if case.kernel.startswith("softmax") else t["x"]).detach()
        leaves = [x.requires_grad_()]
        if "w" in t:
            leaves.append(t["w"].detach().requires_grad_())
        if "db" in t:
            leaves.append(torch.zeros_like(t["w"]).requires_grad_())
        y, dy = function(*leaves), t["dy"]
    return lambda: torch.autograd.grad(y, leaves, dy, retain_graph=True)


def _quack(case: RowsCase, tensors: Mapping[str, Any]) -> Callable[[], Any]:
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
