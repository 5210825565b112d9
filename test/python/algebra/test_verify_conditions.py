"""Verdicts on functions whose choices depend on symbolic sizes; the truth is every element."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lego_mlir.algebra import GenP, OrderBy, Verdict, size_symbol
from lego_mlir.index import where
from lego_mlir.index.evaluate import evaluate

n = size_symbol("n")
SIZES = range(1, 20)
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge)
CONNECTIVES = (operator.and_, operator.or_, operator.xor)
Condition = Callable[[Any], Any]
"""Of an index; the size is the symbol."""


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> Condition:
    """Comparisons of an index, the size and numbers, joined by connectives."""
    if depth and draw(st.integers(0, 2)):
        a, b = draw(conditions(depth - 1)), draw(conditions(depth - 1))
        connective = draw(st.sampled_from(CONNECTIVES))
        negated = draw(st.booleans())
        return lambda i: 1 - connective(a(i), b(i)) if negated else connective(a(i), b(i))
    compare = draw(st.sampled_from(COMPARISONS))
    term = draw(st.sampled_from(["i", "last - i", "n"]))
    bound = draw(st.integers(-2, 12))
    of_n = draw(st.booleans()) and term != "n"

    def condition(i: Any) -> Any:
        left = {"i": i, "last - i": n - 1 - i, "n": n}[term]
        return compare(left, n - bound if of_n else bound)

    return condition


def turned(condition: Condition) -> Callable[[Any], Any]:
    """The function that exchanges the ends where a condition holds."""

    def chosen(i: Any) -> Any:
        return where(condition(i), n - 1 - i, i)

    return chosen


def verdict(condition: Condition) -> Verdict:
    f = turned(condition)
    return OrderBy(GenP([n], f, f)).verify()


def is_permuted(condition: Condition, size: int) -> bool:
    """Whether the function is its own inverse on the tile of a size, by plain enumeration."""
    f = turned(condition)
    positions = [int(evaluate(f(i), {"n": size})) for i in range(size)]
    return all(0 <= p < size and positions[p] == i for i, p in enumerate(positions))


@settings(max_examples=60)
@given(conditions())
def test_verdicts_agree_with_every_small_size(condition: Condition) -> None:
    found = verdict(condition)
    if found.holds is False:
        assert found.counterexample is not None
        assert not is_permuted(condition, found.counterexample.sizes["n"])
    elif found.holds:
        assert all(is_permuted(condition, size) for size in SIZES)


# Beyond the sizes that are enumerated, only a proof or its counter-example tells.
RIGHT = {
    "and": lambda i: (n > 500) & (i >= 0),
    "or": lambda i: (i < 10) | (i > n - 11),
    "ends": lambda i: ((i < 1) | (i > n - 2)) & (n > 500),
    "not": lambda i: 1 - ((i < 1) | (i > n - 2)),
    "exclusive": lambda i: (n > 500) ^ (n > 600),
    "a known truth": lambda i: (i > n - 2) & False,
}
WRONG = {
    "and": lambda i: (i > n - 2) & (n > 500),
    "known first": lambda i: True & (i > n - 2) & (n > 500),
    "or": lambda i: (1 - (n > 500)) * (i < 0) | (n > 500) * (i > n - 2),
}


@pytest.mark.parametrize("condition", RIGHT.values(), ids=RIGHT)
def test_connectives_that_are_right(condition: Condition) -> None:
    assert verdict(condition).holds is True


@pytest.mark.parametrize("condition", WRONG.values(), ids=WRONG)
def test_connectives_that_are_wrong_at_large_sizes_alone(condition: Condition) -> None:
    found = verdict(condition)
    assert found.holds is False
    assert found.counterexample is not None
    assert found.counterexample.sizes["n"] > 500
