"""The operands of a derivation: expressions in two forms, which the operators carry on together.

Products of sums are expanded, so that terms cancel. Where nothing cancels, the product itself may
cost less: `s*(s + 1)`, not `s*s + s`. `index.extraction.forms` therefore derives from operands that
have both forms:

    x, y          value i + j        form i + j          (an operand starts with one form)
    x * (x + 1)   value i*i + ...    form (i + j)*(i + j + 1), a `Mul` node

The operators below compute `value` with the constructors, and `form` in the same way except that
the product of two sums stays one. While no such product is met, the forms are the same object and
nothing is computed twice. Whether a product is kept thus depends on the operands alone; the
constructors, the rules and the prover have no modes.
"""

# The operators check what the types already say: other libraries' operands come here too.
# mypy: disable-error-code="redundant-expr"

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from lego_mlir.index import construct, structure
from lego_mlir.index.nodes import Expr, Int, Mul, Poly, Sym, WithForm, plain


class Operand(WithForm):
    """An expression in a derivation: its normal form, and one with products of sums unexpanded.

    Operands are not interned; equal are those with the same value.
    """

    __slots__ = ()
    rank = 12

    def __new__(cls, value: Expr, form: Int) -> Operand:
        made = object.__new__(cls)
        set_field = object.__setattr__
        set_field(made, "value", value)
        set_field(made, "form", form)
        set_field(made, "_bounds", None)
        set_field(made, "_order", None)
        set_field(made, "_symbols", None)
        set_field(made, "_is_expanded", None)
        return made

    def __repr__(self) -> str:
        return repr(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | Expr) and self.value is plain(other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __add__(self, other: Int) -> Int:
        return _binary(operator.add, self, other)

    __radd__ = __add__

    def __sub__(self, other: Int) -> Int:
        return _binary(operator.sub, self, other)

    def __rsub__(self, other: Int) -> Int:
        return _binary(operator.sub, other, self)

    def __neg__(self) -> Int:
        return _binary(operator.mul, self, -1)

    def __mul__(self, other: Int) -> Int:
        return _binary(operator.mul, self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Int) -> Int:
        return _binary(operator.floordiv, self, other)

    def __rfloordiv__(self, other: Int) -> Int:
        return _binary(operator.floordiv, other, self)

    def __mod__(self, other: Int) -> Int:
        return _binary(operator.mod, self, other)

    def __rmod__(self, other: Int) -> Int:
        return _binary(operator.mod, other, self)

    def __xor__(self, other: Int) -> Int:
        return _binary(operator.xor, self, other)

    __rxor__ = __xor__

    def __and__(self, other: Int) -> Int:
        return _binary(operator.and_, self, other)

    __rand__ = __and__

    def __or__(self, other: Int) -> Int:
        return _binary(operator.or_, self, other)

    __ror__ = __or__

    def __invert__(self) -> Int:
        return _binary(operator.sub, -1, self)

    def __lshift__(self, bits: int) -> Int:
        return self * (1 << bits) if isinstance(bits, int) else NotImplemented

    def __rshift__(self, bits: int) -> Int:
        return self // (1 << bits) if isinstance(bits, int) else NotImplemented

    def __lt__(self, other: Int) -> Int:
        return _binary(operator.lt, self, other)

    def __ge__(self, other: Int) -> Int:
        return _binary(operator.ge, self, other)

    def __gt__(self, other: Int) -> Int:
        return _binary(operator.gt, self, other)

    def __le__(self, other: Int) -> Int:
        return _binary(operator.le, self, other)


def operand(x: Any) -> Any:
    """Return an expression as an operand with one form; other values are returned unchanged."""
    if not isinstance(x, Expr):
        return x
    value = plain(x)
    return value if isinstance(value, int) else Operand(value, value)


def combined(operation: Callable[..., Int], *xs: Int) -> Int:
    """Return the result of a constructor, in both forms if one of its operands has them.

    Args:
        operation: a constructor other than `mul`.
        xs: what it is called with.
    """
    values = [plain(x) for x in xs]
    value = operation(*values)
    if isinstance(value, int) or not any(isinstance(x, Operand) for x in xs):
        return value
    forms = [form_of(x) for x in xs]
    same = all(form is x for form, x in zip(forms, values, strict=True))
    return Operand(value, value if same else operation(*forms))


def replaced(x: Int, values: Mapping[Sym, Int]) -> Int:
    """Return `x` with symbols replaced, in both forms if it or a value has them."""
    meets_sums = False

    def times(a: Int, b: Int) -> Int:
        nonlocal meets_sums
        meets_sums = meets_sums or (_is_sum(a) and _is_sum(b))
        return construct.mul(a, b)

    value = construct.substitute(plain(x), {s: plain(v) for s, v in values.items()}, times)
    operands = (x, *values.values())
    if isinstance(value, int) or not any(isinstance(y, Operand) for y in operands):
        return value
    if not meets_sums and all(form_of(y) is plain(y) for y in operands):
        return Operand(value, value)
    forms = {s: form_of(v) for s, v in values.items()}
    return Operand(value, construct.substitute(form_of(x), forms, product))


def form_of(x: Int) -> Int:
    """Return the form of an operand with products of sums unexpanded, else its normal form."""
    return x.form if isinstance(x, Operand) else plain(x)


def product(a: Int, b: Int) -> Int:
    """Return `a * b`, unexpanded if both are sums."""
    if _is_sum(a) and _is_sum(b):
        return Mul(*sorted((a, b), key=structure.order))
    return construct.mul(a, b)


def _is_sum(x: Int) -> TypeGuard[Poly]:
    return isinstance(x, Poly) and bool(x.constant or len(x.terms) > 1)


def _binary(operation: Callable[[Any, Any], Int], a: Any, b: Any) -> Int:
    """Return the result of an operator on two values, one of which is an operand."""
    if not isinstance(a, int | Expr) or not isinstance(b, int | Expr):
        return NotImplemented  # type: ignore[no-any-return]
    left, right = plain(a), plain(b)
    value = operation(left, right)
    if isinstance(value, int):
        return value
    left_form = a.form if isinstance(a, Operand) else left
    right_form = b.form if isinstance(b, Operand) else right
    if operation is operator.mul and _is_sum(left_form) and _is_sum(right_form):
        return Operand(value, product(left_form, right_form))
    if left_form is left and right_form is right:
        return Operand(value, value)
    return Operand(value, operation(left_form, right_form))
