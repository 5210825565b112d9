"""Updates that threads would lose: an error at the store that writes them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.layouts import Layouts
from lego_mlir.mlir.lowering.buffers import sources_of
from lego_mlir.mlir.updates.find_updates import updates
from lego_mlir.mlir.updates.ownership import Decision, Verdict, is_private, kernel_of, surroundings

_UPDATES = {
    "arith.maximumf": "max",
    "arith.maxsi": "max",
    "arith.minimumf": "min",
    "arith.minsi": "min",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
}
"""Which atomic update goes with an operation; addition with all others."""


def check_updates(operations: Sequence[Any], layouts: Layouts, source: Source) -> None:
    """Refuse updates of elements that are not known to be one thread's own.

    In a kernel on tiles one thread of a CTA stores what is no tile, so there CTAs own elements.

    Args:
        operations: all of a module in the lego dialect.
        layouts: of the module.
        source: the module's text, in which errors are shown.

    Raises:
        LegoError: at the store that writes such an element back.
    """

    def layout_of(op: Any) -> Layout:
        return layouts.of(op)

    for store in updates(operations):
        launch = _launch(store)
        kernel = None if launch is None else kernel_of(launch, layout_of, source)
        if kernel is None or is_private(store.operands[1]):
            continue  # a gpu.func does not say by how many threads it is run
        decision = Decision(store, kernel, layout_of, source, *surroundings(store, launch))
        verdict = decision.verdict(by_cta=dialect.FILLED in launch.attributes)
        if verdict is not Verdict.OWNED:
            raise _refused(store, verdict, source)


def _launch(op: Any) -> Any:
    """Return the gpu.launch that an operation is in, if any."""
    while op is not None and op.name != "gpu.launch":
        op = op.parent
    return op


def _refused(store: Any, verdict: Verdict, source: Source) -> LegoError:
    name = _name(store.operands[1])
    what = f"tensor '{name}'" if name else "a tensor"
    message = {
        Verdict.SHARED: f"several threads update the same element of {what} here, and what one of "
        "them writes is lost",
        Verdict.DATA: f"which element of {what} is updated here depends on loaded data: several "
        "threads may update the same one, and what one of them writes is lost",
    }.get(
        verdict,
        f"it is not known whether each element of {what} that is updated here is one thread's own; "
        "of an element of several threads, what one of them writes is lost",
    )
    maker = store.operands[0]
    operation = None if isinstance(maker, ir.BlockArgument) else maker.owner.name
    kind = _UPDATES.get(operation or "", "add")
    tensor = name or "tensor"
    if source.file.endswith(".py"):
        hint = (
            f"lg.atomic_{kind}({tensor}, index, value) updates it whole; if the kernel sees to it "
            f"that each element is one thread's own: {tensor}.exclusive()[index]"
        )
    else:
        hint = (
            f'\'"lego.atomic"(%value, %{tensor}, ...) {{layout = ..., kind = "{kind}"}}\' updates '
            "it whole; if each element is one thread's own, the store says so: {..., exclusive}"
        )
    return source.error(message, store.location, hint=hint)


def _name(buffer: Any) -> str | None:
    """Return the name of the host function's argument that a buffer is; `None` for any other."""
    whole, *others = sources_of(buffer)
    if others or not isinstance(whole, ir.BlockArgument):
        return None
    function = whole.owner.owner.operation
    if function.name != "func.func" or "arg_attrs" not in function.attributes:
        return None
    attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[whole.arg_number])
    return attributes[dialect.ARGUMENT_NAME].value if dialect.ARGUMENT_NAME in attributes else None
