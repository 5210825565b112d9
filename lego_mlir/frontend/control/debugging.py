"""Messages of kernels that run, and conditions that stop them."""

from __future__ import annotations

from string import Formatter
from typing import Any

from lego_mlir.frontend.casts import is_float
from lego_mlir.frontend.control.loops import truth
from lego_mlir.frontend.control.regions import as_values
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.frontend.values import Value
from lego_mlir.mlir.bindings import ir

_LONGEST = 1000


def printf(text: str, *values: Any) -> None:
    """Print a line of a message from the kernel.

        lg.printf("row {}: {} of {}", lg.block_id(), total, count)

    Each thread prints its values; in kernels on tiles one thread of the CTA does. Lines of
    different threads come in no order.

    Args:
        text: the message; `{}` stands for the next value.
        values: scalars, one for each `{}`.

    Raises:
        LegoError: there are more or fewer values, or one is no scalar.
    """
    trace = current("printf")
    pieces = _pieces(text, trace)
    scalars = as_values(values, trace, "'printf'")
    if len(pieces) != len(scalars) + 1:
        raise trace.error(
            f"the message {text!r} has {len(pieces) - 1} values, given are {len(scalars)}",
            hint='lg.printf("x is {}", x)',
        )
    shown = [_shown(value, trace) for value in scalars]
    form = pieces[0] + "".join(
        f"{how}{piece}" for (how, _), piece in zip(shown, pieces[1:], strict=True)
    )

    trace.create("gpu.printf", [], [ssa for _, ssa in shown], format=ir.StringAttr.get(form + "\n"))


def check(condition: Any, message: Any = "lg.check fails") -> None:
    """Stop the launch with an error unless a condition holds.

    In the simulator the error has the message and the place; on a GPU the launch fails. It costs a
    comparison and a branch.

    Args:
        condition: a scalar truth value; of a tile lg.all(x) is one.
        message: what is wrong where the condition is false.
    """
    trace = current("check")
    if not isinstance(message, str) or not message.isprintable() or len(message) > _LONGEST:
        raise trace.error(f"the message of a check is one line of text, not {message!r}")
    holds = truth(condition, trace, "the condition of lg.check")
    trace.create("cf.assert", [], [holds], msg=ir.StringAttr.get(message))


def _pieces(text: Any, trace: Trace) -> list[str]:
    """Return what stands between the values of a message, as C's printf has it."""
    try:
        parsed = list(Formatter().parse(text)) if isinstance(text, str) else None
    except ValueError:
        parsed = None
    if parsed is None or any(f or spec or conversion for _, f, spec, conversion in parsed):
        raise trace.error(
            f"{text!r} is no message of lg.printf", hint="{} stands for a value, {{ for a brace"
        )
    pieces = [""]
    for literal, field, *_ in parsed:
        pieces[-1] += literal.replace("%", "%%")
        if field is not None:
            pieces.append("")
    return pieces


def _shown(value: Value, trace: Trace) -> tuple[str, Any]:
    """Return how printf shows a scalar, and the value that it gets."""
    if value.shape or "vector" in value.described:
        raise trace.error(
            f"'printf' shows scalars, not {value.described}",
            hint="lg.printf of lg.sum(tile), or of an element of a vector",
        )
    if is_float(value.ssa.type):
        return "%g", value.to("f64").ssa
    has_no_sign = value.dtype.startswith("u") or value.dtype == "i1"
    wide = value.to("u64" if has_no_sign else "i64")
    return ("%llu" if has_no_sign else "%lld"), wide.ssa
