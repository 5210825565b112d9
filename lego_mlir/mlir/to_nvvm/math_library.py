"""What operations of mathematics become where the passes know no GPU's way.

Functions of the math dialect become calls of NVIDIA's libdevice, declared and not defined. What
`pipelines/mathematics.mlir` defines replaces them, and in modules with exact mathematics first
what `pipelines/exact_mathematics.mlir` does; the back end then inlines it. Maxima and minima are
kept from becoming comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lego_mlir import data
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.modules import operations_in, symbols_in

_PREFIX = "__nv_"

_COMMON, _EXACT = "mathematics.mlir", "exact_mathematics.mlir"

_EXTREMES = {"arith.maximumf": "llvm.intr.maximum", "arith.minimumf": "llvm.intr.minimum"}


def has_extremes(operations: Iterable[Any]) -> bool:
    """Return whether there are operations that `keep_extremes` is about."""
    return any(op.name in _EXTREMES for op in operations)


def keep_extremes(module: Any) -> None:
    """Take maxima and minima of floating point past the pass arith-expand.

    It makes comparisons and selections of them, where a GPU has an instruction (PTX ISA, "max").

    Args:
        module: before it is lowered to the llvm dialect, changed in place; its context is the
            current one.
    """
    for op in list(operations_in(module.operation)):
        if op.name not in _EXTREMES:
            continue
        kind = op.results[0].type
        if isinstance(kind, ir.VectorType) and kind.rank == 1:
            kind = kind.element_type
        if not isinstance(kind, ir.F16Type | ir.BF16Type | ir.F32Type):
            continue
        with ir.InsertionPoint(op), op.location:
            kept = ir.Operation.create(
                _EXTREMES[op.name], results=[op.results[0].type], operands=list(op.operands)
            )
        op.results[0].replace_all_uses_with(kept.results[0])
        op.erase()


def define_mathematics(module: Any, source: Source, *, exact: bool) -> None:
    """Replace by a body every declaration that a kernel's mathematics has left.

    Args:
        module: lowered to the llvm dialect, changed in place; its context is the current one.
        source: the module's text, in which errors are shown.
        exact: take the functions of smaller errors where there are several.

    Raises:
        LegoError: there is no body for one of them.
    """
    declared = [op for op in symbols_in(module) if _is_declared(op)]
    if not declared:
        return
    library = _library(_COMMON) | (_library(_EXACT) if exact else {})
    for op in declared:
        name = op.attributes["sym_name"].value
        if name not in library:
            singles = sorted(x.removeprefix(_PREFIX)[:-1] for x in library if x.endswith("f"))
            known = ", ".join(singles)
            raise source.error(
                f"a kernel calls the function '{name}' of mathematics, which there is no code for",
                _caller(module, name).location,
                hint=f"there is code for {known} of f32 and of what converts to it",
            )
        library[name].clone(ip=ir.InsertionPoint(op))
        op.erase()


def _library(file: str) -> dict[str, Any]:
    """Return the functions of a file, by name."""
    text = (data.pipelines() / file).read_text()
    functions = [op.operation.detach_from_parent() for op in ir.Module.parse(text).body.operations]
    return {op.attributes["sym_name"].value: op for op in functions}


def _is_declared(op: Any) -> bool:
    return (
        op.name == "llvm.func"
        and op.attributes["sym_name"].value.startswith(_PREFIX)
        and not list(op.regions[0].blocks)
    )


def _caller(module: Any, name: str) -> Any:
    """Return the first call of a function that is declared."""
    return next(
        op
        for op in operations_in(module.operation)
        if op.name == "llvm.call"
        and "callee" in op.attributes
        and op.attributes["callee"].value == name
    )
