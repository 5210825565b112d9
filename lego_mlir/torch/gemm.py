"""GEMM as an operator of PyTorch, with its gradients, and linear layers."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from lego_mlir import kernels
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, KernelChoice, KernelSequence, TensorType, Value
from lego_mlir.kernels.gemm.arguments import check_types
from lego_mlir.torch import operators, tensors

_DIFFERENTIABLE = (torch.float16, torch.bfloat16)


def matmul(
    a: torch.Tensor, b: torch.Tensor, *, out_dtype: torch.dtype | None = None
) -> torch.Tensor:
    """Return the matrix product of tensors, by tensor cores; accumulators are f32, or i32.

    Matrices may lie row-major, column-major, or in any other order without gaps; others are copied
    first. The product is row-major. It has gradients for float16 and bfloat16.

    Args:
        a: [..., m, k]: float16, bfloat16, float8_e4m3fn, float8_e5m2 or int8.
        b: [k, n], or [..., k, n] with the leading dimensions of `a`.
        out_dtype: of the product; by default that of `a`, float16 for 8-bit floats, int32 for int8.

    Returns:
        [..., m, n].

    Raises:
        LegoError: shapes, dtypes or devices do not fit.
    """
    if a.dim() < 2 or b.dim() < 2 or b.shape[:-2] not in ((), a.shape[:-2]):
        raise LegoError(
            f"matmul: the shapes {list(a.shape)} and {list(b.shape)} are not [..., m, k] and "
            "[k, n], or [..., k, n] with the same leading dimensions",
            hint="x.expand(...) repeats a matrix along new dimensions",
        )
    lead = a.shape[:-1] if b.dim() == 2 else a.shape[:-2]
    if a.dim() > 2 and b.dim() == 2:
        a = a.reshape(-1, a.shape[-1])
    elif a.dim() > 3:
        a, b = a.flatten(0, -3), b.flatten(0, -3)
    product: torch.Tensor = _matmul(a, b, out_dtype=out_dtype)
    if b.dim() == 2:
        return product.reshape(*lead, product.shape[-1])
    return product.reshape(*lead, *product.shape[-2:])


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Return `x weight.T + bias`, as `torch.nn.functional.linear` does, in one kernel.

    Args:
        x: [..., k]: float16 or bfloat16.
        weight: [n, k].
        bias: [n].

    Returns:
        [..., n].

    Raises:
        LegoError: shapes, dtypes or devices do not fit.
    """
    if weight.dim() != 2 or x.dim() < 1 or (bias is not None and bias.dim() != 1):
        raise LegoError(
            f"linear: x, weight and bias are [..., k], [n, k] and [n], not {list(x.shape)}, "
            f"{list(weight.shape)}" + ("" if bias is None else f" and {list(bias.shape)}")
        )
    rows = x.reshape(-1, x.shape[-1])
    found = _matmul(rows, weight.t()) if bias is None else _biased(rows, weight.t(), bias)
    result: torch.Tensor = found.reshape(*x.shape[:-1], weight.shape[0])
    return result


class Linear(torch.nn.Linear):
    """A linear layer of PyTorch's that computes with `lego_mlir.torch.linear`."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002, PyTorch's name
        """Return `linear(input, self.weight, self.bias)`."""
        return linear(input, self.weight, self.bias)


def product_dtype(
    what: str, a: torch.Tensor, b: torch.Tensor, out_dtype: torch.dtype | None
) -> torch.dtype:
    """Return the dtype of a product, after checking those of the matrices.

    Args:
        what: the operator, for messages.
        a: the first matrix.
        b: the second one.
        out_dtype: what the caller asks for.

    Raises:
        LegoError: there is no such GEMM.
    """
    if a.dtype != b.dtype:
        raise LegoError(
            f"{what}: a holds {a.dtype} and b {b.dtype}",
            hint="both have one dtype: b.to(a.dtype)",
        )
    name = tensors.name_of(a.dtype, what)
    out = None if out_dtype is None else tensors.name_of(out_dtype, what)
    return tensors.dtype_of(check_types(what, name, out, DEFAULT_TARGET, 0)[1])


def _described(
    a: torch.Tensor, b: torch.Tensor, *, out_dtype: torch.dtype | None = None
) -> torch.Tensor:
    """Return a tensor with shape and dtype of the product, whose elements are undefined."""
    tensors.check_devices("matmul", [("a", a), ("b", b)])
    if a.dim() != b.dim() or a.dim() not in (2, 3) or a.shape[:-2] != b.shape[:-2]:
        raise LegoError(
            f"matmul: a and b are both matrices, or batches of as many, not {list(a.shape)} and "
            f"{list(b.shape)}"
        )
    if a.shape[-1] != b.shape[-2]:
        raise LegoError(
            f"matmul: a has {a.shape[-1]} columns and b {b.shape[-2]} rows: {list(a.shape)} times "
            f"{list(b.shape)}"
        )
    dtype = product_dtype("matmul", a, b, out_dtype)
    return a.new_empty((*a.shape[:-1], b.shape[-1]), dtype=dtype)


def _computed(
    a: torch.Tensor, b: torch.Tensor, *, out_dtype: torch.dtype | None = None
) -> torch.Tensor:
    c = _described(a, b, out_dtype=out_dtype)
    if c.numel() == 0:
        return c
    a, b = tensors.dense(a), tensors.dense(b)
    alignment = tensors.alignment_of(a, b, c)
    shapes = (a.shape, a.stride(), b.shape, b.stride())
    build = partial(_kernel, *shapes, (a.dtype, c.dtype), alignment, has_bias=False)
    operators.launch(("matmul", *shapes, a.dtype, c.dtype, alignment), build, a, b, c)
    return c


def _kernel(
    a: torch.Size,
    strides_a: tuple[int, ...],
    b: torch.Size,
    strides_b: tuple[int, ...],
    dtypes: tuple[torch.dtype, torch.dtype],
    alignment: int,
    target: str | None,
    *,
    has_bias: bool,
) -> Kernel | KernelSequence | KernelChoice:
    """Return the kernel of a GEMM of matrices with these shapes and strides."""
    (*batch, m, k), n = a, b[-1]
    dtype, out = (tensors.name_of(dtype, "matmul") for dtype in dtypes)
    bias = {"bias": TensorType(out, OrderBy(Row(n)))} if has_bias else None
    return kernels.matmul(
        m,
        n,
        k,
        dtype,
        out=out,
        a=tensors.layout_of(a, strides_a),
        b=tensors.layout_of(b, strides_b),
        batch=batch[0] if batch else None,
        epilogue=_add_bias if has_bias else None,
        operands=bias,
        target=target,
        alignment=alignment,
    )


def _add_bias(total: Value, bias: Value) -> Value:
    return total + bias.to("f32")


def _remember(
    ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: Any, output: torch.Tensor
) -> None:
    ctx.save_for_backward(*inputs)


def _gradients(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    """Return the gradients of A and B: grad Bᵀ and Aᵀ grad."""
    a, b = ctx.saved_tensors
    check_differentiable("matmul", a.dtype)
    grad = grad.to(a.dtype)
    needs_a, needs_b = ctx.needs_input_grad
    return (
        _matmul(grad, b.mT, out_dtype=a.dtype) if needs_a else None,
        _matmul(a.mT, grad, out_dtype=b.dtype) if needs_b else None,
    )


def check_differentiable(what: str, dtype: torch.dtype) -> None:
    """Check that a GEMM has gradients.

    Raises:
        LegoError: it has none for this dtype of A and B.
    """
    if dtype not in _DIFFERENTIABLE:
        raise LegoError(
            f"{what}: no gradient for matrices of {dtype}",
            hint="it is there for float16 and bfloat16; elsewhere pass x.detach()",
        )


def _biased_described(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return a tensor with shape and dtype of x weight + bias."""
    tensors.check_devices("linear", [("x", x), ("weight", weight), ("bias", bias)])
    found = _described(x, weight)
    if bias.shape != found.shape[-1:] or bias.dtype != found.dtype:
        raise LegoError(
            f"linear: the bias is [{found.shape[-1]}] of {found.dtype}, not {list(bias.shape)} of "
            f"{bias.dtype}"
        )
    return found


def _biased_computed(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    c = _biased_described(x, weight, bias)
    if c.numel() == 0:
        return c
    x, weight, bias = map(tensors.dense, (x, weight, bias))
    alignment = tensors.alignment_of(x, weight, c)
    shapes = (x.shape, x.stride(), weight.shape, weight.stride())
    build = partial(_kernel, *shapes, (x.dtype, c.dtype), alignment, has_bias=True)
    operators.launch(
        ("linear", *shapes, x.dtype, alignment), build, x, weight, c, tensors.aligned(bias)
    )
    return c


def _biased_remember(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])


def _biased_gradients(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    """Return the gradients of x, of the weight, and of the bias, the sum of the rows of grad."""
    x, weight = ctx.saved_tensors
    check_differentiable("linear", x.dtype)
    needs_x, needs_weight, needs_bias = ctx.needs_input_grad
    return (
        _matmul(grad, weight.mT, out_dtype=x.dtype) if needs_x else None,
        _matmul(x.mT, grad, out_dtype=weight.dtype) if needs_weight else None,
        grad.sum(0) if needs_bias else None,
    )


_matmul = operators.register(
    "matmul(Tensor a, Tensor b, *, ScalarType? out_dtype=None) -> Tensor",
    _computed,
    _described,
    _gradients,
    _remember,
)
_biased = operators.register(
    "linear(Tensor x, Tensor weight, Tensor bias) -> Tensor",
    _biased_computed,
    _biased_described,
    _biased_gradients,
    _biased_remember,
)
