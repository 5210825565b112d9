"""PyTorch's dtypes and strides as ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from lego_mlir.algebra import Layout, from_strides
from lego_mlir.diagnostics import LegoError

ALIGNMENT = 16
"""Bytes that the address of a tensor is a multiple of, where a kernel can use it."""

_NAMES = {
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float8_e4m3fn: "f8E4M3FN",
    torch.float8_e5m2: "f8E5M2",
    torch.bool: "i1",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
}
_UNSIGNED = {torch.uint8: "i8", torch.uint16: "i16", torch.uint32: "i32", torch.uint64: "i64"}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()} | {
    "index": torch.int64,
    **{f"{sign}i{8 * n}": dtype for sign, kinds in (
        ("s", (torch.int8, torch.int16, torch.int32, torch.int64)),
        ("u", (torch.uint8, torch.uint16, torch.uint32, torch.uint64)),
    ) for n, dtype in zip((1, 2, 4, 8), kinds, strict=True)},
}  # fmt: skip


def name_of(dtype: torch.dtype, what: str) -> str:
    """Return MLIR's name of a dtype.

    Args:
        dtype: the dtype.
        what: whose it is, for the message.

    Raises:
        LegoError: kernels have no such element type.
    """
    if dtype not in _NAMES:
        raise LegoError(
            f"{what}: no kernel takes elements of {dtype}",
            hint=f"one of {', '.join(str(d).removeprefix('torch.') for d in _NAMES)}",
        )
    return _NAMES[dtype]


def dtype_of(name: str) -> torch.dtype:
    """Return the dtype of tensors that hold an MLIR element type."""
    return _DTYPES[name]


def can_hold(dtype: torch.dtype, name: str) -> bool:
    """Return whether tensors of a dtype hold an MLIR element type; `i32` has no sign there."""
    return dtype == _DTYPES[name] or _UNSIGNED.get(dtype) == name


def is_dense(tensor: torch.Tensor) -> bool:
    """Return whether the elements of a tensor lie without gaps, in any order of dimensions."""
    expected = 1
    sizes = zip(tensor.stride(), tensor.shape, strict=True)
    for stride, size in sorted((s, n) for s, n in sizes if n != 1):
        if stride != expected:
            return False
        expected *= size
    return True


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor whose elements lie without gaps: itself, or a row-major copy.

    Views that are negated when they are read are copied as well.
    """
    if tensor.is_neg() or not is_dense(tensor):
        return tensor.clone(memory_format=torch.contiguous_format)
    return tensor


def layout_of(shape: Sequence[int], strides: Sequence[int]) -> Layout | None:
    """Return the layout of a dense tensor; `None` if it is row-major, or has no elements.

    Args:
        shape: its sizes.
        strides: in elements.
    """
    if 0 in shape:
        return None
    expected = 1
    is_row_major = True
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        is_row_major &= n == 1 or stride == expected
        expected *= n
    return None if is_row_major else from_strides(tuple(shape), tuple(strides))


def alignment_of(*tensors: torch.Tensor) -> int:
    """Return the bytes that all addresses are a multiple of: a power of two up to `ALIGNMENT`."""
    found = ALIGNMENT
    for tensor in tensors:
        found |= tensor.data_ptr() & (ALIGNMENT - 1)
    return found & -found


def aligned(tensor: torch.Tensor) -> torch.Tensor:
    """Return a dense tensor at a multiple of `ALIGNMENT` bytes: itself, or a copy."""
    tensor = dense(tensor)
    return tensor if alignment_of(tensor) == ALIGNMENT else tensor.clone()


def check_devices(what: str, tensors: Sequence[tuple[str, Any]]) -> None:
    """Check that tensors are on one device.

    Args:
        what: the operator, for the message.
        tensors: with their names.

    Raises:
        LegoError: they are not; names them.
    """
    if len({tensor.device for _, tensor in tensors}) > 1:
        listed = ", ".join(f"'{name}' on {tensor.device}" for name, tensor in tensors)
        raise LegoError(
            f"{what}: the tensors live on different devices: {listed}",
            hint="move them to one device: x.to(...)",
        )
