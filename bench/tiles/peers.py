"""What the programs on tiles are measured beside: PyTorch, torch.compile, and Triton."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def peer(name: str, inputs: list[Any], output: Any, torch: Any) -> Callable[[], None]:
    """Return a call that computes a case's output by a peer.

    Args:
        name: as the case lists it.
        inputs: tensors on the GPU.
        output: where the result goes, or a tensor of its shape if the peer allocates its own.
        torch: the module.
    """
    kind, _, what = name.partition(" ")
    functional = torch.nn.functional
    shape = tuple(inputs[0].shape)
    eager: dict[str, Callable[..., Any]] = {
        "softmax": lambda x: torch.softmax(x, -1),
        "rmsnorm": lambda x, w: functional.rms_norm(x, shape[-1:], w, 1e-6),
        "layernorm": lambda x, w, b: functional.layer_norm(x, shape[-1:], w, b, 1e-6),
    }
    if name == "copy":
        return lambda: output.copy_(inputs[0])
    if name == "torch mm":
        return lambda: torch.mm(*inputs, out=output)
    if name == "torch transpose":
        return lambda: output.copy_(inputs[0].T)
    if name == "torch attention":
        heads = [x.view(-1, 4096, shape[-1]).unsqueeze(0) for x in inputs]
        return lambda: functional.scaled_dot_product_attention(*heads)
    if what.startswith("attention "):
        return _attention(kind, int(what.split()[1]), inputs, torch)
    if kind == "triton":
        return _triton_softmax(inputs[0], output)
    function = eager[what]
    if kind == "torch.compile":
        torch._dynamo.reset()  # it gives up on a function that it has compiled for many shapes
        function = torch.compile(function, dynamic=False, mode="max-autotune-no-cudagraphs")
    return lambda: function(*inputs)


def _attention(kind: str, length: int, inputs: list[Any], torch: Any) -> Callable[[], None]:
    """Return PyTorch's attention forward by one of its backends."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backends = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
    heads = [x.view(1, -1, length, x.shape[-1]) for x in inputs]

    def attention() -> None:
        with sdpa_kernel(backends[kind]):
            torch.nn.functional.scaled_dot_product_attention(*heads)

    return attention


def _triton_softmax(x: Any, y: Any) -> Callable[[], None]:
    """Return Triton's softmax of rows, as users write it."""
    import triton
    import triton.language as tl

    @triton.jit  # type: ignore[misc]
    def softmax(x_ptr: Any, y_ptr: Any, columns: tl.constexpr, block: tl.constexpr) -> None:
        at = tl.arange(0, block)
        row = tl.program_id(0).to(tl.int64) * columns
        inside = at < columns
        values = tl.load(x_ptr + row + at, mask=inside, other=float("-inf")).to(tl.float32)
        e = tl.exp(values - tl.max(values, 0))
        tl.store(y_ptr + row + at, (e / tl.sum(e, 0)).to(y_ptr.dtype.element_ty), mask=inside)

    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    warps = max(1, min(16, block // 1024 * 2))
    return lambda: softmax[(rows,)](x, y, columns, block, num_warps=warps)
