"""Read the launches of a host function as data.

Host code is not compiled. It is a list of launches. Their sizes and parameters are constants, the
function's own arguments, or what the launch computes of the arguments' sizes; anything else is an
error here, not later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from lego_mlir.artifact import (
    Computed,
    Constant,
    KernelLaunch,
    Parameter,
    TensorMapParameter,
    TensorMapParameters,
    Workspace,
    WorkspaceIndex,
)
from lego_mlir.compiler.host_functions import (
    Host,
    argument_attributes,
    constant_of,
    dtype_of,
    name_of,
)
from lego_mlir.compiler.kernels.resource_limits import LAUNCH_SIZES, check_sizes
from lego_mlir.hardware.limits import ALLOCATION_ALIGNMENT, MAX_PARAMETER_BYTES, TENSOR_MAP_BYTES
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.launch_sizes.strided import is_dense
from lego_mlir.mlir.lowering.buffers import workspace_alignment


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
        if op.operation.name == "func.func" and name_of(op.operation) == host.name
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


def _workspace(op: Any, name: str, func: Any, source: Source) -> Workspace:
    """Return what a gpu.alloc of the host function allocates.

    Args:
        op: the operation.
        name: of the workspace, if the operation does not state one.
        func: the host function.
        source: the module's text, in which errors are shown.
    """
    kind = ir.MemRefType(op.results[0].type)
    if not is_dense(kind) or kind.memory_space is not None:
        raise source.error(
            f"a workspace of the type {kind}: its elements lie one after another in global memory",
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
    dtype = dtype_of(kind.element_type, name, func, source)
    shape: tuple[int | str, ...] = tuple(kind.shape)
    if dialect.COMPUTED in op.attributes:
        shape = (ir.StringAttr(op.attributes[dialect.COMPUTED]).value,)
    return Workspace(name, dtype, shape, alignment, dialect.ZEROED in op.attributes)


def _launch(op: Any, workspaces: Sequence[Any], source: Source) -> KernelLaunch:
    segments = list(op.attributes["operandSegmentSizes"])
    operands = list(op.operands)
    starts = [sum(segments[:n]) for n in range(len(segments) + 1)]
    asynchronous, sizes = operands[: segments[0]], operands[starts[1] : starts[7]]
    cluster, shared = operands[starts[7] : starts[10]], operands[starts[10] : starts[11]]
    parameters = operands[starts[11] : starts[12]]
    if asynchronous or cluster:
        raise source.error("asynchronous and cluster launches are not supported", op.location)
    grid = [
        _grid_size(v, what, op, source) for v, what in zip(sizes, LAUNCH_SIZES[:3], strict=False)
    ]
    block = [
        _number(v, what, op, source) for v, what in zip(sizes[3:], LAUNCH_SIZES[3:], strict=True)
    ]
    # What the launch computes is checked when it does.
    check_sizes([*(n if isinstance(n, int) else 1 for n in grid), *block], op.location, source)
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
        grid=(grid[0], grid[1], grid[2]),
        block=(block[0], block[1], block[2]),
        parameters=passed,
        shared_bytes=_number(shared[0], "dynamic shared memory", op, source) if shared else 0,
        pdl=dialect.PDL in op.attributes,
        pdl_ctas=_pdl_ctas(op, source),
    )


def _pdl_ctas(op: Any, source: Source) -> int:
    """Return the CTAs up to which a launch is dependent, 0 for any number."""
    if dialect.PDL not in op.attributes:
        return 0
    found = op.attributes[dialect.PDL]
    if isinstance(found, ir.UnitAttr):
        return 0
    if not isinstance(found, ir.IntegerAttr) or not 0 < found.value < 1 << 31:
        raise source.error(
            f"{dialect.PDL} is a unit attribute, or the CTAs of a dependent launch at most, not "
            f"'{found}'",
            op.location,
            hint=f"{dialect.PDL} = 8192 : i64",
        )
    return int(found.value)


def _bytes_of(parameter: Parameter) -> int:
    """Return the size of a parameter; for a number, the largest possible one."""
    match parameter:
        case TensorMapParameter():
            return TENSOR_MAP_BYTES
        case TensorMapParameters(maps):
            return TENSOR_MAP_BYTES * len(maps)
    return 8


def _number(value: Any, what: str, op: Any, source: Source) -> int:
    attribute = constant_of(value)
    if attribute is None:
        raise source.error(f"the {what} of this launch is not a known number", op.location)
    return attribute.value  # type: ignore[no-any-return]


def _grid_size(value: Any, what: str, op: Any, source: Source) -> int | str:
    """Return a size of the grid: a number, or the expression by which the launch computes it."""
    if constant_of(value) is not None:
        return _number(value, what, op, source)
    if not isinstance(value, ir.BlockArgument):
        raise source.error(f"the {what} of this launch is not known to the launch", op.location)
    return _computed(value) or f"a{value.arg_number}"


def _computed(value: Any) -> str | None:
    """Return the expression by which the launch computes a value; `None` if it does not."""
    if not isinstance(value, ir.BlockArgument):
        return None
    func = value.owner.owner.operation
    attrs = argument_attributes(func, len(value.owner.arguments))[value.arg_number]
    if dialect.COMPUTED not in attrs:
        return None
    return ir.StringAttr(attrs[dialect.COMPUTED]).value  # type: ignore[no-any-return]


def _parameter(
    value: Any, number: int, op: Any, workspaces: Sequence[Any], source: Source
) -> Parameter:
    computed = _computed(value)
    if computed is not None:
        return Computed(cast("Any", str(value.type)), computed)
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
    attribute = constant_of(value)
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
