"""The parameters of a kernel: their MLIR types and attributes, and how its function gets them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.frontend.tensors import EmptyType, ScalarType, TensorType, TensorValue
from lego_mlir.frontend.trace import Trace, source_text
from lego_mlir.frontend.values import Value
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir

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


def traced_argument(name: str, value: Any, kind: Parameter, trace: Trace) -> Any:
    """Return what the kernel function gets for a parameter."""
    match kind:
        case TensorType():
            return TensorValue(name, value, kind.dtype, kind.layout, trace)
        case ScalarType():
            return Value(value, trace)
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
        return ir.Type.parse(kind.dtype)
    return ir.MemRefType.get(list(kind.shape), ir.Type.parse(kind.dtype))


def argument_attributes(name: str, kind: Parameter, trace: Trace) -> Any:
    """Return the attributes of the host function's argument: name, layout and alignment."""
    attributes = {dialect.ARGUMENT_NAME: ir.StringAttr.get(name)}
    if isinstance(kind, TensorType):
        attributes[dialect.ARGUMENT_LAYOUT] = trace.layout(kind.layout)
        if kind.alignment > 1:
            i64 = ir.IntegerType.get_signless(64)
            attributes[dialect.ALIGNMENT] = ir.IntegerAttr.get(i64, kind.alignment)
    return ir.DictAttr.get(attributes)
