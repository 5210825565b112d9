"""An artifact at one launch: a number wherever it leaves one to the launch.

Grids, parameters, tensor maps, workspaces and the arguments' shapes are numbers then, as they are
in an artifact whose sizes are fixed, so all that runs artifacts need not tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any

from lego_mlir.artifact import (
    Argument,
    Artifact,
    Computed,
    Constant,
    Dim3,
    KernelLaunch,
    Parameter,
    TensorMapParameter,
    TensorMapParameters,
    Workspace,
    WorkspaceIndex,
    known_numbers,
)
from lego_mlir.artifact.expressions import Program
from lego_mlir.artifact.tensor_maps import check_tensor_map, last_byte
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import MAX_GRID_DIMS
from lego_mlir.runtime.launch_sizes.extents import Extents, Known, fixed_extents

Number = Callable[[int | str], int]


def is_empty(launch: KernelLaunch) -> bool:
    """Return whether a launch of known sizes has no CTA, so that there is nothing to launch."""
    return 0 in launch.grid


def has_fixed_sizes(artifact: Artifact) -> bool:
    """Return whether no number of an artifact is left to the launch."""
    return not _left_open(artifact)[0]


def sized(artifact: Artifact, known: Known) -> Artifact:
    """Return the artifact with the numbers of a launch; itself if its sizes are fixed.

    Args:
        artifact: whose facts hold for the launch.
        known: the values, shapes and strides of the arguments.

    Raises:
        LegoError: a grid, a tensor map or a workspace cannot be of these sizes.
    """
    is_open, texts = _left_open(artifact)
    if not is_open:
        return artifact
    try:
        numbers = dict(zip(texts, numbers_program(artifact)(*known), strict=True))
    except ZeroDivisionError:
        raise LegoError(
            f"a size of '{artifact.name}' is divided by 0{_at(artifact, known)}"
        ) from None

    def number(size: int | str) -> int:
        return size if isinstance(size, int) else numbers[size]

    arguments = tuple(
        argument
        if argument.shape is None
        else replace(
            argument,
            shape=shape,
            strides=None if argument.strides is None else strides,
            symbols=tuple((name, str(number(value))) for name, value in argument.symbols),
        )
        for argument, shape, strides in zip(
            artifact.arguments, known.shapes, known.strides, strict=True
        )
    )
    with_numbers = replace(
        artifact,
        arguments=arguments,
        workspaces=tuple(
            replace(w, shape=tuple(number(n) for n in w.shape)) for w in artifact.workspaces
        ),
        launches=tuple(_launch(launch, number) for launch in artifact.launches),
    )
    try:
        _check(with_numbers)
    except LegoError as e:
        raise LegoError(e.message + _at(artifact, known), hint=e.hint) from None
    return with_numbers


@lru_cache(maxsize=256)
def numbers_program(artifact: Artifact) -> Program:
    """Return the program of all expressions of an artifact but its facts.

    Raises:
        LegoError: one is no expression.
    """
    return Program(_left_open(artifact)[1])


def open_texts(artifact: Artifact) -> tuple[str, ...]:
    """Return all expressions of an artifact but its facts, each once."""
    return _left_open(artifact)[1]


@lru_cache(maxsize=256)
def _left_open(artifact: Artifact) -> tuple[bool, tuple[str, ...]]:
    """Return whether a launch has anything to fill in, and the expressions among that."""
    found = [value for argument in artifact.arguments for _, value in argument.symbols]
    found += [n for w in artifact.workspaces for n in w.shape if isinstance(n, str)]
    for launch in artifact.launches:
        found += [n for n in launch.grid if isinstance(n, str)]
        for parameter in launch.parameters:
            if isinstance(parameter, Computed):
                found.append(parameter.expression)
            for one in maps_of(parameter):
                found += [n for n in (*one.shape, *one.strides) if isinstance(n, str)]
    is_open = any(a.shape is not None and fixed_extents(a) is None for a in artifact.arguments)
    return is_open or bool(found), tuple(dict.fromkeys(found))


def maps_of(parameter: Parameter) -> Iterator[TensorMapParameter]:
    """Yield the tensor maps of a kernel's parameter."""
    if isinstance(parameter, TensorMapParameter):
        yield parameter
    elif isinstance(parameter, TensorMapParameters):
        yield from parameter.maps


def _launch(launch: KernelLaunch, number: Number) -> KernelLaunch:
    x, y, z = launch.grid
    parameters = tuple(_parameter(parameter, number) for parameter in launch.parameters)
    return replace(launch, grid=(number(x), number(y), number(z)), parameters=parameters)


def _parameter(parameter: Parameter, number: Number) -> Parameter:
    match parameter:
        case Computed(dtype, expression):
            return Constant(dtype, number(expression))
        case TensorMapParameter():
            return _map(parameter, number)
        case TensorMapParameters(maps):
            return TensorMapParameters(tuple(_map(one, number) for one in maps))
    return parameter


def _map(found: TensorMapParameter, number: Number) -> TensorMapParameter:
    shape, strides = (tuple(map(number, side)) for side in (found.shape, found.strides))
    return replace(found, shape=shape, strides=strides)


def _check(artifact: Artifact) -> None:
    """Check sizes that a launch has computed.

    Raises:
        LegoError: one cannot be; without the shapes that it comes from.
    """
    for workspace in artifact.workspaces:
        if any(n < 0 for n in known_numbers(workspace.shape)):
            raise LegoError(
                f"the workspace '{workspace.name}' of '{artifact.name}' has the shape "
                f"{list(workspace.shape)}"
            )
    for launch in artifact.launches:
        check_grid(launch.kernel, known_grid(launch))
        if is_empty(launch):
            continue
        for parameter in launch.parameters:
            for one in maps_of(parameter):
                _check_map(one, artifact)


def known_grid(launch: KernelLaunch) -> Dim3:
    """Return the grid of a launch of known sizes."""
    x, y, z = known_numbers(launch.grid)
    return x, y, z


def check_grid(kernel: str, grid: Dim3) -> None:
    """Check a grid against the hardware's limits; a size of 0 is a launch of nothing.

    Raises:
        LegoError: it exceeds them, or a size is negative.
    """
    if any(not 0 <= n <= most for n, most in zip(grid, MAX_GRID_DIMS, strict=True)):
        sizes, most = (" × ".join(map(str, each)) for each in (grid, MAX_GRID_DIMS))
        raise LegoError(
            f"kernel '{kernel}' would have a grid of {sizes} CTAs, a GPU takes at most {most}"
        )


def _check_map(found: TensorMapParameter, artifact: Artifact) -> None:
    buffer: Argument | Workspace
    if isinstance(found.argument, WorkspaceIndex):
        buffer, kind = artifact.workspaces[found.argument.workspace], "workspace"
        elements = prod(known_numbers(buffer.shape))
    else:
        buffer, kind = artifact.arguments[found.argument], "argument"
        extents = fixed_extents(buffer)
        elements = 0 if extents is None else extents.elements
    named = f"the tensor map of {kind} '{buffer.name}'"
    element = ELEMENT_BYTES[buffer.dtype]
    shape, strides = known_numbers(found.shape), known_numbers(found.strides)
    try:
        check_tensor_map(shape, strides, found.box, element, found.swizzle)
    except LegoError as e:
        raise LegoError(f"{named} would be {e.message}", hint=e.hint) from None
    needed = last_byte(shape, strides, element)
    if needed > elements * element:
        raise LegoError(f"{named} covers {needed} bytes, it has {elements * element}")


def _at(artifact: Artifact, known: Known) -> str:
    """Return the sizes that a launch has, for the end of a message."""
    named: list[Any] = []
    for argument, value, shape in zip(artifact.arguments, known.values, known.shapes, strict=True):
        what = f"the shape {list(shape)}" if argument.shape is not None else f"the value {value}"
        named.append(f"'{argument.name}' has {what}")
    return f"; {', '.join(named)}" if named else ""


def with_extents(argument: Argument, extents: Extents) -> Argument:
    """Return an argument whose shape and strides are those of a launch."""
    strides = None if argument.strides is None else extents.strides
    return replace(argument, shape=extents.shape, strides=strides)
