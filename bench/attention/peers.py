"""The other attention kernels: PyTorch's, cuDNN's of 8 bits, FlashAttention's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.attention.cases import Sizes

Peer = Callable[[], Any]
"""Enqueues the kernel, and returns its result [batch, queries, heads, depth]."""

_NARROW = "f8E4M3FN"

_SCALE_S = 256.0
"""What cuDNN's exponentials, which are 1 at most, are multiplied by before they are rounded to
e4m3: the largest power of 2 that it holds, so that as few as possible are subnormal."""


def peers_of(sizes: Sizes) -> dict[str, Callable[..., Peer]]:
    """Return what makes the peers of a problem from PyTorch, q, k, v and the sizes, by name."""
    if sizes.dtype == _NARROW:
        found = {"FlashAttention-3": _flash_3}
        return found if sizes.is_decoding else {"cuDNN": _cudnn_narrow, **found}
    found = {"cuDNN": _by_cudnn, "FlashAttention-4": _flash_4}
    # Where queries are few it is far behind.
    return found if sizes.is_decoding else found | {"FlashAttention-2": _flash_2}


def _by_cudnn(torch: Any, q: Any, k: Any, v: Any, sizes: Sizes) -> Peer:
    return _of_torch("CUDNN_ATTENTION", torch, q, k, v, sizes)


def _flash_2(torch: Any, q: Any, k: Any, v: Any, sizes: Sizes) -> Peer:
    return _of_torch("FLASH_ATTENTION", torch, q, k, v, sizes)


def _of_torch(backend: str, torch: Any, q: Any, k: Any, v: Any, sizes: Sizes) -> Peer:
    """Return PyTorch's attention by one of its back ends."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if sizes.causal and sizes.queries != sizes.keys:
        raise ValueError("its causal mask begins with the first key")
    if sizes.window is not None:
        raise ValueError("it has no windows")
    parts = [x.transpose(1, 2) for x in (q, k, v)]
    attention = torch.nn.functional.scaled_dot_product_attention
    chosen = getattr(SDPBackend, backend)
    grouped = sizes.heads != sizes.heads_kv

    def call() -> Any:
        with sdpa_kernel(chosen):
            found = attention(*parts, is_causal=sizes.causal, enable_gqa=grouped)
        return found.transpose(1, 2)

    return call


def _flash_4(torch: Any, q: Any, k: Any, v: Any, sizes: Sizes) -> Peer:
    """Return FlashAttention-4's forward kernel, which CuTe DSL compiles."""
    from flash_attn.cute import flash_attn_func

    # Its windows count the keys before a query's own one.
    window = (None, None) if sizes.window is None else (sizes.window - 1, 0)

    def call() -> Any:
        found = flash_attn_func(q, k, v, causal=sizes.causal, window_size=window)
        return found[0] if isinstance(found, tuple) else found

    return call


def _flash_3(torch: Any, q: Any, k: Any, v: Any, sizes: Sizes) -> Peer:
    """Return FlashAttention-3's forward kernel, which takes 8 bits."""
    from flash_attn_interface import flash_attn_func

    def call() -> Any:
        found = flash_attn_func(q, k, v, causal=sizes.causal)
        return found[0] if isinstance(found, tuple) else found

    return call


def _cudnn_narrow(torch: Any, q: Any, k: Any, v: Any, sizes: Sizes) -> Peer:
    """Return cuDNN's forward kernel of e4m3, whose result is e4m3 too: on Hopper it has no other.

    It needs the package `nvidia-cudnn-frontend`; the library is PyTorch's.
    """
    try:
        import cudnn
    except ImportError as e:
        raise ValueError("needs nvidia-cudnn-frontend (pip install)") from e
    if sizes.window is not None or (sizes.causal and sizes.queries != sizes.keys):
        raise ValueError("only full or square causal problems are measured")
    handle = cudnn.create_handle()
    cudnn.set_stream(handle, torch.cuda.current_stream().cuda_stream)
    kind = cudnn.data_type
    graph = cudnn.pygraph(
        io_data_type=kind.FP8_E4M3,
        intermediate_data_type=kind.FLOAT,
        compute_data_type=kind.FLOAT,
        handle=handle,
    )
    given = dict(zip("qkv", (x.transpose(1, 2) for x in (q, k, v)), strict=True))
    factors = {"descale_s": 1 / _SCALE_S, "scale_s": _SCALE_S}
    for name in ("descale_q", "descale_k", "descale_v", "scale_o"):
        factors[name] = 1.0
    given |= {
        name: torch.full((1, 1, 1, 1), value, device="cuda") for name, value in factors.items()
    }
    inputs = {
        name: graph.tensor(
            name=name,
            dim=list(x.shape),
            stride=list(x.stride()),
            data_type=kind.FP8_E4M3 if name in "qkv" else kind.FLOAT,
        )
        for name, x in given.items()
    }
    outputs = graph.sdpa_fp8(
        **inputs,
        generate_stats=True,
        attn_scale=sizes.depth**-0.5,
        use_causal_mask=sizes.causal,
    )
    o = torch.empty_like(q)
    stats = torch.empty((sizes.batch, sizes.heads, sizes.queries, 1), device="cuda")
    peaks = [torch.zeros((1, 1, 1, 1), device="cuda") for _ in range(2)]
    results = [o.transpose(1, 2), stats, *peaks]
    for tensor, x in zip(outputs, results, strict=True):
        tensor.set_output(True).set_dim(list(x.shape)).set_stride(list(x.stride()))
        tensor.set_data_type(kind.FP8_E4M3 if x is results[0] else kind.FLOAT)
    graph.build([cudnn.heur_mode.A])
    space = torch.empty(max(1, graph.get_workspace_size()), device="cuda", dtype=torch.uint8)
    named = {inputs[name]: x for name, x in given.items()}
    named |= dict(zip(outputs, results, strict=True))

    def call() -> Any:
        graph.execute(named, space, handle=handle)
        return o

    return call
