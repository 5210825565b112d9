"""Transposes and permutations of dimensions as operators of PyTorch: they move the elements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from lego_mlir import kernels
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, KernelChoice
from lego_mlir.torch import operators, tensors


def permute(x: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    """Return a row-major copy of a tensor with permuted dimensions: `x.permute(dims).contiguous()`.

    Args:
        x: of any strides; one whose elements have gaps is copied first.
        dims: dimension k of the result is dimension dims[k] of `x`.

    Raises:
        LegoError: the dimensions are no permutation, or kernels have no such dtype.
    """
    result: torch.Tensor = _permute(x, list(dims))
    return result


def transpose(x: torch.Tensor) -> torch.Tensor:
    """Return a row-major copy of the transpose of a matrix, or of each matrix of a batch.

    Args:
        x: [..., m, n].

    Returns:
        [..., n, m].

    Raises:
        LegoError: it is no matrix, or kernels have no such dtype.
    """
    result: torch.Tensor = _transpose(x)
    return result


def _described(x: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    """Return a tensor with the shape and dtype of the result, whose elements are undefined."""
    tensors.name_of(_bits(x.dtype), "permute")
    order = [d + x.dim() if d < 0 else d for d in dims]
    if sorted(order) != list(range(x.dim())):
        raise LegoError(
            f"permute: {list(dims)} is no permutation of the {x.dim()} dimensions of "
            f"{list(x.shape)}",
            hint="each dimension once, counted from 0, or from -1 backwards",
        )
    return x.new_empty([x.shape[d] for d in order])


def _computed(x: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    y = _described(x, dims)
    if y.numel() == 0 or x.dim() == 0:
        return y.copy_(x) if y.numel() else y
    x, order = tensors.dense(x), tuple(d % x.dim() for d in dims)
    bits = _bits(x.dtype)
    alignment = tensors.alignment_of(x, y)
    build = partial(_kernel, x.shape, x.stride(), order, bits, alignment)
    key = ("permute", x.shape, x.stride(), order, bits, alignment)
    operators.launch(key, build, x.view(bits), y.view(bits))
    return y


def _kernel(
    shape: torch.Size,
    strides: tuple[int, ...],
    order: tuple[int, ...],
    dtype: torch.dtype,
    alignment: int,
    target: str | None,
) -> Kernel | KernelChoice:
    """Return the kernel, which is the same for all targets."""
    return kernels.permute(
        shape,
        order,
        tensors.name_of(dtype, "permute"),
        a=tensors.layout_of(shape, strides),
        alignment=alignment,
    )


def _bits(dtype: torch.dtype) -> torch.dtype:
    """Return a dtype of kernels with elements as large; what they mean does not matter."""
    if dtype.is_complex or dtype.itemsize > 8:
        return dtype
    return {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]


def _remember(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.dims = inputs[1]


def _gradient(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
    """Return the gradient: that of the result, permuted back."""
    rank = len(ctx.dims)
    back = sorted(range(rank), key=lambda k: ctx.dims[k] % rank)
    return _permute(grad, back), None


def _swapped(x: torch.Tensor) -> list[int]:
    """Return the permutation that exchanges the last two dimensions."""
    if x.dim() < 2:
        raise LegoError(f"transpose: {list(x.shape)} is no matrix")
    return [*range(x.dim() - 2), x.dim() - 1, x.dim() - 2]


def _transpose_remember(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    """Remember nothing: the gradient is the transpose of the result's."""


def _transpose_gradient(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
    return transpose(grad)


_permute = operators.register(
    "permute(Tensor x, int[] dims) -> Tensor", _computed, _described, _gradient, _remember
)
_transpose = operators.register(
    "transpose(Tensor x) -> Tensor",
    lambda x: _computed(x, _swapped(x)),
    lambda x: _described(x, _swapped(x)),
    _transpose_gradient,
    _transpose_remember,
)
