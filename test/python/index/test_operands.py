"""Operands carry both forms through every operator and function, on either side."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.index import Int, Sym, bounds, evaluate, functions
from lego_mlir.index.nodes import Mul, plain
from lego_mlir.index.operands import Operand, form_of, operand, product, replaced

I, J = Sym("i", 0, 12), Sym("j", 0, 12)  # noqa: E741 - the names in the formulas
SUM = I + 2 * J
I_POINTS, J_POINTS = np.meshgrid(np.arange(13), np.arange(13))
POINTS = {"i": I_POINTS, "j": J_POINTS}

BINARY: list[Callable[[Any, Any], Any]] = [
    *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod),
    *(operator.xor, operator.and_, operator.or_),
    *(operator.lt, operator.le, operator.gt, operator.ge),
    *(functions.minimum, functions.maximum),
]
UNARY: list[Callable[[Any], Any]] = [
    operator.neg,
    operator.invert,
    lambda x: x << 2,
    lambda x: x >> 1,
    functions.isqrt,
    lambda x: functions.where(x < 40, x, 7),
]


def kept() -> Operand:
    """(i + 1)*(j + 1), with the product as its form."""
    made = (operand(I) + 1) * (operand(J) + 1)
    assert isinstance(made, Operand)
    assert isinstance(made.form, Mul)
    return made


@pytest.mark.parametrize("operation", BINARY)
@pytest.mark.parametrize("other", [SUM + 1, 5, Operand(SUM + 1, SUM + 1)], ids=str)
@pytest.mark.parametrize("is_left", [True, False])
def test_both_forms_go_on(operation: Callable[..., Any], other: Int, is_left: bool) -> None:
    x = kept()
    made = operation(x, other) if is_left else operation(other, x)
    value = operation(plain(x), plain(other)) if is_left else operation(plain(other), plain(x))
    assert isinstance(made, Operand)
    assert plain(made) is value  # the normal form is not changed by the other form
    assert "(i + 1)*(j + 1)" in repr(made.form) or "(j + 1)*(i + 1)" in repr(made.form)
    assert (evaluate(made.form, POINTS) == evaluate(made.value, POINTS)).all()


@pytest.mark.parametrize("operation", UNARY)
def test_both_forms_go_on_through_one_operand(operation: Callable[[Any], Any]) -> None:
    made = operation(kept())
    assert isinstance(made, Operand)
    assert made.form is not made.value
    assert plain(made) is operation(plain(kept()))
    assert (evaluate(made.form, POINTS) == evaluate(made.value, POINTS)).all()


def test_an_operand_compares_and_hashes_as_its_value() -> None:
    x = operand(I)
    assert x == I
    assert x == operand(I)
    assert x != J
    assert x != 1
    assert len({x, operand(I), kept()}) == 2
    assert repr(kept()) == repr(plain(kept()))
    assert bounds(kept()) == (1, 169)


def test_what_has_one_value_is_a_constant() -> None:
    assert kept() - kept() == 0
    assert type(kept() - kept()) is int
    assert operand(3) == 3


def test_other_types_are_refused() -> None:
    for operation in BINARY[:8]:
        with pytest.raises(TypeError):
            operation(kept(), 1.5)


def test_replaced_symbols_may_make_products_of_sums() -> None:
    i, j = operand(I), operand(J)
    made = replaced(i * j, {I: i + 1, J: j + 1})
    assert isinstance(form_of(made), Mul)
    assert plain(made) is I * J + I + J + 1
    assert form_of(replaced(i + j, {I: i + 1})) is I + J + 1
    assert replaced(I * J, {I: 2 * J}) is 2 * J * J


def test_a_product_of_one_term_is_expanded() -> None:
    assert product(2 * I, J + 1) is 2 * I * J + 2 * I
    assert product(3, J + 1) is 3 * J + 3
    assert isinstance(product(I + 1, J + 1), Mul)


EXPRESSIONS = st.recursive(
    st.one_of(st.sampled_from(["i", "j"]), st.integers(-6, 9)),
    lambda inner: st.tuples(st.sampled_from(range(len(BINARY))), inner, inner),
    max_leaves=8,
)


def computed(tree: Any, values: dict[str, Any]) -> Any:
    """Compute a tree of operations; a divisor is made positive."""
    if not isinstance(tree, tuple):
        return values.get(tree, tree)
    operation = BINARY[tree[0]]
    a, b = (computed(x, values) for x in tree[1:])
    if operation in (operator.floordiv, operator.mod):
        b = functions.maximum(b, 1)
    return operation(a, b) * 1


@given(EXPRESSIONS)
def test_forms_of_random_expressions_are_equal(tree: Any) -> None:
    normal = computed(tree, {"i": I, "j": J})
    made = computed(tree, {"i": operand(I), "j": operand(J)})
    expected = np.broadcast_to(computed(tree, POINTS), I_POINTS.shape)
    assert plain(made) is normal or plain(made) == normal
    assert (evaluate(form_of(made), POINTS) == expected).all()
