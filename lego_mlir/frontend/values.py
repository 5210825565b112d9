"""Values inside a kernel: what one thread holds, an SSA value underneath.

Operators and functions of elements have one meaning for scalars, vectors, and the tiles of
`frontend.tiles`, which are values too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.frontend import coercion
from lego_mlir.frontend.casts import cast, element_type, in_shape_of, is_truth
from lego_mlir.frontend.dtypes import check_dtype, dtype_of, is_unsigned, mlir_element
from lego_mlir.frontend.operators import Operand, Operators
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.lowering.indices.claims import RESULT, Claim


class Value(Operators):
    """An SSA value with Python's operators: a number, an index, or a vector of these.

    On indices `//` and `%` are floor division and modulo, as in index expressions. Rather than to
    compute indices, apply a layout: `layout.apply(i, j)` and `layout.inv(flat)` take these values.
    Comparisons give truth values, which `lg.where`, `lg.cond`, `&`, `|` and `~` take.

    Vectors meet as NumPy's arrays do: a number with every element, a vector of 128 with every row
    of one of 64×128, and `v[:, None]` of a vector of 64 with every column of it.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<kernel value {self.described}>"

    def __bool__(self) -> bool:
        raise self._trace.error(
            "the truth of a kernel value is not known while the kernel is traced",
            hint="Python's if, while, and, or and not run once, at trace time; lg.where(c, a, b) "
            "takes one of two values, lg.cond(c, f, g) calls one of two functions, and &, | and ~ "
            "combine truth values",
        )

    def __iter__(self) -> Any:
        raise self._trace.error("a kernel value is one element and cannot be unpacked")

    # Shapes.
    def like(self, ssa: Any, *, unsigned: bool | None = None) -> Value:
        """Return the value of this shape that another SSA value is."""
        return Value(ssa, self._trace, unsigned=self._unsigned if unsigned is None else unsigned)

    def spread(self, x: Operand, shape: tuple[int, ...], element: Any, *, unsigned: bool) -> Value:
        """Return an operand as a value of a shape that values as this one have.

        Args:
            x: a number, or a value of the element type.
            shape: the sizes; a scalar is spread to every element.
            element: the MLIR element type.
            unsigned: its integers are unsigned.
        """
        kind = ir.VectorType.get(list(shape), element) if shape else element
        return as_value(x, kind, self._trace, unsigned=unsigned)

    def __getitem__(self, index: Any) -> Value:
        """Return an element of a vector or one of its rows: `v[1]`, `v[1, 2]`.

        `v[:, None]` is the vector as a column, and `v[[0, 1, 8, 9]]` is a vector of some elements
        of a vector of one dimension, as in NumPy.
        """
        at = index if isinstance(index, tuple) else (index,)
        shape = self._vector_shape("[]")
        if isinstance(index, list):
            return self._elements(shape, index)
        if any(i is None or isinstance(i, slice) for i in at):
            return self._with_axes(shape, at)
        if not all(isinstance(i, int) for i in at):
            raise self._trace.error("the index of a vector's element is a number")
        inside = all(-n <= i < n for i, n in zip(at, shape, strict=False))
        if not 0 < len(at) <= len(shape) or not inside:
            raise self._trace.error(
                f"index {list(at)} is not inside of the vector {self.described}"
            )
        rest = list(shape[len(at) :])
        element = self.ssa.type.element_type
        kind = ir.VectorType.get(rest, element) if rest else element
        position = [i % n for i, n in zip(at, shape, strict=False)]
        static = ir.DenseI64ArrayAttr.get(position)
        return self._made("vector.extract", kind, [self], static_position=static)

    def _elements(self, shape: tuple[int, ...], at: list[Any]) -> Value:
        """Return a vector of the elements at these positions."""
        inside = all(type(k) is int and -shape[0] <= k < shape[0] for k in at)
        if len(shape) != 1 or not at or not inside:
            raise self._trace.error(f"{at} are not positions in the vector {self.described}")
        kind = ir.VectorType.get([len(at)], self.ssa.type.element_type)
        mask = ir.DenseI64ArrayAttr.get([k % shape[0] for k in at])
        return self._made("vector.shuffle", kind, [self, self], mask=mask)

    def _with_axes(self, shape: tuple[int, ...], at: tuple[Any, ...]) -> Value:
        """Return the vector with a dimension of size 1 for each `None` in the index."""
        entries = [i for i in at if i is not None]
        if len(entries) != len(shape) or any(i != slice(None) for i in entries):
            raise self._trace.error(
                f"the index of new axes names all {len(shape)} dimensions of {self.described}",
                hint="v[:, None] is a vector as a column",
            )
        sizes = iter(shape)
        wider = [1 if i is None else next(sizes) for i in at]
        kind = ir.VectorType.get(wider, self.ssa.type.element_type)
        return self._made("vector.shape_cast", kind, [self])

    @property
    def T(self) -> Value:  # noqa: N802  (NumPy's name)
        """A vector with its dimensions in reverse order."""
        shape = self._vector_shape(".T")
        kind = ir.VectorType.get(list(reversed(shape)), self.ssa.type.element_type)
        order = ir.DenseI64ArrayAttr.get(list(reversed(range(len(shape)))))
        return self._made("vector.transpose", kind, [self], permutation=order)

    def _vector_shape(self, what: str) -> tuple[int, ...]:
        """Return the sizes of a vector, for an operation on vectors alone."""
        kind = self.ssa.type
        if not isinstance(kind, ir.VectorType):
            raise self._trace.error(f"'{what}' is for vectors, not {self.described}")
        return tuple(kind.shape)

    # Element types.
    def to(self, dtype: str) -> Value:
        """Convert the value, or each element of a vector or tile, to another type, such as "f16".

        Floating point rounds to nearest even, and towards zero where it becomes an integer. An
        index is a number of 64 bits, a truth value 1 or 0.

        Raises:
            LegoError: there is no such type.
        """
        check_dtype(dtype, self._trace.error)
        unsigned = is_unsigned(dtype)
        target = mlir_element(dtype)
        result = cast(
            self.ssa, target, self._trace, from_unsigned=self._unsigned, to_unsigned=unsigned
        )
        return self.like(result, unsigned=unsigned)

    def bitcast(self, dtype: str) -> Value:
        """Return the bits of elements as those of another type.

        Of a vector the last dimension may get other sizes: 8 of "f16" are 4 of "i32".

        Raises:
            LegoError: the last dimension does not have whole elements of that type.
        """
        check_dtype(dtype, self._trace.error)
        element = mlir_element(dtype)
        old, new = (getattr(kind, "width", 64) for kind in (element_type(self.ssa.type), element))
        if old == new and not isinstance(self.ssa.type, ir.VectorType):
            kind = in_shape_of(self.ssa.type, element)
            (result,) = self._trace.create("arith.bitcast", [kind], [self.ssa])
            return self.like(result, unsigned=is_unsigned(dtype))
        *lead, last = self._vector_shape(".bitcast")
        if last * old % new:
            raise self._trace.error(
                f"the bits of {self.described} are not whole elements of {dtype}"
            )
        kind = ir.VectorType.get([*lead, last * old // new], element)
        (result,) = self._trace.create("vector.bitcast", [kind], [self.ssa])
        return self.like(result, unsigned=is_unsigned(dtype))

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
            has_no_sign = self._unsigned or is_truth(self.ssa.type)
            name = "arith.index_castui" if has_no_sign else "arith.index_cast"
            return Value(self._trace.create(name, [kind], [self.ssa], **limits)[0], self._trace)
        if self.ssa.type != kind or isinstance(self.ssa, ir.BlockArgument):
            raise self._trace.error(
                f"below({limit}) of {self!r}", hint="an integer that is computed"
            )
        # Bounds are of all results of an operation: one of several gets an operation of its own.
        value = self if len(self.ssa.owner.results) == 1 else self + 0
        own = self._trace.own(value.ssa)
        own.owner.attributes[dialect.BOUNDS] = bounds
        own.owner.attributes[dialect.CLAIM] = claim
        return value.like(own)

    # Layouts and index expressions take these values.
    def __lego_apply__(self, layout: Layout, index: tuple[Any, ...]) -> Value:
        first = max((i for i in index if isinstance(i, Value)), key=lambda i: i.precedence)
        return first._offset(layout, index)

    def _offset(self, layout: Layout, index: tuple[Any, ...]) -> Value:
        return apply(layout, index)

    def __lego_mask__(self, layout: Layout, index: tuple[Any, ...]) -> Value:
        return mask(layout, index)

    def __lego_inv__(self, layout: Layout) -> tuple[Value, ...]:
        trace = self._trace
        layout, sizes = trace.sized(layout)
        attribute = trace.layout(layout, is_bound=True)
        most = [n if isinstance(n, int) else 0 for n in layout.dims] if sizes else ()
        index = dialect.inv(attribute, layout.rank, [self.ssa, *sizes], most, trace.here())
        return tuple(Value(x, trace) for x in index)

    def _made(self, name: str, kind: Any, operands: Sequence[Value], **attributes: Any) -> Value:
        (result,) = self._trace.create(name, [kind], [x.ssa for x in operands], **attributes)
        return Value(result, self._trace, unsigned=self._unsigned)


def apply(layout: Layout, index: tuple[Any, ...]) -> Value:
    """Apply a layout to kernel values, as a lego.apply."""
    trace = current("a layout on kernel values")
    layout, sizes = trace.sized(layout)
    operands = [*(as_index(i, trace).ssa for i in index), *sizes]
    attribute = trace.layout(layout, is_bound=True)
    return Value(dialect.apply(attribute, operands, trace.here()), trace)


def mask(layout: Layout, index: tuple[Any, ...]) -> Value:
    """Return a layout's mask of kernel values, as a lego.mask: a truth value."""
    trace = current("a layout on kernel values")
    layout, sizes = trace.sized(layout)
    operands = [*(as_index(i, trace).ssa for i in index), *sizes]
    attribute = trace.layout(layout, is_bound=True)
    return Value(dialect.mask(attribute, operands, trace.here()), trace)


def as_index(x: Any, trace: Trace) -> Value:
    """Return `x` as an index value."""
    return as_value(x, ir.IndexType.get(), trace)


def as_value(x: Any, kind: Any, trace: Trace, *, unsigned: bool = False) -> Value:
    """Return `x` as a value of an MLIR type: itself, a constant, or a broadcast vector.

    Raises:
        LegoError: it has another type, or is no number.
    """
    trace.check_active()
    if not isinstance(x, Value):
        return Value(coercion.constant(x, kind, trace, unsigned=unsigned), trace, unsigned=unsigned)
    x._trace.check_active()
    if x.ssa.type == kind and x._unsigned == unsigned:
        return x
    check_element(x, element_type(kind), unsigned=unsigned, needed=kind)
    if x.ssa.type == kind:
        return x
    if not _spreads(x.ssa.type, kind):
        raise trace.error(f"a value of type {kind} is needed, not {x.described}")
    (result,) = trace.create("vector.broadcast", [kind], [x.ssa])
    return Value(result, trace, unsigned=unsigned)


def check_element(x: Value, element: Any, *, unsigned: bool, needed: Any = None) -> None:
    """Raise LegoError unless a value has an element type."""
    dtype = dtype_of(element, unsigned=unsigned)
    if x.dtype == dtype:
        return
    hint = None
    if element == ir.IndexType.get():
        if isinstance(x.ssa.type, ir.IntegerType):
            hint = "x.below(n) is an integer as an index, which is less than n"
    else:
        hint = f'.to("{dtype}") converts a value'
    shown = str(needed or element).replace(str(element), dtype)
    raise x.trace.error(f"a value of type {shown} is needed, not {x.described}", hint=hint)


def _spreads(kind: Any, wider: Any) -> bool:
    """Return whether a value of one type can be broadcast to another type."""
    if not isinstance(wider, ir.VectorType) or element_type(kind) != wider.element_type:
        return False
    sizes = tuple(kind.shape) if isinstance(kind, ir.VectorType) else ()
    last = tuple(wider.shape)[wider.rank - len(sizes) :] if sizes else ()
    return len(sizes) <= wider.rank and all(n in (1, m) for n, m in zip(sizes, last, strict=True))
