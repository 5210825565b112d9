"""isqrt, where, minimum, maximum: the same on integers, arrays and index expressions."""

from __future__ import annotations

from math import isqrt as truth

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.index import Sym, bounds, evaluate, isqrt, maximum, minimum, where

EXPONENTS = [*range(52, 62)]


def near_squares(exponent: int) -> list[int]:
    """Squares, and one to either side, where double precision cannot tell them apart."""
    root = truth(1 << exponent)
    roots = [root - 1, root, root + 1, root + root // 3]
    return [r * r + off for r in roots for off in (-1, 0, 1)]


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_isqrt_is_exact_where_floating_point_is_not(exponent: int) -> None:
    numbers = near_squares(exponent)
    assert [isqrt(n) for n in numbers] == [truth(n) for n in numbers]
    roots = isqrt(np.array(numbers, dtype=np.int64))
    assert roots.tolist() == [truth(n) for n in numbers]
    assert roots.dtype == np.int64


def test_floating_point_alone_would_fail_there() -> None:
    """The correction in isqrt is needed: without it these very numbers come out wrong."""
    numbers = np.array([n for e in EXPONENTS for n in near_squares(e)], dtype=np.int64)
    assert (np.floor(np.sqrt(numbers.astype(float))) != [truth(n) for n in numbers]).any()


@given(st.lists(st.integers(0, (1 << 62) - 1), min_size=1, max_size=50))
def test_isqrt_of_arrays(numbers: list[int]) -> None:
    assert isqrt(np.array(numbers)).tolist() == [truth(n) for n in numbers]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_isqrt_of_every_integer_type(dtype: type) -> None:
    top = min(int(np.iinfo(dtype).max), (1 << 62) - 1)
    assert isqrt(np.array([0, 1, 4, 99, top], dtype)).tolist() == [0, 1, 2, 9, truth(top)]
    assert int(isqrt(dtype(15))) == 3


def test_isqrt_of_expressions() -> None:
    x, y = Sym("x", 0, 99), Sym("y", 4, 8)
    assert bounds(isqrt(x)) == (0, 9)
    assert isqrt(y) == 2
    assert evaluate(isqrt(x), {"x": np.arange(100)}).tolist() == [truth(n) for n in range(100)]


A = Sym("a", 0, 10)
N = Sym("n", 1)


def test_choices_that_ranges_make() -> None:
    assert where(A < 11, 1, 2) == 1
    assert where(A < 0, 1, 2) == 2
    assert where(A >= 0, A, 2) is A
    assert where(A < 5, A, A) is A
    assert minimum(A, 10) is A
    assert minimum(A, 0) == 0
    assert maximum(A, 11) == 11
    assert maximum(A, A - N) is A
    assert minimum(3, 2) == 2
    assert maximum(3, 2) == 3


@pytest.mark.parametrize("c", [True, False, 0, 1])
def test_conditions_known_as_numbers(c: int) -> None:
    assert where(c, A, 5) is (A if c else 5)
    assert where(c, 6, 5) == (6 if c else 5)


def test_negated_conditions_swap_the_choice() -> None:
    assert where(A >= 5, 1, 2) is where(A < 5, 2, 1)


def test_arrays_choose_element_by_element() -> None:
    a = np.arange(5)
    assert where(a < 2, a, 9).tolist() == [0, 1, 9, 9, 9]
    assert minimum(a, 2).tolist() == [0, 1, 2, 2, 2]
    assert maximum(2, a).tolist() == [2, 2, 2, 3, 4]


def test_only_the_chosen_branch_is_evaluated() -> None:
    """A root of a negative number in the branch not taken once raised."""
    x = Sym("x")
    root = where(x < 0, 0, isqrt(x))
    assert evaluate(root, {"x": -4}) == 0
    assert evaluate(root, {"x": 17}) == 4
    assert evaluate(where(x < 1, 7, 100 // x), {"x": 0}) == 7
