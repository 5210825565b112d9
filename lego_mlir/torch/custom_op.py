"""Any kernel or bundle as an operator of PyTorch.

    scale = custom_op("mine::scale", kernel)      # kernel(x, y, alpha): reads x, writes y
    y = scale(x, 0.5)

Tensors that the kernel only writes are results, those that it reads are inputs, and those that it
reads and writes are inputs that it changes. Numbers are inputs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from lego_mlir.artifact import Argument, Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, KernelSequence
from lego_mlir.runtime.tensor_strides import TensorStrides
from lego_mlir.torch import operators
from lego_mlir.torch.signature import Signature, Source

GRADIENT = "grad_"
"""What the names of gradients begin with."""

_libraries: dict[str, torch.library.Library] = {}


def custom_op(
    name: str,
    kernel: Source,
    *,
    mutates: Sequence[str] = (),
    backward: Source | Sequence[Source] = (),
) -> Callable[..., Any]:
    """Register a kernel as an operator of PyTorch, and return it.

    The operator works under `torch.compile(fullgraph=True)` and in CUDA graphs. It runs on
    PyTorch's current stream, and in the simulator if its tensors are in host memory.

    Args:
        name: `namespace::name`.
        kernel: the kernel, or the bundle. Its arguments are the operator's, in order, without
            those that are results.
        mutates: arguments which the kernel only writes and which are inputs all the same, because
            it does not write every element or the caller has the memory.
        backward: kernels that compute gradients. Their arguments have the names of the inputs and
            results of `kernel`, or `grad_NAME`: of a result NAME it is read, of an input NAME it is
            written.

    Returns:
        The operator. It returns a tensor, a tuple of tensors, or None, as the kernel has results.

    Raises:
        LegoError: the name or the kernel cannot be an operator, or the arguments of a backward
            kernel are not those of `kernel`.
    """
    if not re.fullmatch(r"[A-Za-z_]\w*::[A-Za-z_]\w*", name, re.ASCII):
        raise LegoError(f"'{name}' is not a name of an operator", hint='such as "mine::scale"')
    signature = Signature.of(kernel, name, mutates)
    one = isinstance(backward, Kernel | KernelSequence | Artifact | str | os.PathLike)
    sources: Sequence[Any] = [backward] if one else list(backward)  # type: ignore[arg-type]
    steps = []
    if sources and signature.mutated:
        raise LegoError(
            f"{name}: it changes {', '.join(signature.mutated)}, and has no gradient therefore",
            hint="leave out backward, or write a result instead",
        )
    for number, source in enumerate(sources):
        step = Signature.of(source, f"{name}_backward{number or ''}", ())
        _check_backward(signature, step)
        steps.append(step)
    gradient = _Gradient(signature, [(step, _registered(step)) for step in steps])
    operator: Callable[..., Any] = _registered(signature, gradient if steps else None)
    return operator


def _registered(signature: Signature, gradient: _Gradient | None = None) -> Any:
    """Register an operator, and return it."""
    namespace = signature.name.partition("::")[0]
    if namespace not in _libraries:
        _libraries[namespace] = torch.library.Library(namespace, "FRAGMENT")
    if hasattr(getattr(torch.ops, namespace), signature.name.partition("::")[2]):
        raise LegoError(
            f"there is an operator '{signature.name}' already", hint="give this one another name"
        )
    return operators.register_in(
        _libraries[namespace],
        namespace,
        signature.schema,
        signature.compute,
        signature.describe,
        None if gradient is None else gradient.compute,
        None if gradient is None else gradient.remember,
    )


def _check_backward(forward: Signature, backward: Signature) -> None:
    """Check that the arguments of a backward kernel are those of the forward one.

    Raises:
        LegoError: one has another name, or there is no gradient of it.
    """
    known = {a.name for a in forward.arguments}
    gradients = {f"{GRADIENT}{forward.arguments[i].name}" for i in forward.results}
    wanted = {
        f"{GRADIENT}{forward.arguments[i].name}"
        for i in forward.inputs
        if forward.arguments[i].shape is not None
    }
    for i in backward.inputs:
        name = backward.arguments[i].name
        if name not in known | gradients or name in backward.mutated:
            raise LegoError(
                f"{backward.name}: the argument '{name}' is neither one of {forward.name} nor the "
                "gradient of a result",
                hint=f"arguments that are read: {', '.join(sorted(known | gradients))}",
            )
    for i in backward.results:
        if backward.arguments[i].name not in wanted:
            raise LegoError(
                f"{backward.name}: it writes '{backward.arguments[i].name}', which is not the "
                f"gradient of an input of {forward.name}",
                hint=f"gradients: {', '.join(sorted(wanted))}",
            )


@dataclass(frozen=True, eq=False)
class _Gradient:
    """The gradients of an operator.

    Attributes:
        forward: the operator.
        steps: the operators that compute them.
    """

    forward: Signature
    steps: Sequence[tuple[Signature, Any]]

    def remember(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what the backward kernels read."""
        results = output if isinstance(output, tuple) else (output,)
        forward = self.forward
        values = {forward.arguments[i].name: x for i, x in zip(forward.inputs, inputs, strict=True)}
        values |= {
            forward.arguments[i].name: x for i, x in zip(forward.results, results, strict=True)
        }
        read = {s.arguments[i].name for s, _ in self.steps for i in s.inputs}
        ctx.names = [n for n, x in values.items() if n in read and isinstance(x, torch.Tensor)]
        ctx.numbers = {n: x for n, x in values.items() if not isinstance(x, torch.Tensor)}
        ctx.save_for_backward(*(values[n] for n in ctx.names))

    def compute(self, ctx: Any, *grads: Any) -> tuple[Any, ...]:
        """Return the gradient of each input, by those kernels whose results are needed."""
        forward = self.forward
        values = {**ctx.numbers, **dict(zip(ctx.names, ctx.saved_tensors, strict=True))}
        for i, grad in zip(forward.results, grads, strict=True):
            values[f"{GRADIENT}{forward.arguments[i].name}"] = grad
        needed = [
            f"{GRADIENT}{forward.arguments[i].name}"
            for i, is_needed in zip(forward.inputs, ctx.needs_input_grad, strict=True)
            if is_needed
        ]
        found: dict[str, torch.Tensor] = {}
        for step, operator in self.steps:
            names = [step.arguments[i].name for i in step.results]
            if not set(names) & set(needed):
                continue
            given = [
                _as_taken(values[step.arguments[i].name], step.arguments[i], step.memory[i])
                for i in step.inputs
            ]
            result = operator(*given)
            found |= zip(names, result if isinstance(result, tuple) else (result,), strict=True)
        for name in needed:
            if name not in found:
                raise LegoError(
                    f"{forward.name}: no backward kernel writes '{name}'",
                    hint="give one, or pass the input as x.detach()",
                )
        return tuple(
            found.get(f"{GRADIENT}{forward.arguments[i].name}")
            if f"{GRADIENT}{forward.arguments[i].name}" in needed
            else None
            for i in forward.inputs
        )


def _as_taken(value: Any, argument: Argument, memory: TensorStrides | None) -> Any:
    """Return a tensor with the strides that a kernel takes: itself, or a copy."""
    if not isinstance(value, torch.Tensor) or argument.shape is None:
        return value
    if memory is None:  # the launch knows its sizes
        return value.contiguous() if argument.strides is None else value
    if value.shape != memory.shape or memory.match(value.stride()):
        return value
    return torch.empty_strided(
        memory.shape, memory.strides, dtype=value.dtype, device=value.device
    ).copy_(value)
