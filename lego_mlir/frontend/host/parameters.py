"""The parameters of a kernel: their MLIR types and attributes, and how its function gets them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from math import lcm, prod
from typing import Any

from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.frontend.dtypes import is_unsigned, mlir_element
from lego_mlir.frontend.host.argument_types import Parameter, ScalarType, TensorType
from lego_mlir.frontend.host.grids import dim3
from lego_mlir.frontend.host.launch_classes import NARROW_ELEMENTS, LaunchClass
from lego_mlir.frontend.tensors import TensorValue
from lego_mlir.frontend.tiles.sizes import TILE_MULTIPLES
from lego_mlir.frontend.trace import Trace, source_text
from lego_mlir.frontend.values import Value
from lego_mlir.hardware.limits import (
    MAX_CLUSTER_CTAS,
    MAX_CTA_THREADS,
    MAX_SM_THREADS,
    WARP_THREADS,
)
from lego_mlir.index import Int, Sym
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir

MAX_WARPS = MAX_CTA_THREADS // WARP_THREADS


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


def cluster_size(cluster: Any, warps: Any, name: str) -> int:
    """Return the CTAs of a cluster.

    Raises:
        LegoError: it is no number of CTAs that a cluster may have, or the kernel is one of threads.
    """
    if type(cluster) is not int or not 1 <= cluster <= MAX_CLUSTER_CTAS:
        raise LegoError(
            f"kernel '{name}': cluster is a number of CTAs from 1 to {MAX_CLUSTER_CTAS}, not "
            f"{cluster!r}"
        )
    if cluster > 1 and warps is None:
        raise LegoError(
            f"kernel '{name}' has a cluster of {cluster} CTAs, but no tiles for them to hold",
            hint="warps=4 instead of block= makes it a kernel on tiles",
        )
    return cluster


def occupancy(ctas: Any, block: tuple[int, int, int], name: str) -> int:
    """Return the CTAs for which a multiprocessor is to have registers.

    Raises:
        LegoError: it is no number of CTAs whose threads a multiprocessor can hold.
    """
    most = MAX_SM_THREADS // prod(block)
    if type(ctas) is not int or not 1 <= ctas <= most:
        raise LegoError(
            f"kernel '{name}': ctas_per_sm is a number from 1 to {most}, of CTAs of {prod(block)} "
            f"threads, not {ctas!r}"
        )
    return ctas


def checked_multiple(multiple: Any, warps: Any, name: str) -> int:
    """Return what divides the sizes of tiles that stay as the program says.

    Raises:
        LegoError: there is no such choice, or the kernel is one of threads.
    """
    default = TILE_MULTIPLES[0]
    if multiple not in TILE_MULTIPLES or (multiple != default and warps is None):
        raise LegoError(
            f"kernel '{name}': tile_multiple is {multiple!r}",
            hint=f"{' or '.join(map(str, TILE_MULTIPLES))}, in a kernel on tiles: warps=4",
        )
    return int(multiple)


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


def checked_pdl(pdl: Any, ctas: Any, name: str) -> int:
    """Return the CTAs of a launch up to which it is dependent; 0 for any number.

    Raises:
        LegoError: it is no such number, or no launch of the kernel is dependent.
    """
    if type(ctas) is not int or not 0 <= ctas < 1 << 31:
        raise LegoError(f"kernel '{name}': pdl_ctas is a number of CTAs from 0 on, not {ctas!r}")
    if ctas and not pdl:
        raise LegoError(
            f"kernel '{name}' has pdl_ctas={ctas}, and its launches are not dependent",
            hint=f"@lg.kernel(..., pdl=True, pdl_ctas={ctas})",
        )
    return ctas


def checked_eviction(eviction: Any, name: str) -> Any:
    """Return when the cache evicts what a kernel loads.

    Raises:
        LegoError: it is neither `first` nor `last`, nor `None`.
    """
    if eviction not in (None, "first", "last"):
        raise LegoError(
            f"kernel '{name}': eviction is 'first' or 'last', not {eviction!r}",
            hint='@lg.kernel(..., eviction="last")',
        )
    return eviction


def checked_prefetch(prefetch: Any, name: str) -> Any:
    """Return how many bytes a kernel's loads bring into the L2 cache.

    Raises:
        LegoError: it is no such number, nor `None`.
    """
    if prefetch is not None and (type(prefetch) is not int or prefetch not in (64, 128, 256)):
        raise LegoError(
            f"kernel '{name}': prefetch is 64, 128 or 256 bytes, not {prefetch!r}",
            hint="@lg.kernel(..., prefetch=128)",
        )
    return prefetch


def traced_argument(name: str, value: Any, kind: Parameter, trace: Trace) -> Any:
    """Return what the kernel function gets for a parameter."""
    match kind:
        case TensorType():
            layout, known = trace.sized(kind.layout)
            sizes = tuple(Value(size, trace) for size in known)
            return TensorValue(name, value, kind.dtype, layout, trace, sizes=sizes)
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
            hint='params are values of the parameters of a schedule: add schedule="cp_async"',
        )
    for parameter, n in params.items():
        if type(n) is not int or not 0 <= n < 2**63:
            raise LegoError(
                f"kernel '{name}': parameter '{parameter}' is an integer of at least 0, not {n!r}"
            )
    return dict(params)


def mlir_type(kind: Parameter) -> Any:
    """Return the type of the host function's argument for a parameter.

    Raises:
        LegoError: it has more elements along a dimension than 8 bytes count.
    """
    if isinstance(kind, ScalarType):
        return mlir_element(kind.dtype)
    layout = None
    if isinstance(kind, TensorType) and kind.strides is not None:
        dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
        steps = [n if isinstance(n, int) else dynamic for n in kind.strides]
        layout = ir.StridedLayoutAttr.get(0, steps)
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = [n if isinstance(n, int) else dynamic for n in kind.shape]
    if max(shape, default=0) >= 2**63:
        raise LegoError(f"a tensor {list(kind.shape)}: sizes are below 2**63")
    return ir.MemRefType.get(shape, mlir_element(kind.dtype), layout)


def argument_attributes(
    name: str, kind: Parameter, trace: Trace, promised: LaunchClass | None = None
) -> Any:
    """Return the attributes of the host function's argument: name, layout, alignment, promises.

    Args:
        name: of the parameter.
        kind: its type.
        trace: of the kernel.
        promised: what the code relies on of sizes that only the launch knows.
    """
    attributes = {dialect.ARGUMENT_NAME: ir.StringAttr.get(name)}
    if isinstance(kind, TensorType):
        attributes[dialect.ARGUMENT_LAYOUT] = trace.layout(kind.layout, is_bound=True)
        i64 = ir.IntegerType.get_signless(64)
        if kind.alignment > 1:
            attributes[dialect.ALIGNMENT] = ir.IntegerAttr.get(i64, kind.alignment)
        if promised is not None and kind.symbols:
            known = dict(promised.bounds)
            bounds = [known.get(n.name, -1) + 1 if isinstance(n, Sym) else 0 for n in kind.shape]
            if any(bounds):
                attributes[dialect.BOUNDS] = dialect.bounds_attribute(bounds)
            known = dict(promised.least)
            least = [known.get(n.name, 0) if isinstance(n, Sym) else 0 for n in kind.shape]
            if any(least):
                attributes[dialect.LEAST] = dialect.bounds_attribute(least)
            if not promised.is_wide:
                attributes[dialect.ELEMENTS] = ir.IntegerAttr.get(i64, NARROW_ELEMENTS)
            divisors = [_divisor(n) for n in kind.strides or ()]
            if any(n > 1 for n in divisors):
                attributes[dialect.STRIDE_DIVISORS] = ir.DenseI64ArrayAttr.get(divisors)
    return ir.DictAttr.get(attributes)


def _divisor(stride: Int) -> int:
    """Return a number that divides a stride."""
    if isinstance(stride, int):
        return stride
    known = stride.divisors if isinstance(stride, Sym) else ()
    return lcm(*(d for d in known if isinstance(d, int)))
