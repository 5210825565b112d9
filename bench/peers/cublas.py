"""NVIDIA's cuBLAS as PyTorch calls it: the product of matrices where they lie, into the output."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bench.gemm.operands import TORCH_TYPES, Matrix, Operands
from bench.gemm.product import Product
from bench.memory import DeviceArray
from bench.peers.base import Absent, Setup
from bench.timing import Call

FP8 = ("f8E4M3FN", "f8E5M2")


def prepare(setup: Setup) -> Call:
    """`torch.mm`; `torch._scaled_mm` with scales of one for fp8, `torch._int_mm` for integers."""
    return _call(setup, fast=False)


def fast(setup: Setup) -> Call:
    """For fp8, with sums as the tensor cores have them, not carried over to f32 in between."""
    if setup.data.reference.dtype not in FP8:
        raise Absent("only the sums of fp8 are short")
    return _call(setup, fast=True)


def _call(setup: Setup, *, fast: bool) -> Call:
    sets, torch = tensors(setup), setup.torch
    assert torch is not None
    reference: Product = setup.data.reference
    if reference.dtype in FP8:
        if (reference.a, reference.b) != ("row", "col"):
            raise Absent("cuBLAS takes fp8 only where k is contiguous in both")
        one = torch.ones((), device="cuda")
        kind = getattr(torch, TORCH_TYPES[reference.out])
        multiply = partial(
            torch._scaled_mm, scale_a=one, scale_b=one, out_dtype=kind, use_fast_accum=fast
        )
    else:
        multiply = torch._int_mm if reference.dtype == "i8" else torch.mm

    def launch(k: int) -> None:
        a, b, c = sets[k]
        multiply(a, b, out=c)

    return launch


def tensors(setup: Setup) -> list[tuple[Any, Any, Any]]:
    """A, B and C of every set as PyTorch's matrices, without a copy.

    Raises:
        Absent: there is no PyTorch with CUDA.
    """
    data: Operands = setup.data
    _module(setup)
    found = []
    for k in range(data.sets):
        matrices = (memory(setup, matrix, k) for matrix in (data.a, data.b, data.c))
        found += data.reference.products(*matrices)
    return found


def memory(setup: Setup, matrix: Matrix, k: int) -> Any:
    """The elements of a matrix of set k, as they lie, without a copy.

    Raises:
        Absent: there is no PyTorch with CUDA.
    """
    torch = _module(setup)
    bytes_ = DeviceArray(matrix.pointer + k * matrix.stride, (matrix.size,), np.dtype(np.uint8))
    kind = getattr(torch, TORCH_TYPES[matrix.dtype])
    return torch.as_tensor(bytes_, device="cuda").view(kind)


def _module(setup: Setup) -> Any:
    if setup.torch is None:
        raise Absent("PyTorch with CUDA is not installed")
    return setup.torch
