"""Read a host function as data: its arguments and its launches.

Host code is not compiled. It is a list of launches whose sizes are known and whose parameters
are the function's own arguments or constants; anything else is an error here, not later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lego_mlir.artifact import (
    Argument,
    ArgumentAccess,
    Constant,
    Fact,
    KernelLaunch,
    Parameter,
    TensorMapParameter,
    TensorMapParameters,
    Workspace,
    WorkspaceIndex,
)
from lego_mlir.artifact.model import REFERENCE_RULE
from lego_mlir.artifact.names import NAME_RULE, is_name
from lego_mlir.compiler.kernels.resource_limits import LAUNCH_SIZES, check_sizes
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import ALLOCATION_ALIGNMENT, MAX_PARAMETER_BYTES, TENSOR_MAP_BYTES
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.layouts import layout_text
from lego_mlir.mlir.lowering.argument_access import argument_access
from lego_mlir.mlir.lowering.argument_names import argument_names
from lego_mlir.mlir.lowering.buffers import is_dense, workspace_alignment
from lego_mlir.mlir.modules import operations_in

_LAUNCHES = ("gpu.launch", "gpu.launch_func")


@dataclass(frozen=True, slots=True)
class Host:
    """A host function that launches kernels.

    Attributes:
        name: its symbol.
        arguments: in order.
        reference: the known reference that the module compares it with, if any.
        in_place: whether buffers may overlap of which the kernels write some.
        facts: conditions on the arguments that every launch checks.
    """

    name: str
    arguments: tuple[Argument, ...]
    reference: str | None
    in_place: bool = False
    facts: tuple[Fact, ...] = ()


def host_function(module: Any, parsed: Any, source: Source) -> Host:
    """Return the one function of the module that launches kernels.

    Args:
        module: lowered, its kernels not outlined yet.
        parsed: the module before lowering, whose lego operations say what kernels access.
        source: the module's text, in which errors are shown.

    Raises:
        LegoError: there is none, there are several, or an argument has an unusable type.
    """
    functions = [op.operation for op in module.body.operations if _launches(op.operation)]
    if len(functions) != 1:
        found = ", ".join(f"@{_name(f)}" for f in functions) or "none"
        raise source.error(
            f"a module to run has one host function that launches kernels, this one has: {found}",
            functions[1].location if functions else module.operation.location,
            hint="a host function is a func.func with a gpu.launch in it",
        )
    (func,) = functions
    kernels = _gpu_functions(module)
    for op in operations_in(func):
        if op.name == "gpu.launch_func":
            _check_known_sizes(op, kernels, source)
    block = func.regions[0].blocks[0]
    if not is_name(_name(func)):
        raise source.error(
            f"the host function has the name '{_name(func)}'",
            func.location,
            hint=f"a name to run has {NAME_RULE}",
        )
    names = argument_names(func, source)
    attributes = _argument_attributes(func, len(block.arguments))
    # Where an operation of the module does not tell, what the compiler made of it may.
    stages = zip(_accesses(parsed, _name(func)), _accesses(module, _name(func)), strict=True)
    accesses = [before or after for before, after in stages]
    arguments = tuple(
        _argument(value, name, attrs, access or "readwrite", func, source)
        for value, name, attrs, access in zip(
            block.arguments, names, attributes, accesses, strict=True
        )
    )
    in_place = any(dialect.IN_PLACE in op.attributes for op in (func, module.operation))
    reference = _reference(module, func, source)
    return Host(_name(func), arguments, reference, in_place, _facts(func))


def launches(
    module: Any, host: Host, source: Source
) -> tuple[tuple[KernelLaunch, ...], tuple[Workspace, ...]]:
    """Return the launches of the host function, after its kernels are outlined, and its workspaces.

    Raises:
        LegoError: the function does more than launch, or a launch is not fully known.
    """
    (func,) = (
        op.operation
        for op in module.body.operations
        if op.operation.name == "func.func" and _name(op.operation) == host.name
    )
    found: list[KernelLaunch] = []
    workspaces: dict[Any, Workspace] = {}
    for op in func.regions[0].blocks[0].operations:
        operation = op.operation
        match operation.name:
            case "gpu.launch_func":
                found.append(_launch(operation, tuple(workspaces), source))
            case "gpu.alloc":
                name = f"workspace{len(workspaces)}"
                workspaces[operation.results[0]] = _workspace(operation, name, func, source)
            case "gpu.dealloc":
                continue  # a workspace lives as long as the artifact
            case "arith.constant" | "func.return" | dialect.TENSOR_MAP | dialect.TENSOR_MAPS:
                continue
            case _:
                raise source.error(
                    f"a host function only launches kernels; '{operation.name}' cannot run here",
                    operation.location,
                    hint="compute it before the call and pass it as an argument, "
                    "or move it into the kernel",
                )
    return tuple(found), tuple(workspaces.values())


def _launches(op: Any) -> bool:
    return op.name == "func.func" and any(inner.name in _LAUNCHES for inner in operations_in(op))


def _gpu_functions(module: Any) -> dict[tuple[str, ...], Any]:
    """Return the kernels that the user wrote as gpu.func, by gpu.module and name."""
    return {
        (_name(container.operation), _name(op.operation)): op.operation
        for container in module.body.operations
        if container.operation.name == "gpu.module"
        for op in container.operation.regions[0].blocks[0].operations
        if op.operation.name == "gpu.func"
    }


def _check_known_sizes(launch: Any, kernels: Mapping[tuple[str, ...], Any], source: Source) -> None:
    """Check that a launch has the sizes that its kernel was compiled for."""
    kernel = kernels.get(tuple(launch.attributes["kernel"].value))
    if kernel is None:
        return
    segments = list(launch.attributes["operandSegmentSizes"])
    sizes = [_constant(v) for v in list(launch.operands)[segments[0] :][:6]]
    for key, static_sizes in (("known_grid_size", sizes[:3]), ("known_block_size", sizes[3:])):
        if key not in kernel.attributes:
            continue
        known = list(ir.DenseI32ArrayAttr(kernel.attributes[key]))
        if [None if n is None else n.value for n in static_sizes] != known:
            raise source.error(
                f"this launch does not have the {key} of @{_name(kernel)}, {known}",
                launch.location,
                hint="launch it with these sizes as constants, or take the attribute away",
            )


def _name(func: Any) -> str:
    return func.attributes["sym_name"].value  # type: ignore[no-any-return]


def _facts(func: Any) -> tuple[Fact, ...]:
    """Return what the compiler relies on of the arguments and has not proven."""
    attributes = (
        ir.ArrayAttr(func.attributes[dialect.FACTS]) if dialect.FACTS in func.attributes else ()
    )
    facts = [{e.name: ir.StringAttr(e.attr).value for e in ir.DictAttr(a)} for a in attributes]
    return tuple(Fact(**entries) for entries in facts)


def _reference(module: Any, func: Any, source: Source) -> str | None:
    for attributes in (func.attributes, module.operation.attributes):
        if dialect.REFERENCE not in attributes:
            continue
        reference = attributes[dialect.REFERENCE]
        text = ir.StringAttr(reference).value if isinstance(reference, ir.StringAttr) else ""
        if not REFERENCE_RULE.holds(text):
            raise source.error(
                f"{dialect.REFERENCE} is a name in quotes, not '{reference}'", func.location
            )
        return text
    return None


def _argument_attributes(func: Any, count: int) -> list[Mapping[str, Any]]:
    if "arg_attrs" not in func.attributes:
        return [{}] * count
    return [{e.name: e.attr for e in attrs} for attrs in func.attributes["arg_attrs"]]


def _argument(
    value: Any,
    name: str,
    attrs: Mapping[str, Any],
    access: ArgumentAccess,
    func: Any,
    source: Source,
) -> Argument:
    if not isinstance(value.type, ir.MemRefType):
        dtype = _dtype(value.type, name, func, source)
        return Argument(name, dtype, None, None, "read")
    kind = ir.MemRefType(value.type)
    if not kind.has_static_shape:
        raise source.error(
            f"argument '{name}' of @{_name(func)} has the type {kind}: to run, its shape must "
            "be known",
            func.location,
        )
    if not is_dense(kind):
        raise source.error(
            f"argument '{name}' of @{_name(func)} has the type {kind}: to run, its elements must "
            "lie one after another",
            func.location,
            hint="say where they lie by a lego.layout, and take the memref's own layout away",
        )
    # A text over several lines is one of a single line to the bundle.
    layout = (
        " ".join(layout_text(attrs[dialect.ARGUMENT_LAYOUT]).split())
        if dialect.ARGUMENT_LAYOUT in attrs
        else None
    )
    alignment = dialect.alignment_in(attrs)
    dtype = _dtype(kind.element_type, name, func, source)
    return Argument(name, dtype, tuple(kind.shape), layout, access, alignment)


def _dtype(kind: Any, name: str, func: Any, source: Source) -> str:
    """Return the name of an element type that a kernel can be given from outside."""
    if str(kind) not in ELEMENT_BYTES:
        raise source.error(
            f"argument '{name}' of @{_name(func)} has elements of type {kind}, which cannot be "
            "passed to a kernel",
            func.location,
            hint=f"use one of {', '.join(ELEMENT_BYTES)}",
        )
    return str(kind)


def _accesses(module: Any, name: str) -> list[ArgumentAccess | None]:
    """Return how kernels access each argument of the host function of this name."""
    kernels = _gpu_functions(module)
    return [
        argument_access(value, kernels)
        for op in (o.operation for o in module.body.operations)
        if op.name == "func.func" and _name(op) == name
        for value in op.regions[0].blocks[0].arguments
    ]


def _workspace(op: Any, name: str, func: Any, source: Source) -> Workspace:
    """Return what a gpu.alloc of the host function allocates.

    Args:
        op: the operation.
        name: of the workspace, if the operation does not state one.
        func: the host function.
        source: the module's text, in which errors are shown.
    """
    kind = ir.MemRefType(op.results[0].type)
    if not kind.has_static_shape or not is_dense(kind) or kind.memory_space is not None:
        raise source.error(
            f"a workspace of the type {kind}: its shape must be known, and its elements lie one "
            "after another in global memory",
            op.location,
            hint="for example gpu.alloc () : memref<64x64xf32>",
        )
    if len(op.results) > 1 or len(op.operands) or "hostShared" in op.attributes:
        raise source.error(
            "a workspace is allocated before all launches, on the device",
            op.location,
            hint="take async and host_shared away",
        )
    if dialect.ARGUMENT_NAME in op.attributes:
        name = ir.StringAttr(op.attributes[dialect.ARGUMENT_NAME]).value
    alignment = workspace_alignment(op)
    if not 0 < alignment <= ALLOCATION_ALIGNMENT or alignment & alignment - 1:
        raise source.error(
            f"{dialect.ALIGNMENT} of a workspace is a power of two up to {ALLOCATION_ALIGNMENT}, "
            f"not {alignment}",
            op.location,
        )
    dtype = _dtype(kind.element_type, name, func, source)
    return Workspace(name, dtype, tuple(kind.shape), alignment, dialect.ZEROED in op.attributes)


def _launch(op: Any, workspaces: Sequence[Any], source: Source) -> KernelLaunch:
    segments = list(op.attributes["operandSegmentSizes"])
    operands = list(op.operands)
    starts = [sum(segments[:n]) for n in range(len(segments) + 1)]
    asynchronous, sizes = operands[: segments[0]], operands[starts[1] : starts[7]]
    cluster, shared = operands[starts[7] : starts[10]], operands[starts[10] : starts[11]]
    parameters = operands[starts[11] : starts[12]]
    if asynchronous or cluster:
        raise source.error("asynchronous and cluster launches are not supported", op.location)
    numbers = [_number(v, what, op, source) for v, what in zip(sizes, LAUNCH_SIZES, strict=True)]
    check_sizes(numbers, op.location, source)
    kernel = list(op.attributes["kernel"].value)[-1]
    passed = tuple(_parameter(v, n, op, workspaces, source) for n, v in enumerate(parameters))
    size = sum(map(_bytes_of, passed))
    if size > MAX_PARAMETER_BYTES:
        raise source.error(
            f"the parameters of this kernel have {size} bytes; it takes {MAX_PARAMETER_BYTES}",
            op.location,
            hint="fewer tensors in one launch",
        )
    return KernelLaunch(
        kernel=kernel,
        grid=(numbers[0], numbers[1], numbers[2]),
        block=(numbers[3], numbers[4], numbers[5]),
        parameters=passed,
        shared_bytes=_number(shared[0], "dynamic shared memory", op, source) if shared else 0,
        pdl=dialect.PDL in op.attributes,
    )


def _bytes_of(parameter: Parameter) -> int:
    """Return the size of a parameter; for a number, the largest possible one."""
    match parameter:
        case TensorMapParameter():
            return TENSOR_MAP_BYTES
        case TensorMapParameters(maps):
            return TENSOR_MAP_BYTES * len(maps)
    return 8


def _constant(value: Any) -> Any:
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return None
    return value.owner.operation.attributes["value"]


def _number(value: Any, what: str, op: Any, source: Source) -> int:
    attribute = _constant(value)
    if attribute is None:
        raise source.error(f"the {what} of this launch is not a known number", op.location)
    return attribute.value  # type: ignore[no-any-return]


def _parameter(
    value: Any, number: int, op: Any, workspaces: Sequence[Any], source: Source
) -> Parameter:
    buffer = _buffer(value, workspaces)
    if buffer is not None:
        return buffer
    if value.owner.name == dialect.TENSOR_MAP:
        return _tensor_map(value.owner.operation, workspaces)
    if value.owner.name == dialect.TENSOR_MAPS:
        maps = value.owner.operation.operands
        return TensorMapParameters(
            tuple(_tensor_map(one.owner.operation, workspaces) for one in maps)
        )
    attribute = _constant(value)
    if not isinstance(attribute, ir.IntegerAttr | ir.FloatAttr):
        raise source.error(
            f"parameter {number} of this kernel is neither an argument of the host function nor "
            "a constant",
            op.location,
        )
    return Constant(str(value.type), attribute.value)


def _tensor_map(op: Any, workspaces: Sequence[Any]) -> TensorMapParameter:
    buffer = _buffer(op.operands[0], workspaces)
    assert buffer is not None  # TensorMaps makes them of these only
    return TensorMapParameter(buffer, **dialect.tensor_map_fields(op))


def _buffer(value: Any, workspaces: Sequence[Any]) -> int | WorkspaceIndex | None:
    """Return the position of the argument or the workspace that a value is, `None` if neither."""
    if isinstance(value, ir.BlockArgument):
        return value.arg_number  # type: ignore[no-any-return]
    return WorkspaceIndex(workspaces.index(value)) if value in workspaces else None
