"""Grouped GEMM and ragged grouped GEMM as operators of PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from lego_mlir import kernels
from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel
from lego_mlir.torch import operators, tensors
from lego_mlir.torch.gemm import check_differentiable, product_dtype


def grouped_matmul(
    a: Sequence[torch.Tensor],
    b: Sequence[torch.Tensor],
    *,
    out_dtype: torch.dtype | None = None,
) -> list[torch.Tensor]:
    """Return the matrix products of pairs of matrices of any sizes, computed in one launch.

    Args:
        a: matrices [m, k], row-major or column-major; copied where they are not like the first.
        b: matrices [k, n], likewise.
        out_dtype: as in `matmul`.

    Returns:
        A matrix [m, n] for each pair.

    Raises:
        LegoError: shapes, dtypes or devices do not fit.
    """
    found: list[torch.Tensor] = _grouped(list(a), list(b), out_dtype=out_dtype)
    return found


def ragged_matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    offsets: torch.Tensor,
    *,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Return A's rows, each group of them multiplied by its own matrix (mixture of experts).

    Args:
        a: [m, k].
        b: [groups, k, n].
        offsets: [groups] of int32: group g has the rows from offsets[g - 1], or 0, up to
            offsets[g], exclusive. They do not decrease and are at most m, which is not checked.
        out_dtype: as in `matmul`.

    Returns:
        [m, n]; rows after the last group are zeros.

    Raises:
        LegoError: shapes, dtypes or devices do not fit.
    """
    found: torch.Tensor = _ragged(a, b, offsets, out_dtype=out_dtype)
    return found


# Grouped.
def _grouped_described(
    a: Sequence[torch.Tensor], b: Sequence[torch.Tensor], *, out_dtype: torch.dtype | None = None
) -> list[torch.Tensor]:
    """Return tensors with shapes and dtypes of the products."""
    what = "grouped_matmul"
    if len(a) != len(b) or not a:
        raise LegoError(f"{what}: {len(a)} matrices a for {len(b)} matrices b")
    named = [(f"{name}[{i}]", x) for name, xs in (("a", a), ("b", b)) for i, x in enumerate(xs)]
    tensors.check_devices(what, named)
    found = []
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if x.dim() != 2 or y.dim() != 2 or x.shape[1] != y.shape[0]:
            raise LegoError(
                f"{what}: a[{i}] and b[{i}] are [m, k] and [k, n], not {list(x.shape)} and "
                f"{list(y.shape)}"
            )
        if x.dtype != a[0].dtype:
            raise LegoError(f"{what}: a[{i}] holds {x.dtype}, and a[0] {a[0].dtype}")
        dtype = product_dtype(what, x, y, out_dtype)
        found.append(x.new_empty((x.shape[0], y.shape[1]), dtype=dtype))
    return found


def _grouped_computed(
    a: Sequence[torch.Tensor], b: Sequence[torch.Tensor], *, out_dtype: torch.dtype | None = None
) -> list[torch.Tensor]:
    found = _grouped_described(a, b, out_dtype=out_dtype)
    # A GEMM without iterations is zeros, and the kernel takes none.
    ids = [i for i, c in enumerate(found) if c.numel() and a[i].shape[1]]
    for i in set(range(len(found))) - set(ids):
        found[i].zero_()
    if not ids:
        return found
    is_column_major = [_is_column_major(xs[ids[0]]) for xs in (a, b)]
    pairs = [
        [_in_order(xs[i], by_column) for xs, by_column in zip((a, b), is_column_major, strict=True)]
        for i in ids
    ]
    shapes = tuple((*x.shape, y.shape[1]) for x, y in pairs)
    dtypes = a[0].dtype, found[0].dtype
    build = partial(_grouped_kernel, shapes, (is_column_major[0], is_column_major[1]), dtypes)
    every = [t for (x, y), i in zip(pairs, ids, strict=True) for t in (x, y, found[i])]
    operators.launch(("grouped", shapes, *is_column_major, *dtypes), build, *every)
    return found


def _is_column_major(x: torch.Tensor) -> bool:
    return bool(x.stride(0) == 1 and x.stride(1) == x.shape[0] and x.shape[1] > 1)


def _in_order(x: torch.Tensor, by_column: bool) -> torch.Tensor:
    """Return a matrix row-major or column-major, and aligned: itself, or a copy."""
    x = x.t().contiguous().t() if by_column else x.contiguous()
    return tensors.aligned(x)


def _grouped_kernel(
    shapes: Sequence[tuple[int, int, int]],
    is_column_major: tuple[bool, bool],
    dtypes: tuple[torch.dtype, torch.dtype],
    target: str | None,
) -> Kernel:
    """Return the kernel; `shapes` are (m, k, n)."""

    def layouts(sizes: Sequence[tuple[int, int]], by_column: bool) -> list[Layout] | None:
        if not by_column:
            return None
        return [
            tensors.layout_of((rows, columns), (1, rows)) or OrderBy(Row(rows, columns))
            for rows, columns in sizes
        ]

    dtype, out = (tensors.name_of(dtype, "grouped_matmul") for dtype in dtypes)
    return kernels.grouped_matmul(
        [(m, n, k) for m, k, n in shapes],
        dtype,
        out=out,
        a=layouts([(m, k) for m, k, _ in shapes], is_column_major[0]),
        b=layouts([(k, n) for _, k, n in shapes], is_column_major[1]),
        target=target,
    )


def _grouped_remember(
    ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: Any, output: list[torch.Tensor]
) -> None:
    ctx.save_for_backward(*inputs[0], *inputs[1])


def _grouped_gradients(
    ctx: Any, grads: Sequence[torch.Tensor]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return the gradients of all matrices, in two launches."""
    saved = ctx.saved_tensors
    a, b = saved[: len(saved) // 2], saved[len(saved) // 2 :]
    dtype = a[0].dtype
    check_differentiable("grouped_matmul", dtype)
    grads = [grad.to(dtype) for grad in grads]
    return (
        _grouped(grads, [x.mT for x in b], out_dtype=dtype),
        _grouped([x.mT for x in a], grads, out_dtype=dtype),
    )


# Ragged.
def _ragged_described(
    a: torch.Tensor,
    b: torch.Tensor,
    offsets: torch.Tensor,
    *,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Return a tensor with shape and dtype of the result."""
    what = "ragged_matmul"
    tensors.check_devices(what, [("a", a), ("b", b), ("offsets", offsets)])
    if a.dim() != 2 or b.dim() != 3 or a.shape[1] != b.shape[1]:
        raise LegoError(
            f"{what}: a and b are [m, k] and [groups, k, n], not {list(a.shape)} and "
            f"{list(b.shape)}"
        )
    if offsets.shape != b.shape[:1] or offsets.dtype != torch.int32:
        raise LegoError(
            f"{what}: the offsets are [{b.shape[0]}] of torch.int32, not {list(offsets.shape)} of "
            f"{offsets.dtype}"
        )
    dtype = product_dtype(what, a, b, out_dtype)
    return a.new_empty((a.shape[0], b.shape[2]), dtype=dtype)


def _ragged_computed(
    a: torch.Tensor,
    b: torch.Tensor,
    offsets: torch.Tensor,
    *,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    c = _ragged_described(a, b, offsets, out_dtype=out_dtype).zero_()
    if not (c.numel() and b.numel()):
        return c
    a, b = tensors.aligned(a), tensors.aligned(b)
    shapes = (a.shape, a.stride(), b.shape, b.stride())
    build = partial(_ragged_kernel, *shapes, (a.dtype, c.dtype))
    key = ("ragged", *shapes, a.dtype, c.dtype)
    operators.launch(key, build, a, b, c, tensors.aligned(offsets))
    return c


def _ragged_kernel(
    a: torch.Size,
    strides_a: tuple[int, ...],
    b: torch.Size,
    strides_b: tuple[int, ...],
    dtypes: tuple[torch.dtype, torch.dtype],
    target: str | None,
) -> Kernel:
    """Return the kernel for matrices with these shapes and strides."""
    groups, k, n = b
    dtype, out = (tensors.name_of(dtype, "ragged_matmul") for dtype in dtypes)
    return kernels.ragged_matmul(
        a[0],
        n,
        k,
        groups,
        dtype,
        out=out,
        a=tensors.layout_of(a, strides_a),
        b=tensors.layout_of(b, strides_b),
        target=target,
    )


def _ragged_remember(
    ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: Any, output: torch.Tensor
) -> None:
    ctx.save_for_backward(*inputs[:3])


def _ragged_gradients(
    ctx: Any, grad: torch.Tensor
) -> tuple[torch.Tensor | None, torch.Tensor | None, None]:
    """Return the gradients of A and B.

    That of A is grad, each group of rows multiplied by the transpose of its B; that of each matrix
    of B is the transpose of its rows of A, multiplied by those of grad.
    """
    a, b, offsets = ctx.saved_tensors
    check_differentiable("ragged_matmul", a.dtype)
    grad = grad.to(a.dtype)
    for_a, for_b, *_ = ctx.needs_input_grad
    return (
        _ragged(grad, b.mT, offsets, out_dtype=a.dtype) if for_a else None,
        _ragged_k(a, grad, offsets) if for_b else None,
        None,
    )


# The gradient of the matrices of ragged GEMM.
def _ragged_k_described(a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Return a tensor with shape and dtype of the result."""
    return a.new_empty((offsets.shape[0], a.shape[1], b.shape[1]))


def _ragged_k_computed(a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    c = _ragged_k_described(a, b, offsets)
    if not (c.numel() and a.shape[0]):
        return c.zero_()
    a, b = tensors.aligned(a.contiguous()), tensors.aligned(b.contiguous())
    build = partial(_ragged_k_kernel, a.shape, b.shape[1], offsets.shape[0], a.dtype)
    key = ("ragged_k", a.shape, b.shape, offsets.shape, a.dtype)
    operators.launch(key, build, a, b, c, tensors.aligned(offsets))
    return c


def _ragged_k_kernel(
    a: torch.Size, n: int, groups: int, dtype: torch.dtype, target: str | None
) -> Kernel:
    name = tensors.name_of(dtype, "ragged_matmul")
    return kernels.ragged_k_matmul(a[0], n, a[1], groups, name, target=target)


_grouped = operators.register(
    "grouped_matmul(Tensor[] a, Tensor[] b, *, ScalarType? out_dtype=None) -> Tensor[]",
    _grouped_computed,
    _grouped_described,
    _grouped_gradients,
    _grouped_remember,
)
_ragged = operators.register(
    "ragged_matmul(Tensor a, Tensor b, Tensor offsets, *, ScalarType? out_dtype=None) -> Tensor",
    _ragged_computed,
    _ragged_described,
    _ragged_gradients,
    _ragged_remember,
)
_ragged_k = operators.register(
    "ragged_k_matmul(Tensor a, Tensor b, Tensor offsets) -> Tensor",
    _ragged_k_computed,
    _ragged_k_described,
)
