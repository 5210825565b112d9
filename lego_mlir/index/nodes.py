"""The nodes of an index expression: immutable, hash-consed, with integer semantics.

An index expression is a Python `int` or an `Expr`; a constant is never wrapped. There are few
kinds of node:

    Sym        i            a variable with its range [lo, hi] and what is known to divide it
    Poly       3 + 2*i*K    a polynomial with integer coefficients over the other nodes, expanded
    FloorDiv   x // d       rounds towards minus infinity, as Python and NumPy do
    Mod        x % d        x - d*(x // d), so 0 <= x % d < d for every d > 0
    Xor        x ^ y        bitwise, on two's complement integers
    Min, Max, ISqrt         ISqrt is exact: the largest r with r*r <= x
    Less, Where             a comparison, and the choice it makes
    Mul, Bits, Spelled      a product of sums that is kept as one, and `x & mask`, where cheaper

Equal expressions are the same object, so `is` compares them and every property is computed once.
Nodes are never made directly: the constructors (`index.construct`, or the operators) put
everything into normal form on the way, applying the rules of `index.rules`. What a symbol stands
for travels with the symbol, so an expression needs no context to be simplified in:

    >>> b = Sym("b", 0, 1023)
    >>> (32 * b + 5) // 32 is b
    True
"""

# The operators check what the types already say: other libraries' operands come here too.
# mypy: disable-error-code="redundant-expr"

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias
from weakref import WeakValueDictionary

from lego_mlir.diagnostics import LegoError

if TYPE_CHECKING:
    import sympy

Int: TypeAlias = "int | Expr"
"""An index expression: a plain integer or a node."""

Mono: TypeAlias = "tuple[tuple[Expr, int], ...]"
"""A monomial: atoms with their powers, in order; `()` is 1."""

Interval: TypeAlias = tuple[int | None, int | None]
"""Least and greatest value, both included; `None` is unbounded."""

_interned: WeakValueDictionary[tuple[Any, ...], Expr] = WeakValueDictionary()
_interning = Lock()


class Expr:
    """A node. Subclasses name their fields in `__match_args__`, so `match` takes them apart."""

    __slots__ = ("__weakref__", "_bounds", "_is_expanded", "_order", "_symbols")
    __match_args__: ClassVar[tuple[str, ...]] = ()
    rank: ClassVar[int]

    _bounds: Interval | None
    _is_expanded: bool | None
    _order: tuple[Any, ...] | None
    _symbols: frozenset[Sym] | None

    def __new__(cls, *fields: Any) -> Self:
        key = (cls, *fields)
        node = _interned.get(key)
        if node is None:
            made = object.__new__(cls)
            for name, value in zip(cls.__match_args__, fields, strict=True):
                object.__setattr__(made, name, value)
            object.__setattr__(made, "_bounds", None)
            object.__setattr__(made, "_is_expanded", None)
            object.__setattr__(made, "_order", None)
            object.__setattr__(made, "_symbols", None)
            with _interning:  # two threads that make the same node get the same object
                node = _interned.setdefault(key, made)
        return node  # type: ignore[return-value]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"index expressions are immutable: {name} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f) for f in self.__match_args__)

    def __repr__(self) -> str:
        from lego_mlir.index.text import to_text

        return to_text(self)

    def __bool__(self) -> bool:
        raise LegoError(
            f"the truth of '{self!r}' is not known while the index expression is derived",
            hint="write where(condition, a, b) instead of an if, and a & b, a | b and 1 - a "
            "instead of and, or and not",
        )

    def __index__(self) -> int:
        raise LegoError(f"'{self!r}' is a symbolic index; an integer is needed here")

    # The operators. Each takes ints and nodes alike and returns the normal form.
    def __add__(self, other: Int) -> Int:
        return construct.add(self, other) if isinstance(other, _OPERAND) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Int) -> Int:
        return construct.sub(self, other) if isinstance(other, _OPERAND) else NotImplemented

    def __rsub__(self, other: Int) -> Int:
        return construct.sub(other, self) if isinstance(other, _OPERAND) else NotImplemented

    def __neg__(self) -> Int:
        return construct.mul(-1, self)

    def __mul__(self, other: Int) -> Int:
        return construct.mul(self, other) if isinstance(other, _OPERAND) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: Int) -> Int:
        return construct.floordiv(self, other) if isinstance(other, _OPERAND) else NotImplemented

    def __rfloordiv__(self, other: Int) -> Int:
        return construct.floordiv(other, self) if isinstance(other, _OPERAND) else NotImplemented

    def __mod__(self, other: Int) -> Int:
        return construct.mod(self, other) if isinstance(other, _OPERAND) else NotImplemented

    def __rmod__(self, other: Int) -> Int:
        return construct.mod(other, self) if isinstance(other, _OPERAND) else NotImplemented

    def __xor__(self, other: Int) -> Int:
        return construct.xor(self, other) if isinstance(other, _OPERAND) else NotImplemented

    __rxor__ = __xor__

    def __and__(self, other: Int) -> Int:
        return construct.bit_and(self, other) if isinstance(other, _OPERAND) else NotImplemented

    __rand__ = __and__

    def __or__(self, other: Int) -> Int:
        return construct.bit_or(self, other) if isinstance(other, _OPERAND) else NotImplemented

    __ror__ = __or__

    def __invert__(self) -> Int:
        return construct.sub(-1, self)

    def __lshift__(self, bits: int) -> Int:
        return construct.mul(self, 1 << bits) if isinstance(bits, int) else NotImplemented

    def __rshift__(self, bits: int) -> Int:
        return construct.floordiv(self, 1 << bits) if isinstance(bits, int) else NotImplemented

    def __lt__(self, other: Int) -> Int:
        return construct.less(self, other) if isinstance(other, _OPERAND) else NotImplemented

    def __ge__(self, other: Int) -> Int:
        return construct.sub(1, self < other) if isinstance(other, _OPERAND) else NotImplemented

    def __gt__(self, other: Int) -> Int:
        return construct.less(other, self) if isinstance(other, _OPERAND) else NotImplemented

    def __le__(self, other: Int) -> Int:
        return construct.sub(1, self > other) if isinstance(other, _OPERAND) else NotImplemented

    def _sympy_(self) -> sympy.Expr:
        """Convert to SymPy: its own hook, so an index expression may stand in any SymPy one."""
        from lego_mlir.index.sympy_bridge import to_sympy

        return to_sympy(self)


class Node(Expr):
    """A node of one form, unlike `WithForm`."""

    __slots__ = ()


class Sym(Node):
    """A variable: a size, an index, a thread id.

    Attributes:
        name: two symbols are the same only if all their fields are.
        lo: least value, or `None`.
        hi: greatest value, an expression or `None`.
        divisors: expressions known to divide every value.
    """

    __slots__ = ("divisors", "hi", "lo", "name")
    __match_args__ = ("name", "lo", "hi", "divisors")
    rank = 0
    name: str
    lo: int | None
    hi: Int | None
    divisors: frozenset[Int]

    def __new__(
        cls,
        name: str,
        lo: int | None = None,
        hi: Int | None = None,
        divisors: frozenset[Int] = frozenset(),
    ) -> Self:
        return super().__new__(cls, name, lo, hi, divisors)


class Poly(Node):
    """`constant + sum(coefficient * monomial)`, at least one term, no zero coefficient."""

    __slots__ = ("constant", "terms")
    __match_args__ = ("constant", "terms")
    rank = 9
    constant: int
    terms: tuple[tuple[Mono, int], ...]


class FloorDiv(Node):
    """`num // den`, rounded towards minus infinity."""

    __slots__ = ("den", "num")
    __match_args__ = ("num", "den")
    rank = 1
    num: Expr
    den: Int


class Mod(Node):
    """`num % den` with the sign of `den`."""

    __slots__ = ("den", "num")
    __match_args__ = ("num", "den")
    rank = 2
    num: Expr
    den: Int


class Xor(Node):
    """Bitwise exclusive or."""

    __slots__ = ("a", "b")
    __match_args__ = ("a", "b")
    rank = 3
    a: Int
    b: Int


class Min(Node):
    """The lesser of two."""

    __slots__ = ("a", "b")
    __match_args__ = ("a", "b")
    rank = 4
    a: Int
    b: Int


class Max(Node):
    """The greater of two."""

    __slots__ = ("a", "b")
    __match_args__ = ("a", "b")
    rank = 5
    a: Int
    b: Int


class ISqrt(Node):
    """The integer square root of a value that is never negative."""

    __slots__ = ("x",)
    __match_args__ = ("x",)
    rank = 6
    x: Expr


class Less(Node):
    """1 if `a < b`, else 0."""

    __slots__ = ("a", "b")
    __match_args__ = ("a", "b")
    rank = 7
    a: Int
    b: Int


class Where(Node):
    """`a` where the condition (0 or 1) holds, else `b`."""

    __slots__ = ("a", "b", "condition")
    __match_args__ = ("condition", "a", "b")
    rank = 8
    condition: Expr
    a: Int
    b: Int


class Mul(Node):
    """`a * b`, two sums, not expanded: only in the forms that `index.extraction.forms` weighs."""

    __slots__ = ("a", "b")
    __match_args__ = ("a", "b")
    rank = 10
    a: Expr
    b: Expr


class Bits(Node):
    """The bits `x & mask` of two's complement: only in forms, as `index.extraction` makes them."""

    __slots__ = ("mask", "x")
    __match_args__ = ("x", "mask")
    rank = 12
    x: Int
    mask: int


class WithForm(Expr):
    """`value`, which is in normal form, together with an equal `form`.

    Every constructor takes it for its value.
    """

    __slots__ = ("form", "value")
    __match_args__ = ("value", "form")
    value: Expr
    form: Int


class Spelled(WithForm):
    """`value`, together with the cheaper form in which it is to be computed.

    What is printed, counted and evaluated is `form`; arithmetic goes on with `value`. (An
    `index.operands.Operand` goes on with both.)
    """

    __slots__ = ()
    rank = 11
    form: Expr


def plain(x: Int) -> Int:
    """Return `x` in normal form: a truth value is the integer 0 or 1."""
    if isinstance(x, int):
        return int(x)
    return x.value if isinstance(x, WithForm) else x


_OPERAND = (int, Node, Spelled)
"""What the operators of nodes take. An Operand has operators of its own."""

# Nodes and their constructors need each other: operators build, constructors take apart.
from lego_mlir.index import construct  # noqa: E402
