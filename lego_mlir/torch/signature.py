"""The arguments of a kernel as inputs and results of an operator, and their checks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from lego_mlir import runtime
from lego_mlir.artifact import Argument, Artifact, known_numbers
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, KernelSequence
from lego_mlir.hardware.dtypes import FLOATS
from lego_mlir.runtime.arrays import WRITES
from lego_mlir.runtime.extents import row_major
from lego_mlir.runtime.tensor_strides import TensorStrides, tensor_strides
from lego_mlir.torch import operators, tensors

Source = Kernel | KernelSequence | Artifact | str | os.PathLike[str]
"""What an operator launches: a kernel, an artifact, or the file of a bundle."""


@dataclass(frozen=True, eq=False)
class Signature:
    """The arguments of an operator.

    Attributes:
        name: of the operator, `namespace::name`.
        launch: launches the kernel on all of its arguments.
        arguments: of the kernel.
        inputs: the positions of those that are inputs.
        results: the positions of those that are results.
        mutated: the names of inputs that are written.
        memory: of each argument shape and strides in elements, `None` for numbers.
    """

    name: str
    launch: Callable[..., None]
    arguments: tuple[Argument, ...]
    inputs: tuple[int, ...]
    results: tuple[int, ...]
    mutated: tuple[str, ...]
    memory: tuple[TensorStrides | None, ...]

    @staticmethod
    def of(source: Source, name: str, mutates: Sequence[str]) -> Signature:
        """Return the signature of a kernel's operator.

        Raises:
            LegoError: it does not compile, it has no tensor as input, or no argument is called as
                one of `mutates`.
        """
        if isinstance(source, str | os.PathLike):
            source = Artifact.load(source)
        if isinstance(source, Artifact):
            artifact, launch = source, _launches_of(source)
        elif isinstance(source, Kernel | KernelSequence):
            device = runtime.select()
            is_checked = device.name == "sim"  # the variant that a call will need
            artifact = source.compile(device.target or DEFAULT_TARGET, check=is_checked)
            launch = source
        else:
            raise LegoError(
                f"{name}: {source!r} is neither a kernel nor a bundle",
                hint="pass a kernel of @lg.kernel, an lg.Artifact, or the path of a bundle",
            )
        arguments = artifact.arguments
        names = [a.name for a in arguments]
        for word in mutates:
            if word not in names:
                raise LegoError(
                    f"{name}: the kernel has no argument '{word}'",
                    hint=f"its arguments are: {', '.join(names)}",
                )
        results = tuple(
            i
            for i, a in enumerate(arguments)
            if a.shape is not None and a.access == "write" and a.name not in mutates
        )
        inputs = tuple(i for i in range(len(arguments)) if i not in results)
        if all(arguments[i].shape is None for i in inputs):
            raise LegoError(
                f"{name}: the kernel has no tensor as input, so nothing says on which device it "
                "runs",
                hint=f"make one an input: mutates=[{arguments[results[0]].name!r}]"
                if results
                else None,
            )
        mutated = tuple(
            arguments[i].name
            for i in inputs
            if arguments[i].shape is not None and arguments[i].access in WRITES
        )
        memory = tuple(map(_memory, arguments))
        return Signature(name, launch, arguments, inputs, results, mutated, memory)

    @property
    def schema(self) -> str:
        """The operator's schema, in PyTorch's syntax, without the namespace."""
        inputs = [self._declared(self.arguments[i], k) for k, i in enumerate(self.inputs)]
        outputs = ", ".join("Tensor" for _ in self.results)
        result = outputs if len(self.results) == 1 else f"({outputs})"
        return f"{self.name.partition('::')[2]}({', '.join(inputs)}) -> {result}"

    def _declared(self, argument: Argument, number: int) -> str:
        if argument.shape is None:
            kind = "float" if argument.dtype in FLOATS else "int"
            return f"{'bool' if argument.dtype == 'i1' else kind} {argument.name}"
        alias = f"({chr(ord('a') + number % 26)}{number // 26 or ''}!)"
        return f"Tensor{alias if argument.name in self.mutated else ''} {argument.name}"

    def empty(self, values: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        """Return memory for the results, after checking the inputs.

        Args:
            values: the inputs.

        Raises:
            LegoError: a tensor is not what the kernel takes; names it.
        """
        given = [
            (self.arguments[i].name, value, i)
            for i, value in zip(self.inputs, values, strict=True)
            if self.memory[i] is not None
        ]
        tensors.check_devices(self.name, [(name, value) for name, value, _ in given])
        for name, value, i in given:
            self._check(name, value, self.arguments[i], self.memory[i])
        device = given[0][1].device
        made = []
        for i in self.results:
            memory, dtype = self.memory[i], tensors.dtype_of(self.arguments[i].dtype)
            assert memory is not None
            strides = memory.strides
            made.append(torch.empty_strided(memory.shape, strides, dtype=dtype, device=device))
        return tuple(made)

    def _check(
        self, name: str, value: torch.Tensor, argument: Argument, memory: TensorStrides | None
    ) -> None:
        if not tensors.can_hold(value.dtype, argument.dtype):
            raise LegoError(
                f"{self.name}: '{name}' holds {tensors.dtype_of(argument.dtype)}, the tensor "
                f"{value.dtype}",
                hint=f"convert it: x.to({tensors.dtype_of(argument.dtype)})",
            )
        shape, buffer = tuple(value.shape), known_numbers(argument.shape or ())
        is_tensor = memory is not None and shape == memory.shape
        if is_tensor and memory is not None and memory.match(value.stride()):
            return
        if shape == buffer and value.is_contiguous():
            return
        if not is_tensor and shape != buffer:
            expected = list(buffer if memory is None else memory.shape)
            raise LegoError(
                f"{self.name}: '{name}' has the shape {expected}, the tensor {list(shape)}"
            )
        wanted = row_major(buffer) if memory is None or not is_tensor else memory.strides
        raise LegoError(
            f"{self.name}: '{name}' has the strides {list(wanted)}, the tensor "
            f"{list(value.stride())}",
            hint="torch.empty_strided(shape, strides).copy_(x) is a copy with these strides",
        )

    def compute(self, *values: Any) -> Any:
        """Launch the kernel on inputs, and return its results."""
        made = self.empty(values)
        every: list[Any] = [None] * len(self.arguments)
        for i, value in zip(self.inputs, values, strict=True):
            every[i] = value
        for i, result in zip(self.results, made, strict=True):
            every[i] = result
        at = next(i for i in self.inputs if self.memory[i] is not None)
        operators.launch_in_place(self.launch, every[at].device, every)
        return self._returned(made)

    def describe(self, *values: Any) -> Any:
        """Return tensors with shapes, strides and dtypes of the results."""
        return self._returned(self.empty(values))

    @staticmethod
    def _returned(made: tuple[torch.Tensor, ...]) -> Any:
        return made[0] if len(made) == 1 else made if made else None


def _launches_of(artifact: Artifact) -> Callable[..., None]:
    def launch(*arrays: Any, **options: Any) -> None:
        runtime.launch(artifact, *arrays, **options)

    return launch


def _memory(argument: Argument) -> TensorStrides | None:
    """Return shape and strides of an argument's tensor, of its buffer if it has no strides."""
    if argument.shape is None:
        return None
    found = tensor_strides(argument)
    shape = known_numbers(argument.shape)
    return found or TensorStrides(shape, row_major(shape))
