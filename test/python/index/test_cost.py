"""Factoring and counting: what the printers will write."""

from __future__ import annotations

from collections import Counter

import pytest

from lego_mlir.index import Int, Sym, isqrt
from lego_mlir.index.extraction.cost import Kind, count, operations, weight
from lego_mlir.index.extraction.factor import Product, Sum, factor

I, J, K, M, N = (Sym(name) for name in "ijKMN")  # noqa: E741 - the names in the formulas

EXPRESSIONS: list[tuple[Int, dict[Kind, int]]] = [
    (7, {}),
    (I, {}),
    (I + J - 3, {Kind.ADD: 2}),
    (-I, {Kind.ADD: 1}),
    (8 * I, {Kind.SHIFT: 1}),
    (6 * I, {Kind.MULTIPLY: 1}),
    (8 * I + 8 * J, {Kind.SHIFT: 1, Kind.ADD: 1}),
    (4 * I - 4 * J, {Kind.SHIFT: 1, Kind.ADD: 1}),
    (K * I + K * J, {Kind.MULTIPLY: 1, Kind.ADD: 1}),
    (I // 8, {Kind.SHIFT: 1}),
    (I % 32, {Kind.SHIFT: 1}),
    (I // 6, {Kind.DIVIDE_BY_CONSTANT: 1}),
    (I // K, {Kind.DIVIDE: 1}),
    ((I ^ J) + isqrt(N), {Kind.OTHER: 1, Kind.ROOT: 1, Kind.ADD: 1}),
    (I // 8 + (I // 8) * (I // 8), {Kind.SHIFT: 1, Kind.MULTIPLY: 1, Kind.ADD: 1}),
]


@pytest.mark.parametrize(("x", "kinds"), EXPRESSIONS, ids=[repr(x) for x, _ in EXPRESSIONS])
def test_operations_by_kind(x: Int, kinds: dict[Kind, int]) -> None:
    assert operations(x) == Counter(kinds)
    assert count(x) == sum(kinds.values())


def test_a_common_subexpression_is_counted_once() -> None:
    q = I // K
    assert count([q, q + 1, J - K * q]) == count(q) + 1 + 2
    assert count([I + J, I + J + 1, I + J + 2]) == 3
    assert count([I, J, 4]) == 0


def test_the_cost_of_a_division_depends_on_its_divisor() -> None:
    shift, constant, symbolic = (weight(I // d) for d in (8, 6, K))
    assert shift == 1
    assert shift < constant < symbolic
    assert weight([I + J, isqrt(I)]) == 1 + weight(isqrt(I))


def test_the_tile_of_a_matmul_is_factored() -> None:
    bm, bk, m, k = Sym("BM"), Sym("BK"), Sym("m"), Sym("k")
    x = K * (bm * m + I) + bk * k + J
    assert count(x) == 6
    tree = factor(x)
    assert isinstance(tree, Sum)
    assert any(isinstance(t, Product) and K in t.factors for _, t in tree.terms)


def test_a_common_negative_factor_is_subtracted_once() -> None:
    assert count(N - 4 * I - 4 * J) == 3  # n - 4*(i + j)
