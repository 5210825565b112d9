"""The arguments of a kernel as inputs and results of an operator, and their checks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from lego_mlir import runtime
from lego_mlir.artifact import Argument, Artifact, known_numbers
from lego_mlir.artifact.expressions import Leaf
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, KernelSequence
from lego_mlir.hardware.dtypes import FLOATS
from lego_mlir.runtime.arrays import WRITES
from lego_mlir.runtime.launch_sizes.extents import fixed_extents, row_major
from lego_mlir.runtime.launch_sizes.fitting import agrees, shape_text
from lego_mlir.runtime.launch_sizes.missing_sizes import following_shapes
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
        memory: of each argument shape and strides in elements, `None` for numbers, and where only
            the launch knows them.
        artifact: whose facts say which sizes follow from others.
    """

    name: str
    launch: Callable[..., None]
    arguments: tuple[Argument, ...]
    inputs: tuple[int, ...]
    results: tuple[int, ...]
    mutated: tuple[str, ...]
    memory: tuple[TensorStrides | None, ...]
    artifact: Artifact

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
            artifact = source.compile(
                device.target or DEFAULT_TARGET, check=is_checked, assemble=not is_checked
            )
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
        return Signature(name, launch, arguments, inputs, results, mutated, memory, artifact)

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
            if self.arguments[i].shape is not None
        ]
        tensors.check_devices(self.name, [(name, value) for name, value, _ in given])
        for name, value, i in given:
            self._check(name, value, self.arguments[i], self.memory[i])
        device = given[0][1].device
        made = []
        open_shapes: Sequence[tuple[int, ...]] = ()
        if any(self.memory[i] is None for i in self.results):
            open_shapes = self._shapes(values)
        for i in self.results:
            memory, dtype = self.memory[i], tensors.dtype_of(self.arguments[i].dtype)
            if memory is None:
                made.append(torch.empty(open_shapes[i], dtype=dtype, device=device))
            else:
                strides = memory.strides
                made.append(torch.empty_strided(memory.shape, strides, dtype=dtype, device=device))
        return tuple(made)

    def _shapes(self, values: Sequence[Any]) -> Sequence[tuple[int, ...]]:
        """Return the shapes of all tensors, which follow from those of the inputs.

        Raises:
            LegoError: that of a result does not.
        """
        sizes: dict[Leaf, int] = {}
        for i, value in zip(self.inputs, values, strict=True):
            if isinstance(value, torch.Tensor):
                sizes |= {Leaf(i, "size", dim): n for dim, n in enumerate(value.shape)}
            elif isinstance(value, int):
                sizes[Leaf(i)] = value
        try:
            return following_shapes(self.artifact, sizes)
        except LegoError as e:
            raise LegoError(
                f"{self.name}: {e.message}", hint="make it an input: mutates=[...]"
            ) from None

    def _check(
        self, name: str, value: torch.Tensor, argument: Argument, memory: TensorStrides | None
    ) -> None:
        if not tensors.can_hold(value.dtype, argument.dtype):
            raise LegoError(
                f"{self.name}: '{name}' holds {tensors.dtype_of(argument.dtype)}, the tensor "
                f"{value.dtype}",
                hint=f"convert it: x.to({tensors.dtype_of(argument.dtype)})",
            )
        shape = tuple(value.shape)
        if memory is None:
            self._check_open(name, value, argument)
            return
        buffer = known_numbers(argument.shape or ())
        is_tensor = shape == memory.shape
        if is_tensor and memory.match(value.stride()):
            return
        if shape == buffer and value.is_contiguous():
            return
        if not is_tensor and shape != buffer:
            expected = list(memory.shape)
            raise LegoError(
                f"{self.name}: '{name}' has the shape {expected}, the tensor {list(shape)}"
            )
        wanted = memory.strides if is_tensor else row_major(buffer)
        raise LegoError(
            f"{self.name}: '{name}' has the strides {list(wanted)}, the tensor "
            f"{list(value.stride())}",
            hint="torch.empty_strided(shape, strides).copy_(x) is a copy with these strides",
        )

    def _check_open(self, name: str, value: torch.Tensor, argument: Argument) -> None:
        """Check shape and strides of a tensor, as far as they are not left to the launch."""
        shape, wanted = list(value.shape), argument.shape or ()
        if not agrees(shape, wanted):
            shown = shape_text(wanted)
            raise LegoError(f"{self.name}: '{name}' has the shape {shown}, the tensor {shape}")
        steps = argument.strides
        if not (value.is_contiguous() if steps is None else agrees(value.stride(), steps)):
            shown = "is row-major" if steps is None else f"has the strides {shape_text(steps)}"
            raise LegoError(
                f"{self.name}: '{name}' {shown}, the tensor has the strides {list(value.stride())}",
                hint="x.contiguous() is such a tensor",
            )

    def compute(self, *values: Any) -> Any:
        """Launch the kernel on inputs, and return its results."""
        made = self.empty(values)
        every: list[Any] = [None] * len(self.arguments)
        for i, value in zip(self.inputs, values, strict=True):
            every[i] = value
        for i, result in zip(self.results, made, strict=True):
            every[i] = result
        at = next(i for i in self.inputs if self.arguments[i].shape is not None)
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
    if argument.shape is None or fixed_extents(argument) is None:
        return None
    found = tensor_strides(argument)
    shape = known_numbers(argument.shape)
    return found or TensorStrides(shape, row_major(shape))
