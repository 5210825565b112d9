"""Values inside a kernel: what one thread holds, an SSA value underneath."""

from __future__ import annotations

from math import isfinite
from typing import Any, NoReturn, TypeAlias

from lego_mlir.algebra import Layout
from lego_mlir.frontend.casts import cast, element_type, is_truth
from lego_mlir.frontend.dtypes import check_dtype
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.lowering.indices.claims import RESULT, Claim

Operand: TypeAlias = "Value | int | float"


class Value:
    """An SSA value with Python's operators: a number, an index, or a vector of these.

    On indices `//` and `%` are floor division and modulo, as in index expressions. Rather than to
    compute indices, apply a layout: `layout.apply(i, j)` and `layout.inv(flat)` take these values.

    Vectors meet as NumPy's arrays do: a number with every element, a vector of 128 with every row
    of one of 64×128, and `v[:, None]` of a vector of 64 with every column of it.
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

    def _compare(self, other: object) -> NoReturn:
        raise self._trace.error(
            "how kernel values compare is not known while the kernel is traced",
            hint="lg.maximum and lg.minimum take one of two values; lg.choose(number, functions) "
            "does what goes with an index",
        )

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compare
    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Any:
        raise self._trace.error("a kernel value is one element and cannot be unpacked")

    def __getitem__(self, index: Any) -> Value:
        """Return an element of a vector or one of its rows: `v[1]`, `v[1, 2]`.

        `v[:, None]` is the vector as a column, and `v[[0, 1, 8, 9]]` is a vector of some elements
        of a vector of one dimension, as in NumPy.
        """
        at = index if isinstance(index, tuple) else (index,)
        shape = self._shape("[]")
        if isinstance(index, list):
            return self._elements(shape, index)
        if any(i is None or isinstance(i, slice) for i in at):
            return self._with_axes(shape, at)
        if not all(isinstance(i, int) for i in at):
            raise self._trace.error("the index of a vector's element is a number")
        inside = all(-n <= i < n for i, n in zip(at, shape, strict=False))
        if not 0 < len(at) <= len(shape) or not inside:
            raise self._trace.error(f"index {list(at)} is not inside of the vector {self.dtype}")
        rest = list(shape[len(at) :])
        element = self.ssa.type.element_type
        kind = ir.VectorType.get(rest, element) if rest else element
        position = [i % n for i, n in zip(at, shape, strict=False)]
        static = ir.DenseI64ArrayAttr.get(position)
        (result,) = self._trace.create("vector.extract", [kind], [self.ssa], static_position=static)
        return Value(result, self._trace)

    def _elements(self, shape: tuple[int, ...], at: list[Any]) -> Value:
        """Return a vector of the elements at these positions."""
        inside = all(type(k) is int and -shape[0] <= k < shape[0] for k in at)
        if len(shape) != 1 or not at or not inside:
            raise self._trace.error(f"{at} are not positions in the vector {self.dtype}")
        kind = ir.VectorType.get([len(at)], self.ssa.type.element_type)
        mask = ir.DenseI64ArrayAttr.get([k % shape[0] for k in at])
        operands = [self.ssa, self.ssa]
        (result,) = self._trace.create("vector.shuffle", [kind], operands, mask=mask)
        return Value(result, self._trace)

    def _with_axes(self, shape: tuple[int, ...], at: tuple[Any, ...]) -> Value:
        """Return the vector with a dimension of size 1 for each `None` in the index."""
        entries = [i for i in at if i is not None]
        if len(entries) != len(shape) or any(i != slice(None) for i in entries):
            raise self._trace.error(
                f"the index of new axes names all {len(shape)} dimensions of {self.dtype}",
                hint="v[:, None] is a vector as a column",
            )
        sizes = iter(shape)
        wider = [1 if i is None else next(sizes) for i in at]
        kind = ir.VectorType.get(wider, self.ssa.type.element_type)
        (result,) = self._trace.create("vector.shape_cast", [kind], [self.ssa])
        return Value(result, self._trace)

    def to(self, dtype: str) -> Value:
        """Convert the value, or each element of the vector, to another type, such as "f16".

        Floating point rounds to nearest even, and towards zero where it becomes an integer. An
        index is a number of 64 bits, a truth value 1 or 0.

        Raises:
            LegoError: there is no such type.
        """
        return Value(cast(self.ssa, dtype, self._trace), self._trace)

    def bitcast(self, dtype: str) -> Value:
        """Return the bits of a vector as elements of another type: 8 of "f16" as 4 of "i32".

        Raises:
            LegoError: the last dimension does not have whole elements of that type.
        """
        check_dtype(dtype, self._trace.error)
        *lead, last = self._shape(".bitcast")
        element = ir.Type.parse(dtype)
        old, new = (kind.width for kind in (element_type(self.ssa.type), element))
        if last * old % new:
            raise self._trace.error(f"the bits of {self.dtype} are not whole elements of {dtype}")
        kind = ir.VectorType.get([*lead, last * old // new], element)
        (result,) = self._trace.create("vector.bitcast", [kind], [self.ssa])
        return Value(result, self._trace)

    def below(self, limit: int) -> Value:
        """Return the value as an index that the kernel may assume to be in `0 .. limit - 1`.

        Args:
            limit: what the kernel relies on. Where it is not proven, it is checked: at the launch
                what only depends on its arguments, the rest in kernels that are compiled with
                checks.
        """
        bounds = ir.DenseI64ArrayAttr.get([limit])
        kind = ir.IndexType.get()
        claim = Claim("the value of .below()", limit, RESULT).attribute
        if isinstance(self.ssa.type, ir.IntegerType):
            limits = {dialect.BOUNDS: bounds, dialect.CLAIM: claim}
            name = "arith.index_castui" if is_truth(self.ssa.type) else "arith.index_cast"
            return Value(self._trace.create(name, [kind], [self.ssa], **limits)[0], self._trace)
        if self.ssa.type != kind or isinstance(self.ssa, ir.BlockArgument):
            raise self._trace.error(
                f"below({limit}) of {self!r}", hint="an integer that is computed"
            )
        self.ssa.owner.attributes[dialect.BOUNDS] = bounds
        self.ssa.owner.attributes[dialect.CLAIM] = claim
        return self

    @property
    def T(self) -> Value:  # noqa: N802  (NumPy's name)
        """A vector with its dimensions in reverse order."""
        shape = self._shape(".T")
        kind = ir.VectorType.get(list(reversed(shape)), self.ssa.type.element_type)
        order = ir.DenseI64ArrayAttr.get(list(reversed(range(len(shape)))))
        (result,) = self._trace.create("vector.transpose", [kind], [self.ssa], permutation=order)
        return Value(result, self._trace)

    def _shape(self, what: str) -> tuple[int, ...]:
        """Return the sizes of a vector, for an operation on vectors alone."""
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
        attribute = trace.layout(layout)
        index = dialect.inv(attribute, layout.rank, [self.ssa], location=trace.here())
        return tuple(Value(x, trace) for x in index)

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
        return self._index_division("arith.floordivsi", other)

    def __mod__(self, other: Operand) -> Value:
        quotient = self._index_division("arith.floordivsi", other)
        return self - quotient * other

    def __neg__(self) -> Value:
        kind = self.ssa.type
        self.check_arithmetic("-")
        if not isinstance(element_type(kind), ir.FloatType):
            return self._arithmetic("sub", 0, self)
        (result,) = self._trace.create("arith.negf", [kind], [self.ssa])  # 0 - x loses -0.0
        return Value(result, self._trace)

    def _arithmetic(self, name: str, a: Operand, b: Operand) -> Value:
        self.check_arithmetic(name)
        lhs, rhs, kind = self._together(a, b)
        floating = isinstance(element_type(kind), ir.FloatType)
        if name == "div" and not floating:
            raise self._trace.error(
                f"'/' of {kind} values", hint="'//' is floor division; '/' is for floating point"
            )
        return self._create(f"arith.{name}{'f' if floating else 'i'}", kind, lhs, rhs)

    def _extreme(self, name: str, a: Operand, b: Operand) -> Value:
        """Return the greater or the smaller value; NaN if one is NaN, as in NumPy."""
        self.check_arithmetic(name)
        lhs, rhs, kind = self._together(a, b)
        floating = isinstance(element_type(kind), ir.FloatType)
        return self._create(f"arith.{name}{'imumf' if floating else 'si'}", kind, lhs, rhs)

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

    def _together(self, a: Operand, b: Operand) -> tuple[Value, Value, Any]:
        """Return both operands as values of their common type, and that type."""
        trace, kind = self._trace, self.ssa.type
        for x in (a, b):
            if isinstance(x, Value) and isinstance(x.ssa.type, ir.VectorType):
                kind = _broadcast_type(kind, x.ssa.type, trace)
        return as_value(a, kind, trace), as_value(b, kind, trace), kind

    def _create(self, name: str, kind: Any, a: Value, b: Value) -> Value:
        (result,) = self._trace.create(name, [kind], [a.ssa, b.ssa])
        return Value(result, self._trace)

    def _index_division(self, name: str, other: Operand) -> Value:
        trace = self._trace
        kind = self.ssa.type
        self.check_arithmetic("//")
        if isinstance(element_type(kind), ir.FloatType):
            raise trace.error(f"'//' and '%' are for integers, not {kind}")
        rhs = as_value(other, kind, trace)
        if isinstance(other, int) and other == 0:
            raise trace.error("division by zero")
        (result,) = trace.create(name, [kind], [self.ssa, rhs.ssa])
        return Value(result, trace)


def apply(layout: Layout, index: tuple[Any, ...]) -> Value:
    """Apply a layout to kernel values, as a lego.apply."""
    trace = current("a layout on kernel values")
    operands = [as_index(i, trace).ssa for i in index]
    return Value(dialect.apply(trace.layout(layout), operands, trace.here()), trace)


def mask(layout: Layout, index: tuple[Any, ...]) -> Value:
    """Return a layout's mask of kernel values, as a lego.mask: a truth value."""
    trace = current("a layout on kernel values")
    operands = [as_index(i, trace).ssa for i in index]
    return Value(dialect.mask(trace.layout(layout), operands, trace.here()), trace)


def as_index(x: Any, trace: Trace) -> Value:
    """Return `x` as an index value."""
    return as_value(x, ir.IndexType.get(), trace)


def as_value(x: Any, kind: Any, trace: Trace) -> Value:
    """Return `x` as a value of an MLIR type: itself, a constant, or a broadcast vector.

    Raises:
        LegoError: it has another type, or is no number.
    """
    trace.check_active()
    if isinstance(x, Value):
        x._trace.check_active()
        if x.ssa.type == kind:
            return x
        if not _spreads(x.ssa.type, kind):
            converts = isinstance(element_type(kind), ir.FloatType | ir.IntegerType)
            raise trace.error(
                f"a value of type {kind} is needed, not {x.ssa.type}",
                hint=f'.to("{element_type(kind)}") converts a value' if converts else None,
            )
        return Value(trace.create("vector.broadcast", [kind], [x.ssa])[0], trace)
    if hasattr(x, "item") and getattr(x, "ndim", None) == 0:
        x = x.item()
    if isinstance(x, bool) or not isinstance(x, int | float):
        raise trace.error(f"a value of type {kind} is needed, not {x!r}")
    element = element_type(kind)
    attribute = _constant(x, element)
    if attribute is None:
        raise trace.error(f"a value of type {element} is needed, not {x!r}")
    if isinstance(kind, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(kind, attribute)
    (result,) = trace.create("arith.constant", [kind], [], value=attribute)
    return Value(result, trace)


def _constant(x: int | float, element: Any) -> Any:
    """Return a number as an attribute of an element type; `None` if it is out of range."""
    if not isinstance(element, ir.FloatType):
        width = 64 if isinstance(element, ir.IndexType) else element.width
        fits = isinstance(x, int) and -(1 << (width - 1)) <= x < 1 << (width - 1)
        return ir.IntegerAttr.get(element, x) if fits else None
    try:
        number = float(x)
    except OverflowError:
        return None
    attribute = ir.FloatAttr.get(element, number)
    return attribute if isfinite(attribute.value) or not isfinite(number) else None


def _spreads(kind: Any, wider: Any) -> bool:
    """Return whether a value of one type can be broadcast to another type."""
    if not isinstance(wider, ir.VectorType) or element_type(kind) != wider.element_type:
        return False
    sizes = tuple(kind.shape) if isinstance(kind, ir.VectorType) else ()
    last = tuple(wider.shape)[wider.rank - len(sizes) :] if sizes else ()
    return len(sizes) <= wider.rank and all(n in (1, m) for n, m in zip(sizes, last, strict=True))


def _broadcast_type(a: Any, b: Any, trace: Trace) -> Any:
    """Return the type that two types have after broadcasting as in NumPy.

    Raises:
        LegoError: their sizes do not go together.
    """
    if not isinstance(a, ir.VectorType) or not isinstance(b, ir.VectorType) or a == b:
        return b if isinstance(b, ir.VectorType) else a
    rank = max(a.rank, b.rank)
    shapes = [(*[1] * (rank - kind.rank), *kind.shape) for kind in (a, b)]
    if any(m != n and 1 not in (m, n) for m, n in zip(*shapes, strict=True)):
        raise trace.error(
            f"vectors of the types {a} and {b} do not go together",
            hint="counted from the last, sizes are the same or 1: v[:, None] is a column",
        )
    sizes = [max(m, n) for m, n in zip(*shapes, strict=True)]
    return ir.VectorType.get(sizes, a.element_type)
