"""The arguments of a launch: checked against the kernel's parameters, and put into buffers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lego_mlir.hardware.limits import TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES
from lego_mlir.sim.machine.memory import FIRST_ARGUMENT, PARAM, Buffer, base_of
from lego_mlir.sim.machine.tensor_map import TensorMap
from lego_mlir.sim.ptx.syntax import Kernel, Module, Parameter
from lego_mlir.sim.ptx.types import Array

Argument = Array | np.generic | TensorMap | tuple[TensorMap, ...]


def argument_buffers(
    module: Module, kernel: Kernel, arguments: Sequence[Argument]
) -> dict[int, Buffer]:
    """Return the buffers of the parameters and of the arguments, by window."""
    names = ", ".join(p.name for p in kernel.parameters)
    if len(arguments) != len(kernel.parameters):
        raise module.error(
            f"{kernel.name} takes {len(kernel.parameters)} arguments, {len(arguments)} were given",
            kernel.line,
            hint=f"its parameters are: {names}" if names else None,
        )
    buffers: dict[int, Buffer] = {}
    parameter_bytes = b""
    for i, (argument, parameter) in enumerate(zip(arguments, kernel.parameters, strict=True)):
        problem = _mismatch(argument, parameter)
        if problem:
            raise module.error(
                f"argument {i} of {kernel.name} ({parameter.name}): {problem}", kernel.line
            )
        parameter_bytes += bytes(-len(parameter_bytes) % parameter.align)
        if isinstance(argument, np.generic):
            parameter_bytes += argument.tobytes()
            continue
        for one in argument if isinstance(argument, tuple) else (argument,):
            window = FIRST_ARGUMENT + len(buffers)
            array = one.array if isinstance(one, TensorMap) else one
            data = array.reshape(-1).view(np.uint8)
            name = f"argument {i} ({parameter.name})"
            buffers[window] = Buffer(name, data, data.size, writable=array.flags.writeable)
            if isinstance(one, TensorMap):
                parameter_bytes += one.encoded(base_of(window))
            else:
                parameter_bytes += base_of(window).to_bytes(8, "little")
    data = np.frombuffer(parameter_bytes, np.uint8)
    buffers[PARAM] = Buffer("the parameters", data, data.size, writable=False)
    return buffers


def _mismatch(argument: object, parameter: Parameter) -> str | None:
    """Return why an argument does not fit a parameter, or None."""
    if isinstance(argument, TensorMap | tuple):
        size = TENSOR_MAP_BYTES * (len(argument) if isinstance(argument, tuple) else 1)
        if parameter.size != size or parameter.align % TENSOR_MAP_ALIGNMENT:
            return (
                f"a tensor map where {parameter.size} bytes with an alignment of "
                f"{parameter.align} should stand; it has {size} with {TENSOR_MAP_ALIGNMENT}"
            )
        return None
    if not isinstance(argument, np.ndarray | np.generic):
        return f"{type(argument).__name__} is neither a NumPy array nor a NumPy scalar"
    if isinstance(argument, np.ndarray):
        if parameter.is_array or parameter.kind.name not in ("u64", "s64", "b64"):
            return f"an array where a {parameter.kind} by value should stand"
        if not argument.flags.c_contiguous:
            return f"its strides {argument.strides} are not C-contiguous for {argument.shape}"
        if argument.dtype.hasobject:
            return f"an array of {argument.dtype} has no bytes to put on a device"
        return None
    if argument.dtype.kind not in "biufV":
        return f"a {argument.dtype} scalar is no kernel parameter"
    if parameter.pointer:
        return f"a {argument.dtype} scalar where a buffer should stand"
    if argument.dtype.itemsize != parameter.size:
        return (
            f"a {argument.dtype} scalar has {argument.dtype.itemsize} bytes, the parameter "
            f"{parameter.size}"
        )
    kind, actual = parameter.kind, argument.dtype.kind
    typed = not parameter.is_array and kind.kind != "b" and actual != "V"
    if typed and kind.is_float != (actual == "f"):
        return f"a {argument.dtype} scalar where a {kind} should stand"
    return None
