"""Read a host function as data: its arguments, and what a launch of it relies on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.artifact import Argument, ArgumentAccess, Fact
from lego_mlir.artifact.model import REFERENCE_RULE
from lego_mlir.artifact.names import NAME_RULE, is_name
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.encodings import layout_text
from lego_mlir.mlir.launch_sizes.facts import bound_symbols
from lego_mlir.mlir.launch_sizes.known import Known
from lego_mlir.mlir.launch_sizes.strided import is_dense
from lego_mlir.mlir.layouts import Layouts
from lego_mlir.mlir.lowering.argument_access import argument_access
from lego_mlir.mlir.lowering.argument_names import argument_names
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


def host_function(module: Any, parsed: Any, layouts: Layouts, source: Source) -> Host:
    """Return the one function of the module that launches kernels.

    Args:
        module: lowered, its kernels not outlined yet.
        parsed: the module before lowering, whose lego operations say what kernels access.
        layouts: reads the layouts of its arguments.
        source: the module's text, in which errors are shown.

    Raises:
        LegoError: there is none, there are several, or an argument has an unusable type.
    """
    functions = [op.operation for op in module.body.operations if _launches(op.operation)]
    if len(functions) != 1:
        found = ", ".join(f"@{name_of(f)}" for f in functions) or "none"
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
    if not is_name(name_of(func)):
        raise source.error(
            f"the host function has the name '{name_of(func)}'",
            func.location,
            hint=f"a name to run has {NAME_RULE}",
        )
    names = argument_names(func, source)
    attributes = argument_attributes(func, len(block.arguments))
    # Where an operation of the module does not tell, what the compiler made of it may.
    stages = zip(_accesses(parsed, name_of(func)), _accesses(module, name_of(func)), strict=True)
    accesses = [before or after for before, after in stages]
    known = bound_symbols(func, layouts)
    arguments = tuple(
        _argument(
            value,
            name,
            attrs,
            access or "readwrite",
            _symbols(attrs, name, known, layouts, func, source),
            layouts,
            func,
            source,
        )
        for value, name, attrs, access in zip(
            block.arguments, names, attributes, accesses, strict=True
        )
    )
    in_place = any(dialect.IN_PLACE in op.attributes for op in (func, module.operation))
    reference = _reference(module, func, source)
    return Host(name_of(func), arguments, reference, in_place, _facts(func))


def _launches(op: Any) -> bool:
    return op.name == "func.func" and any(inner.name in _LAUNCHES for inner in operations_in(op))


def _gpu_functions(module: Any) -> dict[tuple[str, ...], Any]:
    """Return the kernels that the user wrote as gpu.func, by gpu.module and name."""
    return {
        (name_of(container.operation), name_of(op.operation)): op.operation
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
    sizes = [constant_of(v) for v in list(launch.operands)[segments[0] :][:6]]
    for key, static_sizes in (("known_grid_size", sizes[:3]), ("known_block_size", sizes[3:])):
        if key not in kernel.attributes:
            continue
        known = list(ir.DenseI32ArrayAttr(kernel.attributes[key]))
        if [None if n is None else n.value for n in static_sizes] != known:
            raise source.error(
                f"this launch does not have the {key} of @{name_of(kernel)}, {known}",
                launch.location,
                hint="launch it with these sizes as constants, or take the attribute away",
            )


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


def _symbols(
    attrs: Mapping[str, Any],
    name: str,
    known: Mapping[str, Known],
    layouts: Layouts,
    func: Any,
    source: Source,
) -> tuple[tuple[str, str], ...]:
    """Return what the symbols of an argument's layout are, as the launch evaluates them."""
    if dialect.ARGUMENT_LAYOUT not in attrs:
        return ()
    layout = layouts(attrs[dialect.ARGUMENT_LAYOUT], func.location)
    for symbol in layout.symbols:
        if symbol.name not in known:
            raise source.error(
                f"the layout '{layout}' of argument '{name}' has the symbolic size {symbol.name}, "
                "which is not the size of any argument's buffer",
                func.location,
                hint=f"give it a value in lego.sizes, or make it a size of a memref, such as "
                f"memref<?xf32> with the layout OrderBy(Row({symbol.name}))",
            )
    return tuple((symbol.name, str(known[symbol.name])) for symbol in layout.symbols)


def _argument(
    value: Any,
    name: str,
    attrs: Mapping[str, Any],
    access: ArgumentAccess,
    symbols: tuple[tuple[str, str], ...],
    layouts: Layouts,
    func: Any,
    source: Source,
) -> Argument:
    if not isinstance(value.type, ir.MemRefType):
        dtype = dtype_of(value.type, name, func, source)
        return Argument(name, dtype, None, None, "read")
    kind = ir.MemRefType(value.type)
    # A text over several lines is one of a single line to the bundle.
    layout = (
        " ".join(layout_text(attrs[dialect.ARGUMENT_LAYOUT]).split())
        if dialect.ARGUMENT_LAYOUT in attrs
        else None
    )
    alignment = dialect.alignment_in(attrs)
    dtype = dtype_of(kind.element_type, name, func, source)
    shape = tuple(None if kind.is_dynamic_dim(k) else n for k, n in enumerate(kind.shape))
    strides = _strides(kind, name, func, source)
    if strides is not None and layout is not None:
        _check_row_major(layouts(attrs[dialect.ARGUMENT_LAYOUT], func.location), name, func, source)
        layout, symbols = None, ()
    return Argument(name, dtype, shape, layout, access, alignment, strides, symbols)


def _check_row_major(layout: Layout, name: str, func: Any, source: Source) -> None:
    """Check that the tensor in a strided buffer is the buffer itself."""
    if layout.orders != OrderBy(Row(*layout.tensor_shape)).orders:
        raise source.error(
            f"argument '{name}' of @{name_of(func)} has both strides and the layout '{layout}', "
            "which reorders its elements",
            func.location,
            hint="say by the layout alone where its elements lie, and take the strides away",
        )


def _strides(kind: Any, name: str, func: Any, source: Source) -> tuple[int | None, ...] | None:
    """Return the strides of a buffer, `None` where the launch knows them; `None` if it is dense."""
    if is_dense(kind):
        return None
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    strides, offset = ([], unknown)
    if isinstance(kind.layout, ir.StridedLayoutAttr):
        strides, offset = kind.get_strides_and_offset()
    if offset != 0:
        raise source.error(
            f"argument '{name}' of @{name_of(func)} has the type {kind}: to run, its elements lie "
            "at strides from its address on",
            func.location,
            hint="write strided<[?, 1]>, without an offset, or a dense memref and a lego.layout",
        )
    return tuple(None if stride == unknown else stride for stride in strides)


def _accesses(module: Any, name: str) -> list[ArgumentAccess | None]:
    """Return how kernels access each argument of the host function of this name."""
    kernels = _gpu_functions(module)
    return [
        argument_access(value, kernels)
        for op in (o.operation for o in module.body.operations)
        if op.name == "func.func" and name_of(op) == name
        for value in op.regions[0].blocks[0].arguments
    ]


def name_of(func: Any) -> str:
    """Return the name of a function."""
    return func.attributes["sym_name"].value  # type: ignore[no-any-return]


def argument_attributes(func: Any, count: int) -> list[Mapping[str, Any]]:
    """Return the attributes of each of a function's arguments."""
    if "arg_attrs" not in func.attributes:
        return [{}] * count
    return [{e.name: e.attr for e in attrs} for attrs in func.attributes["arg_attrs"]]


def dtype_of(kind: Any, name: str, func: Any, source: Source) -> str:
    """Return the name of an element type that a kernel can be given from outside."""
    if str(kind) not in ELEMENT_BYTES:
        raise source.error(
            f"argument '{name}' of @{name_of(func)} has elements of type {kind}, which cannot be "
            "passed to a kernel",
            func.location,
            hint=f"use one of {', '.join(ELEMENT_BYTES)}",
        )
    return str(kind)


def constant_of(value: Any) -> Any:
    """Return the attribute of a value's constant, `None` if it is none."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return None
    return value.owner.operation.attributes["value"]
