"""Binding a user's tensors to the host function's arguments, and reading them back.

A *tensor* is what the user means: indexed logically. A *buffer* is what the kernels see: dense
memory of the argument's shape. The argument's layout relates the two,

    buffer.reshape(-1)[layout.offsets()] == tensor

and without a layout they are the same array.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from lego_mlir.artifact import Argument, Artifact, known_numbers
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.limits import check_limit
from lego_mlir.runtime import dtypes, views
from lego_mlir.runtime.dtypes import Array
from lego_mlir.runtime.launch_sizes import fitting
from lego_mlir.runtime.launch_sizes.extents import fixed_extents
from lego_mlir.runtime.launch_sizes.facts import check_facts
from lego_mlir.runtime.launch_sizes.missing_sizes import known_of_run
from lego_mlir.runtime.launch_sizes.sized import sized
from lego_mlir.runtime.npy import load_npy

ArgumentValue = Any  # an array (NumPy, CPU DLPack), the path of a .npy file, a number, or None

Functions = Mapping[str, Callable[..., Any]]
"""Permutation functions of layouts by name, on NumPy arrays."""

READS = ("read", "readwrite")
WRITES = ("write", "readwrite")


@dataclass(frozen=True, slots=True)
class BoundArgument:
    """One argument with its value.

    Attributes:
        argument: the argument.
        value: the buffer, of the argument's shape and strides; a NumPy scalar where it has none.
        offsets: the buffer's flat offset of each element of the tensor, or `None` where the
            buffer is the tensor.
    """

    argument: Argument
    value: Array | np.generic
    offsets: npt.NDArray[np.integer[Any]] | None = None

    def tensor(self) -> Array:
        """Return a copy of the logical tensor that is in the buffer now."""
        if self.offsets is None:
            return np.array(self.value)
        gathered: Array = np.asarray(self.value).reshape(-1)[self.offsets]
        return gathered


def bind(
    artifact: Artifact,
    values: Sequence[ArgumentValue] | Mapping[str, ArgumentValue] = (),
    *,
    seed: int = 0,
    functions: Functions | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> tuple[BoundArgument, ...]:
    """Return a value for every argument; arrays of the caller are copied, never changed.

    Args:
        artifact: whose arguments.
        values: tensors or .npy files by position or by name; `None`, and what is left over, is
            filled: with seeded random data where the kernels read it, else with poison.
        seed: of the random data. An argument's data does not depend on what the others are given.
        functions: what `@name` stands for in the arguments' layouts.
        shapes: of tensors that are left out, by name, where the launch decides them.

    Raises:
        LegoError: too many, unknown names, an unreadable file, a wrong type or shape, a scalar
            without a value, a tensor that is left out and whose sizes follow from nothing.
    """
    by_name = _by_name(artifact, values)
    for name in shapes or {}:
        _check_name(artifact, name)
    given = [_given(argument, by_name.get(argument.name)) for argument in artifact.arguments]
    known = known_of_run(artifact, [value for value, _ in given], shapes or {})
    check_facts(artifact, known)
    artifact = sized(artifact, known)
    _check_size(artifact)
    bound = []
    for position, (argument, (value, location)) in enumerate(
        zip(artifact.arguments, given, strict=True)
    ):
        if argument.shape is None:
            assert isinstance(value, np.generic)
            bound.append(BoundArgument(argument, value))
            continue
        offsets = layout_offsets(argument, functions or {})
        shape = known_numbers(argument.shape) if offsets is None else offsets.shape
        if isinstance(value, np.ndarray):
            _check_shape(argument, shape, value, location)
            tensor = in_dtype(value, argument.dtype)
        elif shapes and tuple(shapes.get(argument.name, shape)) != shape:
            raise LegoError(
                f"argument '{argument.name}' has shape {list(shape)}, and "
                f"{'x'.join(map(str, shapes[argument.name]))} is given for it",
                hint="it is fixed where the module is compiled, in legoc by --set NAME=N; sizes "
                "are given for tensors whose sizes only the launch knows",
            )
        elif argument.access in READS:
            rng = np.random.default_rng([seed, position])
            tensor = dtypes.random(shape, argument.dtype, rng)
        else:
            tensor = dtypes.poison(shape, argument.dtype)
        bound.append(BoundArgument(argument, _buffer(argument, tensor, offsets), offsets))
    return tuple(bound)


def layout_offsets(argument: Argument, functions: Functions) -> npt.NDArray[np.integer[Any]] | None:
    """Return the buffer's offset of each element of a tensor; `None` without a layout.

    Raises:
        LegoError: the layout's text is wrong, names a function that is not given, or it reaches
            beyond the buffer.
    """
    if argument.layout is None or argument.shape is None:
        return None
    from lego_mlir.algebra import parse_layout

    unknown = [f for f in re.findall(r"@(\w+)", argument.layout) if f not in functions]
    if unknown:
        raise LegoError(
            f"argument '{argument.name}' has the layout '{argument.layout}'; its functions are "
            "not in the artifact",
            hint="run the module itself, or give the argument a layout of named permutations",
        )
    sizes = {name: int(n) for name, n in argument.symbols}
    layout = parse_layout(argument.layout, sizes=sizes, functions=functions)
    if not layout.symbols:  # else there are no offsets, which `offsets` says
        size = prod(map(int, layout.tensor_shape)) * _OFFSET_BYTES
        what = f"the layout of argument '{argument.name}' has offsets of {{}} bytes"
        check_limit("tensor_bytes", size, what)
    offsets: npt.NDArray[np.integer[Any]] = np.asarray(layout.offsets())
    size = prod(known_numbers(argument.shape))
    if offsets.size and (int(offsets.min()) < 0 or int(offsets.max()) >= size):
        raise LegoError(
            f"the layout of argument '{argument.name}' reaches offsets "
            f"{int(offsets.min())} to {int(offsets.max())}, its buffer has {size} elements"
        )
    return offsets


_OFFSET_BYTES = 8
"""Size of an element's offset in its buffer."""


def _check_size(artifact: Artifact) -> None:
    """Refuse tensors that take more memory together than a run may."""
    size = sum(
        extents.elements * ELEMENT_BYTES[argument.dtype]
        for argument in artifact.arguments
        if (extents := fixed_extents(argument)) is not None
    )
    check_limit("tensor_bytes", size, f"the tensors of '{artifact.name}' have {{}} bytes together")


def _by_name(
    artifact: Artifact, values: Sequence[ArgumentValue] | Mapping[str, ArgumentValue]
) -> Mapping[str, ArgumentValue]:
    names = [argument.name for argument in artifact.arguments]
    if isinstance(values, Mapping):
        for name in values:
            _check_name(artifact, name)
        return values
    if isinstance(values, str | os.PathLike | np.ndarray):
        values = (values,)
    if len(values) > len(names):
        raise LegoError(
            f"'{artifact.name}' takes {len(names)} arguments, {len(values)} are given",
            hint=_listed(artifact),
        )
    return dict(zip(names, values, strict=False))


def _check_name(artifact: Artifact, name: str) -> None:
    if all(argument.name != name for argument in artifact.arguments):
        raise LegoError(f"there is no argument '{name}'", hint=_listed(artifact))


def _listed(artifact: Artifact) -> str:
    names = ", ".join(argument.name for argument in artifact.arguments)
    return f"the arguments of '{artifact.name}' are {names or 'none'}"


def _given(
    argument: Argument, value: ArgumentValue
) -> tuple[Array | np.generic | None, Location | None]:
    """Return an argument's value, None of a tensor that is left out, and the file it is from."""
    if argument.shape is None:
        return _scalar(argument, value), None
    if value is None:
        return None, None
    location = Location(os.fspath(value)) if isinstance(value, str | os.PathLike) else None
    return _tensor(argument, value, location), location


def _scalar(argument: Argument, value: ArgumentValue) -> np.generic:
    if isinstance(value, str | os.PathLike):
        value = load_npy(value)
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    if value is None:
        raise LegoError(
            f"argument '{argument.name}' is a scalar of type {argument.dtype} and needs a value"
        )
    return dtypes.scalar_argument(argument, value)


def _tensor(argument: Argument, value: ArgumentValue, location: Location | None) -> Array:
    """Return a caller's array, or that of a .npy file, of elements that fit the argument."""
    array: Any = load_npy(value) if location is not None else value
    if not isinstance(array, np.ndarray):
        array = _lent(argument, array)
    if not dtypes.matches(array.dtype, argument.dtype):
        dtype = dtypes.numpy_dtype(argument.dtype)
        raise LegoError(
            f"argument '{argument.name}' holds {dtypes.describe(argument.dtype)}, "
            f"the array holds {array.dtype.name}",
            location=location,
            hint=f"convert it: array.astype(numpy.{dtype.name})",
        )
    return np.asarray(array)


def _check_shape(
    argument: Argument, shape: tuple[int, ...], array: Array, location: Location | None
) -> None:
    if array.shape != shape:
        raise LegoError(
            f"argument '{argument.name}' has shape {list(shape)}, the array has "
            f"{list(array.shape)}",
            location=location,
        )


def in_dtype(array: Array, name: str) -> Array:
    """Return an array in the dtype that carries the MLIR type, in native byte order."""
    dtype = dtypes.numpy_dtype(name)
    if array.dtype == dtype:
        return array
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    # A view, not a conversion: the bits are what counts (unsigned for signless, ml_dtypes).
    return np.ascontiguousarray(array).view(dtype).reshape(array.shape)


def _lent(argument: Argument, value: ArgumentValue) -> Array:
    """Return an array of another library in host memory as a NumPy array."""
    if views.gpu_of(value) is not None:
        raise LegoError(
            f"the array for argument '{argument.name}' lives on a GPU",
            hint="use lego_mlir.runtime.launch, which runs in place, or move it to the CPU",
        )
    seen = views.view(value, argument.name)
    fitting.check_type(seen, argument)
    dtype = dtypes.numpy_dtype(argument.dtype)
    return np.array(views.as_numpy(seen, dtype, seen.shape, seen.strides))


def _buffer(
    argument: Argument, tensor: Array, offsets: npt.NDArray[np.integer[Any]] | None
) -> Array:
    """Return the buffer that holds a tensor; elements outside the tensor are poison."""
    assert argument.shape is not None
    extents = fixed_extents(argument)
    assert extents is not None
    if argument.strides is not None and not extents.is_dense:
        memory = dtypes.poison((extents.elements,), argument.dtype)
        steps = [step * memory.itemsize for step in extents.strides]
        strided: Array = np.lib.stride_tricks.as_strided(memory, extents.shape, steps)
        strided[...] = tensor
        return strided
    if offsets is None:
        return np.array(tensor, order="C")
    buffer = dtypes.poison(known_numbers(argument.shape), argument.dtype)
    buffer.reshape(-1)[offsets] = tensor
    return buffer
