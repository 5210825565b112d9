"""From the host function's arguments to the kernels' parameters.

The driver takes an array of pointers to parameters on trust: one too few, or one too short, and it
reads past its end. So they are checked against the PTX before any launch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lego_mlir.artifact import Argument, Constant, Launch, TensorMap, TensorMaps
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import dtypes

Value = Any  # a NumPy scalar, or whatever stands for a pointer: an array, an address

_POINTER_BYTES = 8
_TENSOR_MAP_BYTES = 128

_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+\d+\s+)?\.(?P<type>pred|[bufs]\d+)"
    r"(?:\s+\.ptr\b[^,\s]*(?:\s*\.\w+)*(?:\s+\.align\s+\d+)?)?"
    r"\s+(?P<name>[\w$]+)\s*(?:\[\s*(?P<count>\d+)\s*\])?"
)


def entry_names(ptx: str) -> tuple[str, ...]:
    """The kernels of a PTX module, in order."""
    return tuple(re.findall(r"\.entry\s+([\w$]+)", ptx))


def parameter_sizes(ptx: str, kernel: str) -> tuple[int, ...]:
    """The size of each parameter of a kernel, in bytes.

    Raises:
        LegoError: the module has no such kernel.
    """
    entry = re.search(rf"\.entry\s+{re.escape(kernel)}(?![\w$])\s*(?:\(([^)]*)\))?", ptx)
    if entry is None:
        raise LegoError(
            f"the PTX has no kernel '{kernel}'",
            hint=f"it has {', '.join(entry_names(ptx)) or 'none'}",
        )
    sizes = []
    for parameter in (part for part in (entry[1] or "").split(",") if part.strip()):
        found = _PARAMETER.search(parameter)
        if found is None:
            raise LegoError(
                f"a parameter of kernel '{kernel}' is not understood: {parameter.strip()}"
            )
        sizes.append(int(found["type"][1:]) // 8 * int(found["count"] or 1))
    return tuple(sizes)


def resolve(
    launch: Launch,
    arguments: Sequence[Argument],
    values: Sequence[Value],
    sizes: Sequence[int],
    mapped: Callable[[TensorMap, Argument, Value], Value],
) -> tuple[Value, ...]:
    """The values of a launch's kernel parameters.

    Args:
        launch: says what each parameter is.
        arguments: of the host function.
        values: of these arguments; scalars as NumPy scalars, anything else counts as a pointer.
        sizes: of the kernel's parameters, in bytes, from `parameter_sizes`.
        mapped: makes a tensor map of an argument and its value.

    Returns:
        One value for each parameter: a pointer-like as it was given, a NumPy scalar of exactly
        the parameter's size, a tensor map, or a tuple of these. (`index` is 32 or 64 bits wide, as
        the kernel was compiled.)

    Raises:
        LegoError: number or sizes differ from what the kernel takes.
    """
    kernel = launch.kernel
    if len(launch.parameters) != len(sizes):
        raise LegoError(
            f"kernel '{kernel}' takes {len(sizes)} parameters, "
            f"the artifact passes {len(launch.parameters)}"
        )
    resolved: list[Value] = []
    for i, (parameter, size) in enumerate(zip(launch.parameters, sizes, strict=True)):
        value: Value
        if isinstance(parameter, TensorMap):
            _check_size(kernel, i, size, _TENSOR_MAP_BYTES)
            argument = parameter.argument
            resolved.append(mapped(parameter, arguments[argument], values[argument]))
            continue
        if isinstance(parameter, TensorMaps):
            _check_size(kernel, i, size, _TENSOR_MAP_BYTES * len(parameter.maps))
            resolved.append(
                tuple(mapped(m, arguments[m.argument], values[m.argument]) for m in parameter.maps)
            )
            continue
        if isinstance(parameter, Constant):
            dtype, value = parameter.dtype, dtypes.scalar(parameter.dtype, parameter.value)
        else:
            dtype, value = arguments[parameter].dtype, values[parameter]
        if dtype == "index" and isinstance(value, np.generic):
            value = dtypes.scalar(f"i{8 * size}", int(value))
        given = value.dtype.itemsize if isinstance(value, np.generic) else _POINTER_BYTES
        _check_size(kernel, i, size, given)
        resolved.append(value)
    return tuple(resolved)


def _check_size(kernel: str, number: int, size: int, given: int) -> None:
    if given != size:
        raise LegoError(
            f"parameter {number} of kernel '{kernel}' has {size} bytes, the artifact passes {given}"
        )
