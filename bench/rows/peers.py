"""What the kernels on rows are measured beside: PyTorch, torch.compile, libraries, and copies.

Gradients of PyTorch are those of autograd, captured in a CUDA graph: kernels only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from bench.case import COPIES
from bench.rows.cases import RowsCase
from bench.rows.fusions import FUSIONS
from bench.rows.libraries import liger, quack

_LIBRARIES = {"quack": quack, "liger": liger}

PEERS = (*COPIES, "torch", "torch.compile", *_LIBRARIES)

Bind = Callable[[Mapping[str, Any]], Callable[[], Any]]
"""Returns a call on arguments, which has them by name."""

_COPY_BLOCK = 2048
"""Words that a CTA copies: four vectors a thread."""


def peer(name: str, case: RowsCase, torch: Any) -> Bind:
    """Return what makes calls that do the work of a case, of its arguments by name.

    Args:
        name: one of `PEERS`.
        case: the kernel.
        torch: the module.
    """
    if name in COPIES:
        copied = _copy if name == "copy kernel" else _memcpy
        return lambda _: copied(case, torch)
    if name in _LIBRARIES:
        return partial(_LIBRARIES[name], case)
    function = _forward(name, case.kernel.removesuffix("_backward"), torch)
    if case.kernel.endswith("_backward"):
        return partial(_gradient, function, case, torch)
    return partial(_call, function, case)


def _memcpy(case: RowsCase, torch: Any) -> Callable[[], Any]:
    source, target = _halves(case, torch)
    return lambda: target.copy_(source)


def _copy(case: RowsCase, torch: Any) -> Callable[[], Any]:
    import triton
    import triton.language as tl

    @triton.jit
    def copy(x_ptr, y_ptr, count, block: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
        tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < count), mask=at < count)

    source, target = _halves(case, torch)
    words = len(source)
    grid = (triton.cdiv(words, _COPY_BLOCK),)
    return lambda: copy[grid](source, target, words, _COPY_BLOCK, num_warps=4)


def _halves(case: RowsCase, torch: Any) -> tuple[Any, Any]:
    """Return what a copy reads and writes: half of the bytes of the case's matrices each."""
    words = case.bytes // 8
    source = torch.randint(0, 1 << 30, (words,), dtype=torch.int32, device="cuda")
    return source, torch.empty_like(source)


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


def _call(
    function: Callable[..., Any], case: RowsCase, tensors: Mapping[str, Any]
) -> Callable[[], Any]:
    inputs = [x for n, x in tensors.items() if n not in case.outputs]
    return lambda: function(*inputs)


def _gradient(
    function: Callable[..., Any], case: RowsCase, torch: Any, tensors: Mapping[str, Any]
) -> Callable[[], Any]:
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
