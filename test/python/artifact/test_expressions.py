"""Expressions of a launch: programs compute what a recursive evaluation of drawn trees gives."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.artifact.expressions import PATTERN, Leaf, Program, folded, tokens
from lego_mlir.diagnostics import LegoError

VALUES, SHAPES, STRIDES = (7, 0, -3), ((), (5, 64), (9,)), ((), (80, 1), (2,))
LEAVES = {
    "a0": 7,
    "a2": -3,
    "a1.d0": 5,
    "a1.d1": 64,
    "a2.d0": 9,
    "a1.s0": 80,
    "a2.s0": 2,
}

leaf = st.sampled_from(sorted(LEAVES)) | st.integers(-50, 50)
trees = st.recursive(
    leaf,
    lambda inner: st.tuples(
        st.sampled_from(["+", "-", "*", "//", "%", "min", "max", "<", ">=", "=="]), inner, inner
    ),
    max_leaves=12,
)


def text(tree: Any) -> str:
    return f"{text(tree[1])} {text(tree[2])} {tree[0]}" if isinstance(tree, tuple) else str(tree)


def value(tree: Any) -> int:
    if not isinstance(tree, tuple):
        return LEAVES[tree] if isinstance(tree, str) else tree
    sign, (a, b) = tree[0], map(value, tree[1:])
    match sign:
        case "+" | "-" | "*":
            return a + b if sign == "+" else a - b if sign == "-" else a * b
        case "//" | "%":
            return a // b if sign == "//" else a % b
        case "min" | "max":
            return min(a, b) if sign == "min" else max(a, b)
    return int(a < b if sign == "<" else a >= b if sign == ">=" else a == b)


@given(st.lists(trees, max_size=4))
def test_a_program_computes_every_expression(drawn: list[Any]) -> None:
    program = Program([text(tree) for tree in drawn])
    try:
        expected = [value(tree) for tree in drawn]
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            program(VALUES, SHAPES, STRIDES)
        return
    assert program(VALUES, SHAPES, STRIDES) == expected


@given(trees)
def test_texts_match_the_pattern_of_a_bundle(drawn: Any) -> None:
    assert re.fullmatch(PATTERN, text(drawn))


@pytest.mark.parametrize("wrong", ["a", "a0.x1", "a0.d", "a0.d1.s0", "b0", "1 2 **", "a0.d100"])
def test_other_texts_do_not(wrong: str) -> None:
    assert re.fullmatch(PATTERN, wrong) is None


def test_leaves_say_what_they_ask_for() -> None:
    assert tokens("a3.d1 a0 * a12.s0 -7 min") == (
        Leaf(3, "size", 1),
        Leaf(0),
        "*",
        Leaf(12, "stride", 0),
        -7,
        "min",
    )


@pytest.mark.parametrize("wrong", ["", "1 +", "1 2", "+", "1 2 + +", "a0 x", "exit() 1 +"])
def test_a_text_that_is_no_expression_is_refused(wrong: str) -> None:
    with pytest.raises(LegoError, match="an expression that is not understood"):
        folded(wrong, str, lambda a, sign, b: sign)
    with pytest.raises(LegoError, match="an expression that is not understood"):
        Program([wrong])
