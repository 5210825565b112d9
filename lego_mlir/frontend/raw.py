"""The escape hatch: operations of MLIR and instructions of PTX that have no function here.

The compiler knows nothing of them but their types. They are no way to access memory or to wait for
other threads: layouts, checks and barriers do not see them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import Any

from lego_mlir.frontend.casts import element_type, in_shape_of
from lego_mlir.frontend.dtypes import check_dtype, is_unsigned, mlir_element
from lego_mlir.frontend.operators import meet_in_shape
from lego_mlir.frontend.tiles.tile import Tile
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.frontend.values import Value
from lego_mlir.mlir.bindings import ir

_OF_TILES = ("arith.", "math.")
"""Operations that take tiles as they take vectors."""

_CONSTRAINTS = {"f32": "f", "f64": "d", "i16": "h", "i32": "r", "i64": "l"}
"""The letters of inline PTX's registers, by MLIR's types (CUDA, "Inline PTX Assembly")."""

_BITS = {"f16": "i16", "bf16": "i16"}
"""Types whose bits inline PTX takes as those of integers."""


def op(name: str, *operands: Value, result: str, **attributes: Any) -> Value:
    """Record an operation of MLIR on each element.

        lg.op("math.atan", x, result="f32")
        lg.op("arith.cmpf", x, y, result="i1", predicate="7 : i64")

    Args:
        name: of the operation. Tiles are taken by those of arith and math.
        operands: values, which are broadcast to one shape.
        result: the name of its element type, or "i1".
        attributes: by name: text of MLIR, such as "7 : i64", or an attribute.

    Raises:
        LegoError: there is no such operation, or an attribute is none.
    """
    trace = current("op")
    values = _met(operands, trace, "op")
    if isinstance(values[0], Tile) and not name.startswith(_OF_TILES):
        raise trace.error(
            f"'{name}' takes no tiles",
            hint="operations of arith and math do; others stand in kernels of threads",
        )
    element = _element(result, trace)
    kind = in_shape_of(values[0].ssa.type, element)
    read = {key: _attribute(key, x, trace) for key, x in attributes.items()}
    try:
        made = ir.Operation.create(
            name,
            results=[kind],
            operands=[x.ssa for x in values],
            attributes=read,
            loc=trace.here(),
        )
        made.verify()
    except (ir.MLIRError, ValueError) as e:
        said = e.error_diagnostics[0].message if isinstance(e, ir.MLIRError) else e
        raise trace.error(f"'{name}' is no operation of these operands: {said}") from None
    return values[0].like(made.results[0], unsigned=is_unsigned(result))


def inline_ptx(text: str, *operands: Value, result: str) -> Value:
    """Record instructions of PTX, whose result depends on nothing but their operands.

        lg.inline_ptx("lop3.b32 $0, $1, $2, $3, 0x96;", a, b, c, result="i32")

    The instructions may be removed, repeated and reordered, as other arithmetic is. Of vectors they
    are made for each element.

    Args:
        text: the instructions; `$0` is the result, `$1` and so on are the operands, and `$$` is a
            dollar sign.
        operands: values of f16, bf16, f32, f64 or integers of 16, 32 or 64 bits, in one shape.
        result: the name of its element type, one of these.

    Raises:
        LegoError: a type has no register, or the text names an operand that there is not.
    """
    trace = current("inline_ptx")
    values = _met(operands, trace, "inline_ptx")
    if isinstance(values[0], Tile):
        raise trace.error(
            "'inline_ptx' takes scalars and vectors, not tiles",
            hint="lg.op makes operations of arith and math on tiles",
        )
    named = [int(n) for n in re.findall(r"\$(\d+)", text.replace("$$", ""))]
    if not text.isprintable() or any(n > len(values) for n in named):
        raise trace.error(
            f"the PTX {text!r} is no line of text that names $0 to ${len(values)}",
            hint="$0 is the result, $1 the first operand",
        )
    element = _element(result, trace)
    kinds = [element, *(element_type(x.ssa.type) for x in values)]
    letters = [_letter(kind, trace) for kind in kinds]
    constraints = ",".join([f"={letters[0]}", *letters[1:]])

    def made(*scalars: Any) -> Any:
        given = [_as_bits(x, trace) for x in scalars]
        register = ir.Type.parse(_BITS.get(str(element), str(element)))
        (found,) = trace.create(
            "llvm.inline_asm",
            [register],
            given,
            asm_string=ir.StringAttr.get(text),
            constraints=ir.StringAttr.get(constraints),
        )
        return (
            found if register == element else trace.create("arith.bitcast", [element], [found])[0]
        )

    found = _by_element(made, values, element, trace)
    return values[0].like(found, unsigned=is_unsigned(result))


def _met(operands: tuple[Any, ...], trace: Trace, what: str) -> list[Value]:
    if not operands or not all(isinstance(x, Value) for x in operands):
        raise trace.error(f"'{what}' takes kernel values, not {operands!r}")
    return meet_in_shape(operands, trace)


def _element(dtype: str, trace: Trace) -> Any:
    if dtype in ("i1", "index"):
        return ir.Type.parse(dtype)
    check_dtype(dtype, trace.error)
    return mlir_element(dtype)


def _attribute(name: str, x: Any, trace: Trace) -> Any:
    if isinstance(x, ir.Attribute):
        return x
    try:
        return ir.Attribute.parse(x)
    except (ir.MLIRError, TypeError, ValueError):
        raise trace.error(
            f"the attribute '{name}' is text of MLIR, not {x!r}", hint='predicate="7 : i64"'
        ) from None


def _letter(kind: Any, trace: Trace) -> str:
    name = str(kind)
    letter = _CONSTRAINTS.get(_BITS.get(name, name))
    if letter is None:
        raise trace.error(
            f"PTX has no registers of {name}", hint='.to("i32") converts it, or .below(n) an index'
        )
    return letter


def _as_bits(x: Any, trace: Trace) -> Any:
    bits = _BITS.get(str(x.type))
    return x if bits is None else trace.create("arith.bitcast", [ir.Type.parse(bits)], [x])[0]


def _by_element(make: Callable[..., Any], values: list[Value], element: Any, trace: Trace) -> Any:
    """Return what is made of scalars, or, as a vector, of the elements of vectors."""
    shape = values[0].shape
    if not shape:
        return make(*(x.ssa for x in values))
    found = []
    for n in range(prod(shape)):
        at: list[int] = []
        for size in reversed(shape):
            at.insert(0, n % size)
            n //= size
        found.append(make(*(x[tuple(at)].ssa for x in values)))
    kind = in_shape_of(values[0].ssa.type, element)
    return trace.create("vector.from_elements", [kind], found)[0]
