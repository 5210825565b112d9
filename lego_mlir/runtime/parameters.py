"""From the host function's arguments to the kernels' parameters.

The driver takes an array of pointers to parameters on trust: one too few, or one too short, and it
reads past its end. So they are checked against the PTX before any launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lego_mlir.artifact import (
    Argument,
    Computed,
    Constant,
    KernelLaunch,
    TensorMapParameter,
    TensorMapParameters,
    Workspace,
    WorkspaceIndex,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import TENSOR_MAP_BYTES
from lego_mlir.runtime import dtypes

Value = Any  # a NumPy scalar, or whatever stands for a pointer: an array, an address

_POINTER_BYTES = 8


def check_machine_code(kernel: str, handle: int, sizes: Sequence[int]) -> None:
    """Check that a loaded kernel has the parameters that its PTX declares.

    Machine code may come from a stranger, and nothing but the driver reads it. Of a kernel with
    more or larger parameters than the PTX says, a launch would read past the end of what it passes.

    Args:
        kernel: the kernel's name.
        handle: the driver's handle of the loaded kernel, a `CUkernel`.
        sizes: the bytes of each parameter in the PTX.

    Raises:
        LegoError: they differ.
    """
    from cuda.bindings import driver

    found: list[int] = []
    for number in range(len(sizes) + 1):  # one more than there should be is an error of the driver
        result, _, size = driver.cuKernelGetParamInfo(handle, number)
        if result != driver.CUresult.CUDA_SUCCESS:
            break
        found.append(int(size))
    if found != list(sizes):
        raise LegoError(
            f"kernel '{kernel}' has parameters of {found} bytes in its machine code, "
            f"of {list(sizes)} in its PTX",
            hint="the bundle is damaged, or not legoc's: make it again with --emit=bundle",
        )


def resolve(
    launch: KernelLaunch,
    arguments: Sequence[Argument],
    values: Sequence[Value],
    sizes: Sequence[int],
    mapped: Callable[[TensorMapParameter, Argument | Workspace, Value], Value],
    workspaces: Sequence[tuple[Workspace, Value]] = (),
) -> tuple[Value, ...]:
    """Return the values of a launch's kernel parameters.

    Args:
        launch: says what each parameter is; its sizes are numbers (`runtime.sized`).
        arguments: of the host function.
        values: of these arguments; scalars as NumPy scalars, anything else counts as a pointer.
        sizes: of the kernel's parameters, in bytes, from `artifact.ptx.parameter_sizes`.
        mapped: makes a tensor map of an argument or a workspace, and its value.
        workspaces: the artifact's workspaces, each with its value, a pointer.

    Returns:
        One value for each parameter: a pointer-like as it was given, a NumPy scalar of exactly
        the parameter's size, a tensor map, or a tuple of these. (`index` is 32 or 64 bits wide, as
        the kernel was compiled.)

    Raises:
        LegoError: number or sizes differ from what the kernel takes.
    """
    kernel = launch.kernel

    def buffer(position: int | WorkspaceIndex) -> tuple[Argument | Workspace, Value]:
        if isinstance(position, WorkspaceIndex):
            return workspaces[position.workspace]
        return arguments[position], values[position]

    if len(launch.parameters) != len(sizes):
        raise LegoError(
            f"kernel '{kernel}' takes {len(sizes)} parameters, "
            f"the artifact passes {len(launch.parameters)}"
        )
    resolved: list[Value] = []
    for i, (parameter, size) in enumerate(zip(launch.parameters, sizes, strict=True)):
        value: Value
        if isinstance(parameter, TensorMapParameter):
            _check_size(kernel, i, size, TENSOR_MAP_BYTES)
            resolved.append(mapped(parameter, *buffer(parameter.argument)))
            continue
        if isinstance(parameter, TensorMapParameters):
            _check_size(kernel, i, size, TENSOR_MAP_BYTES * len(parameter.maps))
            resolved.append(tuple(mapped(m, *buffer(m.argument)) for m in parameter.maps))
            continue
        if isinstance(parameter, Constant):
            dtype, value = parameter.dtype, dtypes.scalar(parameter.dtype, parameter.value)
        elif isinstance(parameter, Computed):
            raise ValueError(f"{kernel} takes a number of no launch: {parameter.expression}")
        else:
            found, value = buffer(parameter)
            dtype = found.dtype
        if dtype == "index" and isinstance(value, np.generic):
            value = dtypes.scalar(f"i{8 * size}", int(value))
        actual = value.dtype.itemsize if isinstance(value, np.generic) else _POINTER_BYTES
        _check_size(kernel, i, size, actual)
        resolved.append(value)
    return tuple(resolved)


def _check_size(kernel: str, number: int, size: int, actual: int) -> None:
    if actual != size:
        raise LegoError(
            f"parameter {number} of kernel '{kernel}' has {size} bytes, "
            f"the artifact passes {actual}"
        )
