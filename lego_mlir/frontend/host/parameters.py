"""The parameters of a kernel: their MLIR types and attributes, and how its function gets them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.frontend.dtypes import is_unsigned, mlir_element
from lego_mlir.frontend.tensors import EmptyType, ScalarType, TensorType, TensorValue
from lego_mlir.frontend.trace import Trace, source_text
from lego_mlir.frontend.values import Value
from lego_mlir.hardware.limits import MAX_CTA_THREADS, WARP_THREADS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir

MAX_WARPS = MAX_CTA_THREADS // WARP_THREADS

Size: TypeAlias = int | Sequence[int]
Parameter: TypeAlias = TensorType | EmptyType | ScalarType


def call(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Call a kernel function: by keyword, except for its positional-only parameters."""
    parameters = inspect.signature(function).parameters
    by_position = [n for n, p in parameters.items() if p.kind is p.POSITIONAL_ONLY]
    by_keyword = {n: value for n, value in arguments.items() if n not in by_position}
    return function(*(arguments[n] for n in by_position), **by_keyword)


def unknown_keyword(
    name: str, parameters: Iterable[str], keywords: Mapping[str, Any], location: Location
) -> LegoError:
    """Return the error of a call that has keyword arguments that there are none of.

    Args:
        name: of the kernel.
        parameters: their names.
        keywords: the keyword arguments of the call.
        location: of the call.
    """
    return LegoError(
        f"a call of kernel '{name}' has no keyword argument '{next(iter(keywords))}'",
        location=location,
        hint=f"pass the arrays by position: {name}({', '.join(parameters)})",
        source=source_text(location.file) or None,
    )


def dim3(size: Any, what: str, name: str) -> tuple[int, int, int]:
    """Return a grid or CTA size as three numbers.

    Raises:
        LegoError: it is not one to three positive integers.
    """
    sizes = tuple(size) if isinstance(size, Sequence) else (size,)
    good = all(type(n) is int and 0 < n < 2**63 for n in sizes)
    if not 1 <= len(sizes) <= 3 or not good:
        raise LegoError(f"kernel '{name}': {what} is one to three positive integers, not {size!r}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def cta_size(block: Any, warps: Any, name: str) -> tuple[int, int, int]:
    """Return the threads of a CTA along x, y and z, which one of `block` and `warps` says.

    Raises:
        LegoError: none or both do, or it is no size.
    """
    if (block is None) == (warps is None):
        given = "neither block nor warps" if block is None else "block and warps"
        raise LegoError(
            f"kernel '{name}' has {given}",
            hint="block=256 for a kernel of threads, warps=4 for one on tiles",
        )
    if warps is None:
        return dim3(block, "block", name)
    if type(warps) is not int or not 1 <= warps <= MAX_WARPS:
        raise LegoError(f"kernel '{name}': warps is a number from 1 to {MAX_WARPS}, not {warps!r}")
    return warps * WARP_THREADS, 1, 1


def grid_of(
    function: Callable[..., Any], parameters: Mapping[str, Parameter], name: str
) -> tuple[int, int, int]:
    """Return the grid that a function of the parameters' types computes.

    Args:
        function: takes parameters of the kernel by name.
        parameters: the types of all parameters by name.
        name: of the kernel.

    Raises:
        LegoError: the kernel has no such parameter, the types do not have what the function reads,
            or it returns no grid.
    """
    wanted = list(inspect.signature(function).parameters)
    for parameter in wanted:
        if parameter not in parameters:
            raise LegoError(
                f"kernel '{name}': the function of its grid takes '{parameter}', which is no "
                "parameter of the kernel",
                hint=f"its parameters are: {', '.join(parameters)}",
            )
    try:
        size = function(**{parameter: parameters[parameter] for parameter in wanted})
    except (AttributeError, IndexError, TypeError) as e:
        raise LegoError(
            f"kernel '{name}': the function of its grid fails: {e}",
            hint="it gets the types of the arguments: lambda x: x.shape[0]",
        ) from e
    return dim3(size, "grid", name)


def traced_argument(name: str, value: Any, kind: Parameter, trace: Trace) -> Any:
    """Return what the kernel function gets for a parameter."""
    match kind:
        case TensorType():
            return TensorValue(name, value, kind.dtype, kind.layout, trace)
        case ScalarType():
            return Value(value, trace, unsigned=is_unsigned(kind.dtype))
    return None


def checked_params(params: Mapping[str, int], schedule: str | None, name: str) -> dict[str, int]:
    """Return the values of a schedule's parameters after checking them.

    Raises:
        LegoError: there is no schedule, or a value is none that a parameter takes.
    """
    if params and schedule is None:
        raise LegoError(
            f"kernel '{name}' has params and no schedule",
            hint='params are values of the parameters of a schedule: add schedule="hmma"',
        )
    for parameter, n in params.items():
        if type(n) is not int or not 0 <= n < 2**63:
            raise LegoError(
                f"kernel '{name}': parameter '{parameter}' is an integer of at least 0, not {n!r}"
            )
    return dict(params)


def mlir_type(kind: Parameter) -> Any:
    """Return the type of the host function's argument for a parameter."""
    if isinstance(kind, ScalarType):
        return mlir_element(kind.dtype)
    return ir.MemRefType.get(list(kind.shape), mlir_element(kind.dtype))


def argument_attributes(name: str, kind: Parameter, trace: Trace) -> Any:
    """Return the attributes of the host function's argument: name, layout and alignment."""
    attributes = {dialect.ARGUMENT_NAME: ir.StringAttr.get(name)}
    if isinstance(kind, TensorType):
        attributes[dialect.ARGUMENT_LAYOUT] = trace.layout(kind.layout)
        if kind.alignment > 1:
            i64 = ir.IntegerType.get_signless(64)
            attributes[dialect.ALIGNMENT] = ir.IntegerAttr.get(i64, kind.alignment)
    return ir.DictAttr.get(attributes)
