"""Check the layouts and alignments of functions' arguments, and fill in the sizes of layouts."""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.layouts import Layouts, layout_attribute
from lego_mlir.mlir.lowering.buffers import elements_of


def complete_arguments(func: Any, layouts: Layouts, source: Source) -> None:
    """Give the arguments of a function layouts whose sizes are numbers where they are known.

    Args:
        func: an operation; only a `func.func` has such arguments.
        layouts: reads its layouts.
        source: the module's text, for errors.

    Raises:
        LegoError: an argument and its layout do not fit, or an alignment is no power of two.
    """
    if func.name != "func.func" or "arg_attrs" not in func.attributes:
        return
    kinds = ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value).inputs
    kept = []
    for number, attrs in enumerate(ir.ArrayAttr(func.attributes["arg_attrs"])):
        entries = {entry.name: entry.attr for entry in ir.DictAttr(attrs)}
        if dialect.ALIGNMENT in entries:
            _check_alignment(entries[dialect.ALIGNMENT], func, source)
        if dialect.ARGUMENT_LAYOUT in entries:
            layout = layouts(entries[dialect.ARGUMENT_LAYOUT], func.location)
            _check_layout(number, kinds[number], layout, func, source)
            entries[dialect.ARGUMENT_LAYOUT] = layout_attribute(layout)
        kept.append(ir.DictAttr.get(entries))
    func.attributes["arg_attrs"] = ir.ArrayAttr.get(kept)


def _check_alignment(attribute: Any, func: Any, source: Source) -> None:
    n = attribute.value if isinstance(attribute, ir.IntegerAttr) else 0
    if n < 1 or n & (n - 1):
        raise source.error(
            f"{dialect.ALIGNMENT} is a power of two in bytes, not '{attribute}'", func.location
        )


def _check_layout(number: int, kind: Any, layout: Layout, func: Any, source: Source) -> None:
    """Raise LegoError unless an argument's type has as many elements as its layout."""
    what = f"argument {number} of @{ir.StringAttr(func.attributes['sym_name']).value}"
    if not isinstance(kind, ir.MemRefType):
        raise source.error(f"{what} has a layout but is no memref, it is {kind}", func.location)
    if layout.window is not None:
        raise source.error(
            f"{what} has the layout '{layout}', a window; an argument is all of its elements",
            func.location,
            hint=f"here it is '{layout.base}'; windows are for what is read in kernels",
        )
    elements = elements_of(ir.MemRefType(kind))
    if elements is None or not isinstance(layout.size, int):
        return
    if elements != layout.size:
        raise source.error(
            f"{what}: {kind} has {elements} elements, its layout '{layout}' has {layout.size}",
            func.location,
            hint="the memref's shape and the sizes in lego.sizes must agree",
        )
