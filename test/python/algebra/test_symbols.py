"""Symbols of SymPy's as sizes and as indices: they come back as they went in."""

from __future__ import annotations

import pytest
import sympy

from lego_mlir import LegoError, OrderBy, Row, parse_layout, size_symbol
from lego_mlir.index import Sym


def test_size_symbols_come_back_as_they_were() -> None:
    m = sympy.Symbol("M", integer=True, positive=True)
    i, j = sympy.symbols("i j")
    offset = OrderBy(Row(4, m)).apply(i, j)
    assert offset == m * i + j
    assert offset.subs({m: 5, i: 1, j: 2}) == 7


def test_size_symbols_say_that_they_are_positive() -> None:
    with pytest.raises(LegoError, match="'M' is not declared a positive integer"):
        Row(4, sympy.Symbol("M"))


def test_an_index_that_is_never_in_range() -> None:
    layout = OrderBy(Row(4, 4))
    for index in (Sym("i", 4, 20), Sym("i", None, -1)):
        with pytest.raises(LegoError, match="is never in"):
            layout.apply(index, 0)
    assert layout.apply(Sym("i", 0, 20), 0) is not None  # it may be


def test_symbols_of_one_name_are_one_size_with_the_facts_of_all() -> None:
    plain, divided, other = size_symbol("M"), size_symbol("M", [8]), size_symbol("M", [12])
    layout = OrderBy(Row(plain, 4)).TileBy([divided // 8, 1], [8, 4])
    assert layout == parse_layout("OrderBy(Row(M, 4)).TileBy([M/8, 1], [8, 4])")
    both = OrderBy(Row(divided, 4)).GroupBy([other // 12, 48])
    (symbol,) = both.symbols
    assert symbol.divisors == {8, 12}
    nested = size_symbol("K", [divided])
    both = OrderBy(Row(nested, plain))
    assert [s.name for s in both.symbols] == ["K", "M"]


@pytest.mark.parametrize("name", ["Größe", "a b", "", "2M", "M²", "M\n"])
def test_a_name_that_no_text_can_have_is_an_error(name: str) -> None:
    with pytest.raises(LegoError, match="is no name of a size\nhint: names have ASCII letters"):
        size_symbol(name)


def test_digits_are_those_of_ascii() -> None:
    with pytest.raises(LegoError, match="unexpected character '٣'"):
        parse_layout("OrderBy(Row(٣))")
