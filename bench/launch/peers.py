"""The peers: functions from tensors to a call that launches once on PyTorch's current stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bench.launch.kernels import SIZE, THREADS
from bench.peers.base import Absent

Call = Callable[[], Any]


def torch_sum(tensors: Sequence[Any]) -> Call:
    """Return PyTorch's addition of two tensors."""
    import torch

    if len(tensors) != 3:
        raise Absent("PyTorch adds two tensors at a time")
    a, b, c = tensors
    return lambda: torch.add(a, b, out=c)


def torch_gemm(tensors: Sequence[Any]) -> Call:
    """Return PyTorch's GEMM."""
    import torch

    a, b, c = tensors
    return lambda: torch.mm(a, b, out=c)


def triton_sum(tensors: Sequence[Any]) -> Call:
    """Return a call of Triton's JIT function, with its cache of compiled kernels."""
    try:
        from bench.launch import triton_kernels
    except ImportError as e:
        raise Absent(f"Triton is not installed ({e})") from None
    kernel = triton_kernels.KERNELS[len(tensors)][(SIZE // THREADS,)]
    return lambda: kernel(*tensors, BLOCK=THREADS)


def cute_sum(tensors: Sequence[Any]) -> Call:
    """Return a call of a function that CuTe DSL compiled, with tvm-ffi if that is installed."""
    if len(tensors) != 3:
        raise Absent("the kernel of CuTe DSL adds two tensors")
    try:
        from bench.launch import cute_kernels
    except ImportError as e:
        raise Absent(f"CuTe DSL is not installed ({e})") from None
    try:
        return cute_kernels.compiled(tensors)
    except Exception as e:  # its versions differ
        raise Absent(f"CuTe DSL does not compile the kernel: {type(e).__name__}: {e}") from None
