"""What holds of an artifact as a whole, beyond the rules of its fields.

After these checks a launch finds the kernel it names, passes as many bytes as the kernel takes,
refers to arguments that there are, and asks of a GPU no more than one has.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lego_mlir.artifact import expressions
from lego_mlir.artifact.expressions import Leaf
from lego_mlir.artifact.model import (
    Argument,
    Artifact,
    Computed,
    Constant,
    KernelLaunch,
    Parameter,
    TensorMapParameter,
    TensorMapParameters,
    Workspace,
    WorkspaceIndex,
    known_numbers,
)
from lego_mlir.artifact.ptx import parameter_sizes
from lego_mlir.artifact.schema import read
from lego_mlir.artifact.tensor_maps import check_tensor_map, last_byte
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES, FLOATS, TENSOR_MAP_TYPES, integer_range
from lego_mlir.hardware.limits import MAX_CTA_THREADS, MAX_PARAMETER_BYTES, TENSOR_MAP_BYTES

_MOST_BYTES = 1 << 60
"""The limit for a tensor, so that no arithmetic of offsets overflows 64 bits."""


def check(artifact: Artifact) -> None:
    """Check an artifact: the rules of its fields, and how they fit one another.

    Raises:
        LegoError: something does not hold; the message names the field.
    """
    read(Artifact, artifact)
    check_fit(artifact)


def check_fit(artifact: Artifact) -> None:
    """Check how the fields of an artifact, of which each obeys its rules, fit one another.

    Raises:
        LegoError: they do not; the message names the field.
    """
    _check_arguments(artifact.arguments)
    _check_workspaces(artifact)
    for i, fact in enumerate(artifact.facts):
        _check_expression(fact.condition, artifact.arguments, f"facts[{i}].condition")
        _check_expression(fact.value, artifact.arguments, f"facts[{i}].value")
    for i, launch in enumerate(artifact.launches):
        _check_launch(launch, artifact, f"launches[{i}]")


def _check_arguments(arguments: tuple[Argument, ...]) -> None:
    seen: set[str] = set()
    for i, argument in enumerate(arguments):
        where = f"arguments[{i}]"
        if argument.name in seen:
            raise LegoError(f"{where}.name is '{argument.name}', as an argument before it is named")
        seen.add(argument.name)
        if argument.shape is None:
            if argument.layout is not None or argument.alignment != 1:
                raise LegoError(f"{where} is a scalar, but has a layout or an alignment")
            if argument.strides is not None or argument.symbols:
                raise LegoError(f"{where} is a scalar, but has strides or symbols")
            continue
        _check_strides(argument, where)
        names = [name for name, _ in argument.symbols]
        if len(set(names)) < len(names) or (names and argument.layout is None):
            raise LegoError(f"{where}.symbols are {names}, not symbols of its layout, each once")
        for name, value in argument.symbols:
            _check_expression(value, arguments, f"{where}.symbols, '{name}',")


def _check_strides(argument: Argument, where: str) -> None:
    """Check the sizes of a tensor, as far as they are known, and its strides."""
    shape = argument.shape or ()
    strides = argument.strides
    if strides is not None and (len(strides) != len(shape) or argument.layout is not None):
        raise LegoError(
            f"{where}.strides is {list(strides)}: a tensor without a layout has one stride for "
            f"each of its {len(shape)} dimensions"
        )
    # Of a size or stride that only the launch knows, the least one that counts.
    least = [1 if n is None else n for n in shape]
    elements = prod(least) if strides is None else _span(least, [n or 0 for n in strides])
    if elements * ELEMENT_BYTES[argument.dtype] > _MOST_BYTES:
        raise LegoError(f"{where}.shape is {list(shape)}, more than {_MOST_BYTES} bytes")


def _span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return the elements from the first to the last one of a buffer with strides."""
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))


def _check_workspaces(artifact: Artifact) -> None:
    for i, workspace in enumerate(artifact.workspaces):
        where = f"workspaces[{i}].shape"
        _check_sizes(workspace.shape, artifact, where)
        size = prod(n for n in workspace.shape if isinstance(n, int))
        size *= ELEMENT_BYTES[workspace.dtype]
        if not 0 < size <= _MOST_BYTES:
            raise LegoError(
                f"{where} is {list(workspace.shape)}, {size} bytes; "
                f"a workspace has 1 to {_MOST_BYTES}"
            )


def _check_sizes(sizes: Sequence[int | str], artifact: Artifact, where: str) -> None:
    """Check those sizes that are expressions."""
    for i, size in enumerate(sizes):
        if isinstance(size, str):
            _check_expression(size, artifact.arguments, f"{where}[{i}]")


def _check_expression(text: str, arguments: tuple[Argument, ...], where: str) -> None:
    """Check that each operator has two operands, and that each leaf asks what an argument has."""
    depth = 0
    for token in expressions.tokens(text):
        if isinstance(token, Leaf):
            _check_leaf(token, arguments, where)
        if isinstance(token, str) and depth < 2:
            raise LegoError(f"{where} has an operator '{token}' without two operands")
        depth += -1 if isinstance(token, str) else 1
    if depth != 1:
        raise LegoError(f"{where} has {depth} values, not one")


def _check_leaf(leaf: Leaf, arguments: tuple[Argument, ...], where: str) -> None:
    argument = arguments[leaf.argument] if leaf.argument < len(arguments) else None
    if leaf.asks == "value":
        if argument is None or argument.shape is not None or argument.dtype in FLOATS:
            raise LegoError(
                f"{where} names a{leaf.argument}, which is no argument that is an integer"
            )
    elif argument is None or leaf.dimension >= len(argument.shape or ()):
        raise LegoError(
            f"{where} names the {leaf.asks} of a{leaf.argument} along dimension "
            f"{leaf.dimension}, which is no dimension of a tensor argument"
        )


def _check_launch(launch: KernelLaunch, artifact: Artifact, where: str) -> None:
    threads = prod(launch.block)
    if threads > MAX_CTA_THREADS:
        raise LegoError(
            f"{where}.block is {list(launch.block)}, {threads} threads; "
            f"a GPU takes at most {MAX_CTA_THREADS}"
        )
    _check_sizes(launch.grid, artifact, f"{where}.grid")
    sizes = parameter_sizes(artifact.ptx, launch.kernel)
    if sum(sizes) > MAX_PARAMETER_BYTES:
        raise LegoError(
            f"the parameters of kernel '{launch.kernel}' have {sum(sizes)} bytes; "
            f"a GPU takes at most {MAX_PARAMETER_BYTES}"
        )
    if len(sizes) != len(launch.parameters):
        raise LegoError(
            f"{where} passes {len(launch.parameters)} parameters, "
            f"kernel '{launch.kernel}' takes {len(sizes)}"
        )
    for i, (parameter, size) in enumerate(zip(launch.parameters, sizes, strict=True)):
        inside = f"{where}.parameters[{i}]"
        possible = _parameter_bytes(parameter, artifact, inside)
        if size not in possible:
            raise LegoError(
                f"{inside} has {' or '.join(map(str, possible))} bytes, "
                f"kernel '{launch.kernel}' takes {size}"
            )


def _parameter_bytes(parameter: Parameter, artifact: Artifact, where: str) -> tuple[int, ...]:
    """Return the sizes that a kernel's parameter can have, once it is checked."""
    match parameter:
        case TensorMapParameter():
            _check_map(parameter, artifact, where)
            return (TENSOR_MAP_BYTES,)
        case TensorMapParameters(maps):
            for i, one in enumerate(maps):
                _check_map(one, artifact, f"{where}.maps[{i}]")
            return (TENSOR_MAP_BYTES * len(maps),)
        case Constant(dtype, value):
            _check_constant(dtype, value, where)
            return _scalar_bytes(dtype)
        case Computed(dtype, expression):
            _check_expression(expression, artifact.arguments, f"{where}.expression")
            return _scalar_bytes(dtype)
    buffer = _buffer(parameter, artifact, where)
    return (8,) if buffer.shape is not None else _scalar_bytes(buffer.dtype)


def _scalar_bytes(dtype: str) -> tuple[int, ...]:
    """Return the sizes of a scalar: that of `index` is the kernel's choice."""
    return (4, 8) if dtype == "index" else (ELEMENT_BYTES[dtype],)


def _buffer(position: int | WorkspaceIndex, artifact: Artifact, where: str) -> Argument | Workspace:
    """Return the argument or the workspace at a position, once it is checked."""
    kind, number = "argument", position
    buffers: tuple[Argument | Workspace, ...] = artifact.arguments
    if isinstance(position, WorkspaceIndex):
        kind, number = "workspace", position.workspace
        buffers = artifact.workspaces
    assert isinstance(number, int)
    if number >= len(buffers):
        raise LegoError(f"{where} is {kind} {number}, there are {len(buffers)}")
    return buffers[number]


def _check_constant(dtype: str, value: int | float, where: str) -> None:
    if dtype in FLOATS:
        if not isinstance(value, float):
            raise LegoError(f"{where}.value is {value}, not a {dtype}: write {value}.0")
        return
    low, high = integer_range(dtype)
    if not isinstance(value, int) or not low <= value <= high:
        raise LegoError(f"{where}.value is {value}, not an {dtype}: an integer {low} to {high}")


def _check_map(found: TensorMapParameter, artifact: Artifact, where: str) -> None:
    buffer = _buffer(found.argument, artifact, where)
    kind = "argument" if isinstance(buffer, Argument) else "workspace"
    named = f"{kind} '{buffer.name}'"
    if buffer.shape is None or buffer.dtype not in TENSOR_MAP_TYPES:
        what = "a scalar" if buffer.shape is None else f"a tensor of {buffer.dtype}"
        raise LegoError(
            f"{where} maps {named}, {what}; a tensor map is of a tensor of "
            f"{', '.join(TENSOR_MAP_TYPES)}"
        )
    _check_sizes(found.shape, artifact, f"{where}.shape")
    _check_sizes(found.strides, artifact, f"{where}.strides")
    element = ELEMENT_BYTES[buffer.dtype]
    # What the launch computes is checked then; 1 and 16 are right in any tensor map.
    shape = [n if isinstance(n, int) else 1 for n in found.shape]
    strides = [n if isinstance(n, int) else 16 for n in found.strides]
    try:
        check_tensor_map(shape, strides, found.box, element, found.swizzle)
    except LegoError as e:
        raise LegoError(f"{where} is {e.message}", hint=e.hint) from None
    own = () if isinstance(buffer, Workspace) or buffer.strides is None else buffer.strides
    sides = (buffer.shape, own, found.shape, found.strides)
    if all(isinstance(n, int) for side in sides for n in side):
        held, needed = _held(buffer) * element, last_byte(shape, strides, element)
        if needed > held:
            raise LegoError(f"{where} maps {needed} bytes, {named} has {held}")


def _held(buffer: Argument | Workspace) -> int:
    """Return the elements of a buffer of known shape and strides."""
    shape = known_numbers(buffer.shape or ())
    if isinstance(buffer, Workspace) or buffer.strides is None:
        return prod(shape)
    return _span(shape, known_numbers(buffer.strides))
