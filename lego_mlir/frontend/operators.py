"""Operators of kernel values, element by element, and how their operands meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from lego_mlir.frontend import coercion
from lego_mlir.frontend.casts import element_type, in_shape_of, is_float, is_truth
from lego_mlir.frontend.dtypes import dtype_of
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from lego_mlir.frontend.values import Value

Operand: TypeAlias = "Operators | int | float"

_INTEGER_ORDERS = {"lt": 2, "le": 3, "gt": 4, "ge": 5}  # signed; unsigned ones follow, 4 higher
_FLOAT_ORDERS = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}  # false of NaN, but `ne`


class Operators:
    """Python's operators of `Value`, and the functions that `lego_mlir.index` takes of it."""

    __slots__ = ("_trace", "_unsigned", "ssa")

    __hash__ = None  # type: ignore[assignment]

    precedence = 0
    """Where values of several classes meet, the others become as the one of the highest."""

    def __init__(self, ssa: Any, trace: Trace, *, unsigned: bool = False) -> None:
        self.ssa = ssa
        self._trace = trace
        self._unsigned = unsigned

    @property
    def dtype(self) -> str:
        """The name of the element type: MLIR's, and `u32` of unsigned integers."""
        return dtype_of(element_type(self.ssa.type), unsigned=self._unsigned)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of a vector or tile; `()` of a scalar."""
        kind = self.ssa.type
        return tuple(kind.shape) if isinstance(kind, ir.VectorType) else ()

    @property
    def trace(self) -> Trace:
        """What records the kernel."""
        return self._trace

    @property
    def described(self) -> str:
        """The type as errors show it."""
        return str(self.ssa.type).replace(str(element_type(self.ssa.type)), self.dtype)

    def like(self, ssa: Any, *, unsigned: bool | None = None) -> Value:
        """Return the value of this shape that another SSA value is."""
        raise NotImplementedError

    def spread(self, x: Operand, shape: tuple[int, ...], element: Any, *, unsigned: bool) -> Value:
        """Return an operand as a value of a shape that values as this one have.

        Args:
            x: a number, or a value of the element type.
            shape: the sizes; a scalar is spread to every element.
            element: the MLIR element type.
            unsigned: its integers are unsigned.
        """
        raise NotImplementedError

    def __lego_where__(self, condition: Any, a: Operand, b: Operand) -> Value:
        return where(condition, a, b)

    def __lego_maximum__(self, a: Operand, b: Operand) -> Value:
        return self._extreme("max", a, b)

    def __lego_minimum__(self, a: Operand, b: Operand) -> Value:
        return self._extreme("min", a, b)

    def __add__(self, other: Operand) -> Value:
        return self._arithmetic("add", self, other)

    def __radd__(self, other: Operand) -> Value:
        return self._arithmetic("add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return self._arithmetic("sub", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return self._arithmetic("sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return self._arithmetic("mul", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return self._arithmetic("mul", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return self._arithmetic("div", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self._arithmetic("div", other, self)

    def __floordiv__(self, other: Operand) -> Value:
        return self._integer_division("arith.floordivsi", "arith.divui", other)

    def __mod__(self, other: Operand) -> Value:
        if self._unsigned:
            return self._integer_division("arith.remui", "arith.remui", other)
        quotient = self._integer_division("arith.floordivsi", "arith.divui", other)
        return self - quotient * other

    def __neg__(self) -> Value:
        self.check_arithmetic("-")
        if not is_float(self.ssa.type):
            return self._arithmetic("sub", 0, self)
        return pointwise("arith.negf", [self])  # 0 - x loses -0.0

    def __and__(self, other: Operand) -> Value:
        return self._bitwise("and", "&", other)

    def __or__(self, other: Operand) -> Value:
        return self._bitwise("or", "|", other)

    def __xor__(self, other: Operand) -> Value:
        return self._bitwise("xor", "^", other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Value:
        return self._bitwise("xor", "~", True if is_truth(self.ssa.type) else self._all_bits())

    def __lshift__(self, other: Operand) -> Value:
        return self._shift("shl", "<<", self, other)

    def __rshift__(self, other: Operand) -> Value:
        return self._shift("shru" if self._unsigned else "shrs", ">>", self, other)

    def __rlshift__(self, other: Operand) -> Value:
        return self._shift("shl", "<<", other, self)

    def __rrshift__(self, other: Operand) -> Value:
        return self._shift("shru" if self._unsigned else "shrs", ">>", other, self)

    def __eq__(self, other: Operand) -> Value:  # type: ignore[override]
        return self._compared("eq", other)

    def __ne__(self, other: Operand) -> Value:  # type: ignore[override]
        return self._compared("ne", other)

    def __lt__(self, other: Operand) -> Value:
        return self._compared("lt", other)

    def __le__(self, other: Operand) -> Value:
        return self._compared("le", other)

    def __gt__(self, other: Operand) -> Value:
        return self._compared("gt", other)

    def __ge__(self, other: Operand) -> Value:
        return self._compared("ge", other)

    def _compared(self, order: str, other: Operand) -> Value:
        i64, i1 = (ir.IntegerType.get_signless(n) for n in (64, 1))
        a, b = meet([self, other], self._trace)
        if is_float(a.ssa.type):
            self.check_arithmetic("a comparison")
            name, number = "arith.cmpf", _FLOAT_ORDERS[order]
        else:
            has_no_sign = a._unsigned or is_truth(a.ssa.type)
            number = {"eq": 0, "ne": 1}.get(order, _INTEGER_ORDERS.get(order, 0) + 4 * has_no_sign)
            name = "arith.cmpi"
        predicate = ir.IntegerAttr.get(i64, number)
        return pointwise(name, [a, b], element=i1, unsigned=False, predicate=predicate)

    def _arithmetic(self, name: str, a: Operand, b: Operand) -> Value:
        self.check_arithmetic(name)
        lhs, rhs = meet([a, b], self._trace)
        floating = is_float(lhs.ssa.type)
        if name == "div" and not floating:
            raise self._trace.error(
                f"'/' of {lhs.described} values",
                hint="'//' is floor division; '/' is for floating point",
            )
        return pointwise(f"arith.{name}{'f' if floating else 'i'}", [lhs, rhs])

    def _bitwise(self, name: str, sign: str, other: Operand) -> Value:
        self._check_integers(sign)
        return pointwise(f"arith.{name}i", meet([self, other], self._trace))

    def _shift(self, name: str, sign: str, a: Operand, b: Operand) -> Value:
        self._check_integers(sign)
        self.check_arithmetic(sign)
        width = getattr(element_type(self.ssa.type), "width", 64)
        if isinstance(b, int) and not 0 <= b < width:
            raise self._trace.error(f"'{sign}' of {self.dtype} by {b}", hint=f"0 to {width - 1}")
        return pointwise(f"arith.{name}i", meet([a, b], self._trace))

    def _all_bits(self) -> int:
        return (1 << element_type(self.ssa.type).width) - 1 if self._unsigned else -1

    def _extreme(self, name: str, a: Operand, b: Operand) -> Value:
        """Return the greater or the smaller value; NaN if one is NaN, as in NumPy."""
        self.check_arithmetic(name)
        lhs, rhs = meet([a, b], self._trace)
        sign = "ui" if lhs._unsigned else "si"
        return pointwise(f"arith.{name}{'imumf' if is_float(lhs.ssa.type) else sign}", [lhs, rhs])

    def check_arithmetic(self, name: str) -> None:
        """Raise LegoError for what has no arithmetic: truth values, and 8-bit floats."""
        element = element_type(self.ssa.type)
        if is_truth(element):
            raise self._trace.error(
                f"'{name}' of truth values, which are no numbers",
                hint='.to("i32") makes 1 and 0 of them',
            )
        if isinstance(element, ir.FloatType) and element.width == 8:
            raise self._trace.error(
                f"'{name}' of {element}, which a GPU converts and multiplies in lg.dot only",
                hint=f'compute in another type, x.to("f32"), and go back by .to("{element}")',
            )

    def _check_integers(self, sign: str) -> None:
        if is_float(self.ssa.type):
            raise self._trace.error(
                f"'{sign}' is for integers and truth values, not {self.described}",
                hint='the bits of a float: x.bitcast("i32")',
            )

    def _integer_division(self, name: str, unsigned_name: str, other: Operand) -> Value:
        self.check_arithmetic("//")
        if is_float(self.ssa.type):
            raise self._trace.error(f"'//' and '%' are for integers, not {self.described}")
        if isinstance(other, int) and other == 0:
            raise self._trace.error("division by zero")
        operands = meet([self, other], self._trace)
        return pointwise(unsigned_name if self._unsigned else name, operands)


def meet(operands: Sequence[Operand], trace: Trace) -> list[Value]:
    """Return operands as values of one shape and element type, which one of them has.

    Args:
        operands: at least one value, and numbers.
        trace: of the kernel.

    Raises:
        LegoError: they have different element types, or shapes that do not broadcast.
    """
    values = [x for x in operands if isinstance(x, Operators)]
    first = next((v for v in values if v.dtype != "index"), values[0])
    element, unsigned = element_type(first.ssa.type), first._unsigned
    leader, shape = _together(values, trace)
    return [leader.spread(x, shape, element, unsigned=unsigned) for x in operands]


def meet_in_shape(values: Sequence[Operators], trace: Trace) -> list[Value]:
    """Return values of any element types as values of one shape."""
    leader, shape = _together(values, trace)
    return [leader.spread(x, shape, element_type(x.ssa.type), unsigned=x._unsigned) for x in values]


def _together(values: Sequence[Operators], trace: Trace) -> tuple[Operators, tuple[int, ...]]:
    """Return one of values that the others become as, and the shape of all."""
    shape = coercion.common_shape([x.shape for x in values])
    if shape is None:
        shown = " and ".join(dict.fromkeys(x.described for x in values))
        raise trace.error(
            f"values of the types {shown} do not broadcast",
            hint="counted from the last, sizes are the same or 1: v[:, None] is a column",
        )
    return max(values, key=lambda x: x.precedence), shape


def pointwise(
    name: str,
    operands: Sequence[Operators],
    *,
    element: Any = None,
    unsigned: bool | None = None,
    **attributes: Any,
) -> Value:
    """Record an operation on each element.

    Args:
        name: of the operation.
        operands: values of one shape.
        element: the MLIR element type of the result, by default that of the last operand.
        unsigned: whether its integers are unsigned, by default as those of the last operand.
        attributes: of the operation.
    """
    last = operands[-1]
    kind = last.ssa.type if element is None else in_shape_of(last.ssa.type, element)
    (result,) = last.trace.create(name, [kind], [x.ssa for x in operands], **attributes)
    return last.like(result, unsigned=unsigned)


def where(condition: Any, x: Operand, y: Operand) -> Value:
    """Return `x` where a condition holds, else `y`, element by element.

    Args:
        condition: truth values.
        x: a value or a number, not both numbers.
        y: of the same element type.

    Raises:
        LegoError: the condition is none, or the values do not go together.
    """
    trace = current("where")
    if not isinstance(condition, Operators) or not is_truth(condition.ssa.type):
        shown = condition.described if isinstance(condition, Operators) else repr(condition)
        raise trace.error(
            f"the condition of 'where' is a truth value, not {shown}",
            hint="comparisons give truth values: lg.where(x > 0, x, 0.0)",
        )
    if not isinstance(x, Operators) and not isinstance(y, Operators):
        dtype = "i32" if isinstance(x, int) and isinstance(y, int) else "f32"
        raise trace.error(
            f"'where' takes {x!r} or {y!r}, whose type is not known",
            hint=f'one of them is a value: lg.full((), {x!r}, "{dtype}"), or '
            f'condition.to("{dtype}")',
        )
    a, b = meet([x, y], trace)
    if not condition.shape:  # one for all elements
        return pointwise("arith.select", [condition, *meet_in_shape([a, b], trace)])
    return pointwise("arith.select", meet_in_shape([condition, a, b], trace))
