"""The text of layouts: canonical texts, facts, every error with its column, and no crash at all."""

from __future__ import annotations

import ast
import inspect
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.algebra import (
    Col,
    GenP,
    Layout,
    OrderBy,
    RegP,
    Row,
    TileBy,
    bricks,
    parse_layout,
    size_symbol,
)
from lego_mlir.algebra.notation import parser
from lego_mlir.diagnostics import LegoError


def double(i):
    return i


def double_inv(flat):
    return (flat,)


FUNCTIONS = {"f": double, "f_inv": double_inv, "no": 3}

CANONICAL = [
    "OrderBy(Row(M, K)).TileBy([M/128, K/64], [128, 64])",
    "OrderBy(Row(M, K)).TileBy([M/BLOCK_M, K/BLOCK_K], [BLOCK_M, BLOCK_K])",
    "OrderBy(Col(2, 2), GenP([3, 3], antidiagonal))"
    ".OrderBy(RegP([2, 3, 2, 3], [0, 2, 1, 3])).GroupBy([6, 6])",
    "TileOrderBy(Row(2, 3), Col(4, 5)).TileBy([2, 3], [4, 5])",
    "GroupBy([2, 2, 2])",
    "TileBy([2, 3], [4, 5])",
    "OrderBy(Row(M, 4)).Window([M, 4, 3], (x, y, i) -> (x + i - 1, 3 - y), zero)",
    "OrderBy(Row(8)).Window([4, 4], (x, i) -> (2*x + i), wrap).TileBy([2, 1], [2, 4])",
    "OrderBy(GenP([32, 32], swizzle))",
    "OrderBy(GenP([8, 64], swizzle(8, 1, 8))).GroupBy([512])",
    "OrderBy(GenP([8, 64], swizzle(8, 1)))",
    "OrderBy(GenP([4], reverse))",
    "OrderBy(GenP([n, n], antidiagonal))",
    "OrderBy(GenP([n], @f, @f_inv))",
    "OrderBy(Col(max(1, m//G), 1), Col(min(G, m), n))",
    "OrderBy(Row(M + 1, 2*M, K*M))",
    "OrderBy(Row(3*(N/2) + 2, N/2))",
    "OrderBy(Row(min(4, N/2), N//3, N%5))",
    "OrderBy(Row(-M + 5))",
    "OrderBy(Row(-M + M*M*N + 2))",
]


@pytest.mark.parametrize("text", CANONICAL)
def test_a_canonical_text_is_printed_back(text: str) -> None:
    layout = parse_layout(text, functions=FUNCTIONS)
    assert layout.text == text
    assert str(layout) == text
    assert parse_layout(layout.text, functions=FUNCTIONS) == layout


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (" OrderBy ( Row( [ 2,3 ] ) ) ", "OrderBy(Row(2, 3))"),
        ("OrderBy(RegP([2, 3], [0, 1]))", "OrderBy(Row(2, 3))"),
        ("OrderBy(RegP([2, M, 4], [2, 1, 0]))", "OrderBy(Col(2, M, 4))"),
        ("TileOrderBy(Col(6), RegP([4], [0]))", "TileOrderBy(Row(6), Row(4))"),
        ("OrderBy(GenP([4], inverse(reverse)))", "OrderBy(GenP([4], reverse))"),
        ("OrderBy(Row(4*8, (2)))", "OrderBy(Row(32, 2))"),
        ("OrderBy(Row(64/8, 7//2, 7%4))", "OrderBy(Row(8, 3, 3))"),
        ("OrderBy(Row(M/8/4, 32)).GroupBy([M])", "OrderBy(Row(M/32, 32)).GroupBy([M])"),
        ("OrderBy(Row(K + M + K))", "OrderBy(Row(2*K + M))"),
        ("OrderBy(Row(min(M, 4), min(3, 4)))", "OrderBy(Row(min(4, M), 3))"),
        ("OrderBy(Row(M/M, --3))", "OrderBy(Row(1, 3))"),
        ("OrderBy(Row(M{-K, K}, N{-4}))", "OrderBy(Row(M{K}, N{4}))"),
        ("OrderBy(GenP([8, 8], swizzle(1, 1)))", "OrderBy(GenP([8, 8], swizzle))"),
        ("OrderBy(\n  Row(2, 3)\n).GroupBy([6])", "OrderBy(Row(2, 3)).GroupBy([6])"),
    ],
)
def test_other_texts_become_canonical(text: str, canonical: str) -> None:
    assert parse_layout(text).text == canonical


@pytest.mark.parametrize("text", ["OrderBy(Row(N/-T, N/T))", "OrderBy(Row(N/-T), Row(N))"])
def test_a_divisor_and_its_opposite_state_one_fact(text: str) -> None:
    layout = parse_layout(text)
    assert parse_layout(layout.text) == layout
    assert {s.name: s.divisors for s in layout.symbols}["N"] == {size_symbol("T")}


def test_a_slash_states_a_fact_for_the_whole_text() -> None:
    """`M/128` in the view makes the M of the Row before it a multiple of 128."""
    layout = parse_layout("OrderBy(Row(M, K)).TileBy([M/128, K], [128, 1])")
    m = size_symbol("M", multiple_of=[128])
    assert layout.dims[0] is m // 128
    assert layout.orders[0].dims[0] is m
    with pytest.raises(LegoError, match="M = 100 is no multiple of 128"):
        layout.bind(M=100)


def test_a_double_slash_states_none() -> None:
    layout = parse_layout("OrderBy(Row(M//128, 4))")
    assert layout.symbols == (size_symbol("M"),)
    assert layout.bind(M=300).size == 8


def test_a_fact_that_follows_from_another_is_dropped() -> None:
    """M/64 next to M/128 once left a layout that its own text did not parse to."""
    layout = parse_layout("OrderBy(Row(M/64, 64)).OrderBy(Row(M/128, 128))")
    assert layout.text == "OrderBy(Row(2*(M/128), 64)).OrderBy(Row(M/128, 128))"
    assert parse_layout(layout.text) == layout
    assert size_symbol("M", [4, 6]).divisors == {4, 6}


def test_sizes_given_with_the_text() -> None:
    layout = parse_layout("OrderBy(Row(M, K)).TileBy([M/8, K/4], [8, 4])", sizes={"M": 64})
    assert layout.text == "OrderBy(Row(64, K)).TileBy([8, K/4], [8, 4])"


def test_a_text_is_another_layout_with_other_sizes() -> None:
    text = "OrderBy(Row(M, 4)).TileBy([M/2, 2], [2, 2])"
    assert parse_layout(text) is parse_layout(text)
    assert parse_layout(text, {"M": 8}) is parse_layout(text, {"M": 8, "K": 2})
    assert parse_layout(text, {"M": 8}).size == 32
    assert parse_layout(text, {"M": 16}).size == 64
    assert parse_layout(text).symbols[0].name == "M"


def test_a_functions_name_stands_for_the_function_passed_with_it() -> None:
    text = "OrderBy(GenP([4], @f, @f))"
    first = parse_layout(text, functions={"f": lambda i: i})
    second = parse_layout(text, functions={"f": lambda i: 3 - i})
    assert (first.apply(1), second.apply(1)) == (1, 2)


# Text, 1-based column of the mistake, what the message says.
ERRORS = [
    ("", 1, "expected OrderBy, TileOrderBy, GroupBy, TileBy or Window, found the end"),
    ("Row(2, 3)", 1, "expected OrderBy, TileOrderBy, GroupBy, TileBy or Window, found 'Row'"),
    ("OrderBy", 8, "expected '(' after OrderBy, found the end"),
    ("OrderBy(Row(2, 3)", 8, "'(' is never closed"),
    ("OrderBy(Row(2, 3)))", 19, "')' closes nothing"),
    ("OrderBy(Row(2, 3]))", 17, "']' does not match the '(' of column 12"),
    ("OrderBy(RegP([2, 3), [0, 1]))", 19, "')' does not match the '[' of column 14"),
    ("OrderBy(Row(2; 3))", 14, "unexpected character ';'"),
    ("OrderBy(Row(2, é))", 16, "unexpected character 'é'"),
    ("OrderBy(Row(2, 3)) OrderBy(Row(6))", 20, "unexpected 'OrderBy' after the layout"),
    ("OrderBy(Row(2, 3)).", 20, "found the end"),
    ("OrderBy(Row(2, 3)).GroupBy([6]).OrderBy(Row(6))", 33, "OrderBy after GroupBy: the view"),
    ("OrderBy(Row(2, 3)).GroupBy([6]).TileBy([6])", 33, "TileBy after GroupBy: the view"),
    ("OrderBy()", 9, "expected a block (RegP, GenP, Row, Col), found ')'"),
    ("OrderBy(OrderBy(Row(2)))", 9, "expected a block (RegP, GenP, Row, Col), found 'OrderBy'"),
    ("OrderBy(Row)", 12, "expected '(' after Row, found ')'"),
    ("OrderBy(Row())", 13, "expected a size, found ')'"),
    ("OrderBy(Row([2, 3], 4))", 19, "expected ')' at the end of Row, found ','"),
    ("OrderBy(Row(2, , 3))", 16, "expected a size, found ','"),
    ("OrderBy(Row(2 3))", 15, "expected ')' or ',' after an item, found '3'"),
    ("OrderBy(Row(2, 3) Col(2, 3))", 19, "expected ')' or ',' after an item, found 'Col'"),
    ("OrderBy(RegP(2, 3))", 14, "expected '[' to open a list of sizes, found '2'"),
    ("OrderBy(RegP([2, 3]))", 20, "expected ',' after the sizes, found ')'"),
    ("OrderBy(RegP([2, 3], [0, 1], 2))", 28, "expected ')' at the end of RegP, found ','"),
    ("OrderBy(RegP([2, 3], [0, 0]))", 9, "RegP: [0, 0] is not a permutation of [0, 1]"),
    ("OrderBy(RegP([2, 3], [1, 2]))", 9, "RegP: [1, 2] is not a permutation of [0, 1]"),
    ("OrderBy(RegP([2, 3], [M, 0]))", 9, "is not a permutation of [0, 1]"),
    ("OrderBy(RegP([2, 3], [0]))", 9, "RegP: 2 sizes but a permutation of 1"),
    ("OrderBy(Row(2), Row(2, 0))", 17, "Row: a size must be at least 1, not 0"),
    ("OrderBy(Row(2, 3 - 5))", 9, "Row: a size must be at least 1, not -2"),
    ("OrderBy(Row(7/2))", 14, "2 does not divide 7"),
    ("OrderBy(Row(M/0))", 14, "division of 'M' by zero"),
    ("OrderBy(Row(M//(2-2)))", 14, "division of 'M' by zero"),
    ("OrderBy(Row(M%0))", 14, "remainder of 'M' by zero"),
    ("OrderBy(Row((M+1)/2))", 18, "2 is not known to divide M + 1"),
    ("OrderBy(Row((2*M+1)/2))", 20, "2 is not known to divide 2*M + 1"),
    ("OrderBy(Row(min(2)))", 18, "expected ',' between the operands of min, found ')'"),
    ("OrderBy(Row(max 2))", 17, "expected '(' after max, found '2'"),
    ("OrderBy(Row(min(2, 3, 4)))", 21, "expected ')' at the end of min, found ','"),
    ("OrderBy(Row((2 3)))", 16, "expected ')' to close the size, found '3'"),
    ("OrderBy(Row(2 *))", 16, "expected a size, found ')'"),
    ("OrderBy(GenP([3, 3], spiral))", 22, "there is no permutation 'spiral'"),
    ("OrderBy(GenP([3, 3], antidiagonal(2)))", 22, "antidiagonal takes no parameters"),
    ("OrderBy(GenP([3, 4], antidiagonal))", 9, "antidiagonal permutes a square tile, not [3, 4]"),
    ("OrderBy(GenP([4, 4], swizzle(3)))", 22, "powers of two, not 3"),
    ("OrderBy(GenP([4, 4], swizzle(1, 1, 1, 1)))", 22, "takes vec, per_phase and max_phase"),
    ("OrderBy(GenP([4, 4], swizzle(M)))", 30, "expected an integer, found 'M'"),
    ("OrderBy(GenP([4, 4], swizzle(4, 1, 2)))", 9, "2 phases of 4 elements do not fit"),
    ("OrderBy(GenP([4, 6], swizzle))", 9, "powers of two, not [4, 6]"),
    ("OrderBy(GenP([4, 4, 4], swizzle))", 9, "two dimensions"),
    ("OrderBy(GenP([4], @g, @f_inv))", 20, "there is no function @g"),
    ("OrderBy(GenP([4], @f))", 21, "expected ',' and the inverse after the function, found ')'"),
    ("OrderBy(GenP([4], @f, f_inv))", 23, "expected '@' before the inverse function's name"),
    ("OrderBy(GenP([4], @f, @g))", 24, "there is no function @g"),
    ("TileOrderBy(Row(2), Row(2, 3))", 1, "need the same rank, here 1, 2"),
    ("OrderBy(Row(4, 4)).TileBy([2, 2], [4])", 20, "same number of dimensions, here 2, 1"),
    ("OrderBy(Row(2), Row(2, 3)).TileBy([12])", 28, "need the same rank, here 1, 2"),
    ("OrderBy(Row(2, 3)).GroupBy([7])", 20, "has 6 elements, GroupBy([7]) has 7"),
    ("OrderBy(Row(2, 3)).OrderBy(Row(5))", 20, "has 6 elements, OrderBy(Row(5)) has 5"),
    ("OrderBy(Row(M)).GroupBy([N])", 17, "has M elements, GroupBy([N]) has N: not known"),
    ("OrderBy(Row(M)).GroupBy([M//4, 4])", 17, "not known to be equal"),
    ("GroupBy([])", 10, "expected a size, found ']'"),
    ("GroupBy(2)", 9, "expected '[' to open a list of sizes, found '2'"),
    ("OrderBy(Row(" + "9" * 5000 + "))", 13, "the limit layout_digits is 30"),
    ("OrderBy(Row(" + "(" * 5000 + "2" + ")" * 5000 + "))", 75, "the limit layout_nesting is 64"),
    ("OrderBy(Row(" + "-" * 5001 + "2))", 9, "Row: a size must be at least 1, not -2"),
    ("OrderBy(Row(" + "1+" * 2000 + "2))", 214, "the limit size_nesting is 100"),
]


@pytest.mark.parametrize(("text", "column", "message"), ERRORS, ids=[t[:40] for t, *_ in ERRORS])
def test_errors_say_what_and_where(text: str, column: int, message: str) -> None:
    with pytest.raises(LegoError) as e:
        parse_layout(text, functions=FUNCTIONS)
    assert message in e.value.message
    assert e.value.location is not None
    assert (e.value.location.file, e.value.location.line, e.value.location.column) == (
        "<layout>",
        1,
        column,
    )
    *_, caret = [line for line in e.value.render().splitlines() if not line.startswith("hint")]
    assert not 0 < len(text) <= 200 or caret == " " * (column + 1) + "^"


@pytest.mark.parametrize("value", [0, -4, 2.5, "4", True, None])
def test_given_sizes_are_checked(value: object) -> None:
    with pytest.raises(LegoError, match="M: a size"):
        parse_layout("OrderBy(Row(M/2, 4))", sizes={"M": value})


def survives(text: str) -> None:
    """Either a layout that prints a text that parses, or a LegoError; nothing else."""
    try:
        layout = parse_layout(text, functions={"f": double, "f_inv": double_inv})
    except LegoError as e:
        e.render()
        return
    assert isinstance(layout, Layout)
    again = parse_layout(layout.text, functions=FUNCTIONS)
    assert again.text == layout.text


@given(st.text(max_size=60))
def test_any_text_is_a_layout_or_an_error(text: str) -> None:
    survives(text)


WORDS = [
    *("OrderBy(", "TileOrderBy(", "GroupBy(", "TileBy(", "Row(", "Col(", "RegP(", "GenP("),
    *("Window(", "(x) -> (x)", "->", "zero", "clamp", "x", "(x, i) -> (x + i - 1)"),
    *("antidiagonal", "reverse", "swizzle", "f", "f_inv", "min(", "max(", "[2,3]", "[0,1]"),
    *("M", "K", "n", "0", "1", "2", "3", "4", "64", "128"),
    *"[](),.@+-*/%))]",
    "//",
]


@given(st.lists(st.sampled_from(WORDS), max_size=25), st.sampled_from(["", " "]))
def test_any_sequence_of_tokens_is_a_layout_or_an_error(words: list[str], blank: str) -> None:
    survives(blank.join(words))


@given(
    st.sampled_from(CANONICAL),
    st.lists(st.tuples(st.integers(0, 90), st.sampled_from([*WORDS, "", "²", "٣", "\0"]))),
)
def test_a_mutated_layout_is_a_layout_or_an_error(text: str, edits: list[tuple[int, str]]) -> None:
    """Characters of valid texts replaced by tokens: gets much deeper than garbage does."""
    for at, word in edits[:4]:
        at %= len(text) + 1
        text = text[:at] + word + text[at + 1 :]
    survives(text)


def test_no_text_is_ever_evaluated() -> None:
    """The parser never hands text to Python: neither eval, exec, compile nor an import."""
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(inspect.getsource(parser)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert calls.isdisjoint({"eval", "exec", "compile", "__import__", "getattr", "globals"})
    with pytest.raises(LegoError):
        parse_layout("OrderBy(Row(__import__('os').getpid()))")


def test_dots_and_text_give_equal_layouts() -> None:
    m, k = size_symbol("M", [128]), size_symbol("K", [64])
    dots = OrderBy(Row(m, k)).TileBy([m // 128, k // 64], [128, 64])
    assert parse_layout(CANONICAL[0]) == dots
    assert parse_layout("TileBy([2, 3], [4, 5])") == TileBy([2, 3], [4, 5])


BK = size_symbol("BK", multiple_of=[16])
WITH_FACTS = {
    OrderBy(Row(size_symbol("M", [4]), 3)): "OrderBy(Row(M{4}, 3))",
    OrderBy(Row(size_symbol("M", [4, 6]), 3)): "OrderBy(Row(M{4, 6}, 3))",
    OrderBy(Col(2 * size_symbol("M", [BK]) + 1, 3)): "OrderBy(Col(2*M{BK{16}} + 1, 3))",
    TileBy([size_symbol("M", [128]) // 128], [128]): "TileBy([M/128], [128])",
    TileBy([size_symbol("M", [128]) // 64], [64]): "TileBy([2*(M/128)], [64])",
    TileBy([size_symbol("M", [BK]) // BK], [BK]): "TileBy([M/BK{16}], [BK])",
    OrderBy(GenP([size_symbol("K", [8])], bricks(8))): "OrderBy(GenP([K], bricks(8)))",
    OrderBy(Row(size_symbol("MN", [3]), size_symbol("N", [5]))): "OrderBy(Row(MN{3}, N{5}))",
}


@pytest.mark.parametrize(("layout", "text"), WITH_FACTS.items(), ids=WITH_FACTS.values())
def test_a_symbols_divisors_are_written_once(layout: Layout, text: str) -> None:
    """Where no division says it; the text parses to the same layout with the same facts."""
    assert layout.text == text
    assert parse_layout(text) == layout


@pytest.mark.parametrize(
    ("text", "sizes", "message"),
    [
        ("OrderBy(Row(M{4}))", {"M": 6}, "4 does not divide 6"),
        ("OrderBy(Row(M{0}))", {}, "by zero"),
        ("OrderBy(Row(M{}))", {}, "expected a size"),
        ("OrderBy(Row(M{4))", {}, "does not match the '{'"),
        ("OrderBy(Row(4{2}))", {}, "found '{'"),
    ],
)
def test_facts_that_cannot_be(text: str, sizes: dict[str, int], message: str) -> None:
    with pytest.raises(LegoError, match=re.escape(message)):
        parse_layout(text, sizes)
    assert parse_layout("OrderBy(Row(M{4}))", {"M": 8}).size == 8


@pytest.mark.parametrize(
    ("text", "guess"),
    [
        ("Orderby(Row(2))", "OrderBy"),
        ("OrderBy(Rwo(2))", "Row"),
        ("OrderBy(GenP([4, 4], antidiagnal))", "antidiagonal"),
    ],
)
def test_a_misspelt_name_is_answered_by_the_nearest_known_one(text: str, guess: str) -> None:
    with pytest.raises(LegoError) as caught:
        parse_layout(text)
    assert caught.value.hint is not None
    assert f"did you mean {guess}?" in caught.value.hint


def test_a_divisor_without_a_value_is_a_missing_size() -> None:
    with pytest.raises(LegoError, match=r"the size R .* has no value") as caught:
        parse_layout("OrderBy(Row(4, 32/R))", {"T": 32})
    assert caught.value.hint is not None
    assert "--set R=" in caught.value.hint


def test_an_error_in_a_long_line_shows_what_surrounds_the_caret() -> None:
    text = "OrderBy(Row(" + "2, " * 1000 + "&" + ", 2" * 1000 + "))"
    with pytest.raises(LegoError) as caught:
        parse_layout(text)
    _, row, caret = caught.value.render().split("\n")[:3]
    assert len(row) < 250
    assert row[caret.index("^")] == "&"


@given(st.permutations([0, 1, 2]), st.lists(st.integers(1, 4), min_size=3, max_size=3))
def test_equal_blocks_have_the_same_text(perm: list[int], sizes: list[int]) -> None:
    """However they are made; so a text that a cache keeps for a layout is that of any equal one."""
    ways = [RegP(sizes, perm), RegP(RegP(sizes, perm).dims, perm)]
    ways += [kind(*sizes) for kind in (Row, Col)]
    ways += [parse_layout(OrderBy(b).text).orders[0].blocks[0] for b in list(ways)]
    for a in ways:
        for b in ways:
            assert (a == b) == (a.text == b.text)
