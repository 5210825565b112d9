"""Values inside a kernel: what one thread holds, an SSA value underneath."""

from __future__ import annotations

from typing import Any, TypeAlias

from lego_mlir.algebra import Layout
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.mlir.bindings import ir

Operand: TypeAlias = "Value | int | float"


class Value:
    """An SSA value with Python's operators: a number, an index, or a vector of these.

    On indices `//` and `%` are floor division and modulo, as in index expressions. Rather than to
    compute indices, apply a layout: `layout.apply(i, j)` and `layout.inv(flat)` take these values.
    """

    __slots__ = ("_trace", "ssa")

    def __init__(self, ssa: Any, trace: Trace) -> None:
        self.ssa = ssa
        self._trace = trace

    @property
    def dtype(self) -> str:
        """MLIR's name of the type."""
        return str(self.ssa.type)

    def __repr__(self) -> str:
        return f"<kernel value {self.dtype}>"

    def __bool__(self) -> bool:
        raise self._trace.error(
            "the truth of a kernel value is not known while the kernel is traced",
            hint="Python's if and while run once, at trace time; choose with layouts or lg.loop",
        )

    def __iter__(self) -> Any:
        raise self._trace.error("a kernel value is one element and cannot be unpacked")

    def __getitem__(self, index: int | tuple[int, ...]) -> Value:
        """An element of a vector, or one of its rows: `v[1]`, `v[1, 2]`, the indices numbers."""
        at = index if isinstance(index, tuple) else (index,)
        shape = self._shape("[]")
        inside = all(-n <= i < n for i, n in zip(at, shape, strict=False))
        if not 0 < len(at) <= len(shape) or not inside:
            raise self._trace.error(f"index {list(at)} is not inside of the vector {self.dtype}")
        rest = list(shape[len(at) :])
        element = self.ssa.type.element_type
        kind = ir.VectorType.get(rest, element) if rest else element
        place = [i % n for i, n in zip(at, shape, strict=False)]
        static = ir.DenseI64ArrayAttr.get(place)
        (result,) = self._trace.create("vector.extract", [kind], [self.ssa], static_position=static)
        return Value(result, self._trace)

    @property
    def T(self) -> Value:  # noqa: N802  (NumPy's name)
        """A vector with its dimensions in reverse order."""
        shape = self._shape(".T")
        kind = ir.VectorType.get(list(reversed(shape)), self.ssa.type.element_type)
        order = ir.DenseI64ArrayAttr.get(list(reversed(range(len(shape)))))
        (result,) = self._trace.create("vector.transpose", [kind], [self.ssa], permutation=order)
        return Value(result, self._trace)

    def _shape(self, what: str) -> tuple[int, ...]:
        """The sizes of a vector, for an operation on vectors alone."""
        kind = self.ssa.type
        if not isinstance(kind, ir.VectorType):
            raise self._trace.error(f"'{what}' is for vectors, not {kind}")
        return tuple(kind.shape)

    def __lego_apply__(self, layout: Layout, index: tuple[Any, ...]) -> Value:
        return apply(layout, index)

    def __lego_mask__(self, layout: Layout, index: tuple[Any, ...]) -> Value:
        return mask(layout, index)

    def __lego_inv__(self, layout: Layout) -> tuple[Value, ...]:
        trace = self._trace
        kind = ir.IndexType.get()
        results = trace.create(
            "lego.inv", [kind] * layout.rank, [self.ssa], layout=trace.layout(layout)
        )
        return tuple(Value(r, trace) for r in results)

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
        return self._index_division("arith.floordivsi", other)

    def __mod__(self, other: Operand) -> Value:
        quotient = self._index_division("arith.floordivsi", other)
        return self - quotient * other

    def __neg__(self) -> Value:
        return self._arithmetic("sub", 0, self)

    def _arithmetic(self, name: str, a: Operand, b: Operand) -> Value:
        trace = self._trace
        kind = self.ssa.type
        for x in (a, b):
            if isinstance(x, Value) and isinstance(x.ssa.type, ir.VectorType):
                kind = x.ssa.type
        lhs, rhs = (as_value(x, kind, trace) for x in (a, b))
        floating = isinstance(_element(kind), ir.FloatType)
        if name == "div" and not floating:
            raise trace.error(
                f"'/' of {kind} values", hint="'//' is floor division; '/' is for floating point"
            )
        (result,) = trace.create(
            f"arith.{name}{'f' if floating else 'i'}", [kind], [lhs.ssa, rhs.ssa]
        )
        return Value(result, trace)

    def _index_division(self, name: str, other: Operand) -> Value:
        trace = self._trace
        kind = self.ssa.type
        if isinstance(_element(kind), ir.FloatType):
            raise trace.error(f"'//' and '%' are for integers, not {kind}")
        rhs = as_value(other, kind, trace)
        (result,) = trace.create(name, [kind], [self.ssa, rhs.ssa])
        return Value(result, trace)


def apply(layout: Layout, index: tuple[Any, ...]) -> Value:
    """`layout.apply` on kernel values, as a lego.apply."""
    trace = current("a layout on kernel values")
    operands = [as_index(i, trace).ssa for i in index]
    (result,) = trace.create(
        "lego.apply", [ir.IndexType.get()], operands, layout=trace.layout(layout)
    )
    return Value(result, trace)


def mask(layout: Layout, index: tuple[Any, ...]) -> Value:
    """`layout.mask` on kernel values, as a lego.mask: a truth value."""
    trace = current("a layout on kernel values")
    operands = [as_index(i, trace).ssa for i in index]
    kind = ir.IntegerType.get_signless(1)
    (result,) = trace.create("lego.mask", [kind], operands, layout=trace.layout(layout))
    return Value(result, trace)


def as_index(x: Any, trace: Trace) -> Value:
    """`x` as an index value."""
    return as_value(x, ir.IndexType.get(), trace)


def as_value(x: Any, kind: Any, trace: Trace) -> Value:
    """`x` as a value of an MLIR type: itself, or a constant; of a vector, in every place.

    Raises:
        LegoError: it has another type, or is no number.
    """
    if isinstance(x, Value):
        if isinstance(kind, ir.VectorType) and x.ssa.type == kind.element_type:
            return Value(trace.create("vector.broadcast", [kind], [x.ssa])[0], trace)
        if x.ssa.type != kind:
            raise trace.error(f"a value of type {kind} is needed, not {x.ssa.type}")
        return x
    if hasattr(x, "item") and getattr(x, "ndim", None) == 0:
        x = x.item()
    if isinstance(x, bool) or not isinstance(x, int | float):
        raise trace.error(f"a value of type {kind} is needed, not {x!r}")
    element = _element(kind)
    if isinstance(element, ir.FloatType):
        attribute = ir.FloatAttr.get(element, float(x))
    elif isinstance(x, int):
        attribute = ir.IntegerAttr.get(element, x)
    else:
        raise trace.error(f"a value of type {kind} is needed, not {x!r}")
    if isinstance(kind, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(kind, attribute)
    (result,) = trace.create("arith.constant", [kind], [], value=attribute)
    return Value(result, trace)


def _element(kind: Any) -> Any:
    """The type of a vector's elements; another type is its own."""
    return kind.element_type if isinstance(kind, ir.VectorType) else kind
