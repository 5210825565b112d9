"""No short text of a layout takes long: limits with their locations, and steps that are counted."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from lego_mlir import Limits
from lego_mlir.algebra import Layout, parse_layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Sym


def joined(operator: str, n: int, name: str = "M") -> str:
    return operator.join(name.format(i) for i in range(n))


# What took seconds to hours, and the limit that ends it: text, limit.
SLOW = {
    "quotients": (f"OrderBy(Row({joined('/', 2000)}))", "size_nesting"),
    "quotients of many": (f"OrderBy(Row(M/{joined('/', 1600, 'A{}')}))", "size_nesting"),
    "products of sums": (f"OrderBy(Row({joined('*', 60, '(A{0}+B{0})')}))", "index_steps"),
    "powers of a sum": (f"OrderBy(Row({joined('*', 90, '(A+B+C+D)')}))", "index_steps"),
    "facts": (f"OrderBy(Row(M{{{joined(',', 1600, '{}')}}}))".replace("{0,", "{"), "index_steps"),
    "facts of names": (f"OrderBy(Row(M{{{joined(',', 1600, 'A{}')}}}))", "index_steps"),
    "dimensions": (f"OrderBy(Row({joined(',', 5000)}))", "layout_tokens"),
    "brackets": ("OrderBy(Row(" + "(" * 900 + "M" + ")" * 900 + "))", "layout_nesting"),
    "minima": (f"OrderBy(Row({'min(M,' * 900}3{')' * 900}))", "layout_nesting"),
    "digits": (f"OrderBy(Row({10**4000}))", "layout_digits"),
}  # fmt: skip


@pytest.mark.parametrize("name", SLOW)
def test_a_text_that_would_take_long_is_an_error_with_its_location(name: str) -> None:
    text, limit = SLOW[name]
    with pytest.raises(LegoError, match=f"the limit {limit} is ") as e:
        parse_layout(text)
    assert e.value.location is not None
    assert e.value.location.column > 1
    assert f"--limit {limit}=VALUE" in str(e.value.hint)


def test_a_limit_is_raised_by_an_argument_and_by_the_context() -> None:
    text = f"OrderBy(Row({joined('+', 150, 'M{}')}))"
    with pytest.raises(LegoError, match="the limit size_nesting is 100"):
        parse_layout(text)
    wider = Limits(size_nesting=149)
    parsed = parse_layout(text, limits=wider)
    with pytest.raises(LegoError, match="the limit size_nesting is 148"):
        parse_layout(text + " ", limits=Limits(size_nesting=148))
    with wider.applied():
        assert parse_layout(f" {text}") == parsed


def test_limits_are_exact() -> None:
    text = "OrderBy(Row((12)/4))"  # 11 tokens, 3 brackets open at most
    for limit, value in {"layout_tokens": 11, "layout_nesting": 3, "layout_digits": 2}.items():
        parse_layout(text, limits=Limits(**{limit: value}))
        with pytest.raises(LegoError, match=f"the limit {limit} is {value - 1}"):
            parse_layout(f"{text} ", limits=Limits(**{limit: value - 1}))


@pytest.mark.parametrize(
    "ask",
    [
        lambda layout: layout.apply(*(Sym(name, 0) for name in "ijkl")),
        lambda layout: layout.inv(Sym("x", 0)),
    ],
    ids=["apply", "inv"],
)
def test_every_query_of_a_layout_counts_its_steps(ask: Callable[[Layout], object]) -> None:
    text = "OrderBy(Row(M*(A+B+C), N*(A+B+D))).TileBy([M, N], [A+B+C, A+B+D])"
    layout = parse_layout(text)
    ask(layout)
    other = parse_layout(text.replace("M", "M2"))
    with Limits(index_steps=3).applied(), pytest.raises(LegoError, match="index_steps"):
        ask(other)


def test_spaces_are_read_in_linear_time() -> None:
    start = time.process_time()
    with pytest.raises(LegoError):
        parse_layout("OrderBy(Row" + " " * 100_000)
    assert time.process_time() - start < 1
