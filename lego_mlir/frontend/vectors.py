"""Vectors, which one thread holds, and the dot of vectors or of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.frontend.casts import element_type
from lego_mlir.frontend.dtypes import is_unsigned
from lego_mlir.frontend.tiles.creation import checked_tile, zeros
from lego_mlir.frontend.tiles.creation import dot as tile_dot
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.frontend.values import Value
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect.tile_operations import DOT_INSTRUCTIONS, DotInstruction

_MAPS = ("(i, j, k) -> (i, k)", "(i, j, k) -> (k, j)", "(i, j, k) -> (i, j)")


def concatenate(values: Sequence[Value]) -> Value:
    """Return the elements of several vectors of one dimension, one vector after another.

    Args:
        values: vectors, or single elements, of one element type.
    """
    trace = current("concatenate")
    elements: list[Value] = []
    for value in values:
        kind: Any = getattr(getattr(value, "ssa", None), "type", None)
        if kind is None or (isinstance(kind, ir.VectorType) and kind.rank != 1):
            raise trace.error(f"'concatenate' takes vectors of one dimension, not {value!r}")
        is_vector = isinstance(kind, ir.VectorType)
        elements += [value[k] for k in range(kind.shape[0])] if is_vector else [value]
    kinds = {element.dtype for element in elements}
    if len(kinds) != 1:
        names = ", ".join(sorted(kinds)) or "nothing"
        raise trace.error(f"'concatenate' takes vectors of one element type, not {names}")
    result = ir.VectorType.get([len(elements)], elements[0].ssa.type)
    operands = [element.ssa for element in elements]
    return elements[0].like(trace.create("vector.from_elements", [result], operands)[0])


def _check_signed(x: Value, y: Value, trace: Trace) -> None:
    """Raise LegoError for operands of unsigned integers, whose types in MLIR have no sign."""
    unsigned = [operand.dtype for operand in (x, y) if is_unsigned(operand.dtype)]
    if unsigned:
        raise trace.error(
            f"'dot' of {unsigned[0]}: its instructions take signed integers",
            hint='subtract 128 and .to("i8"), or .to("f16"), which has all integers up to 2048',
        )


def dot(
    x: Value,
    y: Value,
    total: Value | None = None,
    *,
    instruction: DotInstruction | None = None,
) -> Value:
    """Return the matrix multiplication of two tiles plus an accumulator, `total + x @ y`.

    Args:
        x: a tile, or in a kernel of threads a vector, m×k.
        y: a tile or vector, k×n, of the same element type.
        total: a tile or vector, m×n, of the accumulator's type; without it zeros, of f32
            for floating point and of i32 for integers.
        instruction: of tiles, what multiplies them: `wgmma` or `mma.sync`. By default what costs
            less.

    Returns:
        A tile or vector, m×n.
    """
    trace = current("dot")
    if instruction is not None and (trace.warps is None or instruction not in DOT_INSTRUCTIONS):
        raise trace.error(
            f"'dot' of instruction = {instruction!r}",
            hint="in a kernel on tiles one of "
            f"{', '.join(map(repr, DOT_INSTRUCTIONS))}; in a kernel of threads each thread "
            "multiplies its own vectors",
        )
    if trace.warps is not None:
        x, y = (checked_tile(tile, trace, "dot") for tile in (x, y))
        given = None if total is None else checked_tile(total, trace, "dot")
        _check_signed(x, y, trace)
        return tile_dot(x, y, given, instruction)
    m, n = _shape(x, y, trace)
    _check_signed(x, y, trace)
    element = element_type(x.ssa.type)
    if total is None:
        total = zeros((m, n), "f32" if isinstance(element, ir.FloatType) else "i32")
    kind = total.ssa.type
    if not isinstance(kind, ir.VectorType) or tuple(kind.shape) != (m, n):
        raise trace.error(f"a GEMM of size {m}×{n} is added to {kind}")
    if isinstance(kind.element_type, ir.FloatType) != isinstance(element, ir.FloatType):
        raise trace.error(
            f"a GEMM of {element} is accumulated in {kind.element_type}",
            hint="floating point is summed in floating point, integers in integers",
        )
    attributes: dict[str, Any] = {
        "indexing_maps": ir.ArrayAttr.get([ir.Attribute.parse(f"affine_map<{m}>") for m in _MAPS]),
        "iterator_types": ir.Attribute.parse(
            "[#vector.iterator_type<parallel>, #vector.iterator_type<parallel>, "
            "#vector.iterator_type<reduction>]"
        ),
        "kind": ir.Attribute.parse("#vector.kind<add>"),
    }
    operands = [x.ssa, y.ssa, total.ssa]
    (result,) = trace.create("vector.contract", [kind], operands, **attributes)
    return Value(result, trace)


def _shape(x: Any, y: Any, trace: Trace) -> tuple[int, int]:
    """Return the sizes m, n and k of a matrix multiplication."""
    kinds = [value.ssa.type if isinstance(value, Value) else None for value in (x, y)]
    if not all(isinstance(kind, ir.VectorType) and kind.rank == 2 for kind in kinds):
        names = " and ".join(str(kind or repr(v)) for kind, v in zip(kinds, (x, y), strict=True))
        raise trace.error(
            f"'dot' is about two matrices, not {names}",
            hint="a matrix is a tile of two whole dimensions: a[m, k, :, :]",
        )
    a, b = kinds
    assert a is not None
    assert b is not None
    if a.shape[1] != b.shape[0] or a.element_type != b.element_type:
        raise trace.error(
            f"there is no GEMM of {a} and {b}",
            hint="the columns of the first are the rows of the second, of one element type",
        )
    return a.shape[0], b.shape[1]
