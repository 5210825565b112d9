"""NVIDIA's cuBLAS as PyTorch calls it, on the operands in place and into the output."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bench.gemm.operands import TORCH_TYPES, GemmOperands, Matrix
from bench.gemm.references import GemmReference
from bench.measure.device_memory import DeviceArray
from bench.measure.timing import Call
from bench.peers.base import Absent, Setup

FP8 = ("f8E4M3FN", "f8E5M2")


def prepare(setup: Setup) -> Call:
    """Return `torch.mm`; for fp8 `torch._scaled_mm` with scales of 1, for i8 `torch._int_mm`."""
    return _call(setup, fast=False)


def prepare_fast(setup: Setup) -> Call:
    """Return the fp8 GEMM with the tensor cores' own accumulation, without promotion to f32."""
    if setup.data.reference.dtype not in FP8:
        raise Absent("only fp8 has fast accumulation")
    return _call(setup, fast=True)


def _call(setup: Setup, *, fast: bool) -> Call:
    sets, torch = tensors(setup), setup.torch
    assert torch is not None
    reference: GemmReference = setup.data.reference
    if reference.dtype in FP8:
        if (reference.a, reference.b) != ("row", "col"):
            raise Absent("cuBLAS takes fp8 only if k is contiguous in A and B")
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
    """Return A, B and C of every set as PyTorch matrices, without a copy.

    Raises:
        Absent: there is no PyTorch with CUDA.
    """
    data: GemmOperands = setup.data
    _module(setup)
    found = []
    for k in range(data.sets):
        matrices = (flat_tensor(setup, matrix, k) for matrix in (data.a, data.b, data.c))
        found += data.reference.gemms(*matrices)
    return found


def flat_tensor(setup: Setup, matrix: Matrix, k: int) -> Any:
    """Return the memory of a matrix of set k as a flat tensor, without a copy.

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
