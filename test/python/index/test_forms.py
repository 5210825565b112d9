"""Expanded or whole: the cheaper form is kept, its value is the normal form's, nothing is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from lego_mlir.index import Int, Sym, evaluate, where
from lego_mlir.index.construct import substitute
from lego_mlir.index.extraction import forms
from lego_mlir.index.extraction.cost import count, weight
from lego_mlir.index.nodes import Expr, Mul, Poly, Spelled, plain
from lego_mlir.index.operands import Operand

I, J, N = Sym("i", 0, 40), Sym("j", 0, 40), Sym("n", 1, 41)  # noqa: E741 - the names in the formulas


def triangle(i: Int, j: Int) -> Int:
    """The position of an element on its anti-diagonal: s*(s + 1)/2 + i with s = i + j."""
    s = i + j
    return i + s * (s + 1) // 2


def test_a_product_of_sums_stays_whole_where_that_is_cheaper() -> None:
    normal = triangle(I, J)
    chosen = forms.derive(triangle, I, J)
    assert isinstance(chosen, Spelled)
    assert chosen.value is normal
    assert repr(chosen) == "i + ((i + j)*(i + j + 1))//2"
    assert count(chosen) == 5 < count(normal)
    assert weight(chosen) < weight(normal)


def test_it_is_expanded_where_that_is_cheaper() -> None:
    """(i + 1)*(j + 1) - i*j - 1 is i + j: only expanded does it cancel."""
    chosen = forms.derive(lambda i, j: (i + 1) * (j + 1) - i * j - 1, I, J)
    assert chosen is I + J


def test_without_a_product_of_sums_there_is_one_form() -> None:
    seen: list[Int] = []

    def make(i: Int) -> Int:
        seen.append(N * (i + J) + 3)
        return seen[-1]

    assert forms.derive(make, I) is N * I + N * J + 3
    (made,) = seen
    assert isinstance(made, Operand)
    assert made.form is made.value


def test_a_function_is_called_once() -> None:
    calls = []

    def make(i: Int, j: Int) -> Int:
        calls.append(1)
        return triangle(i, j)

    assert isinstance(forms.derive(make, I, J), Spelled)
    assert len(calls) == 1


def test_every_form_has_the_value_at_every_point() -> None:
    i, j = np.meshgrid(np.arange(41), np.arange(41))
    chosen = forms.derive(triangle, I, J)
    assert (evaluate(chosen, {"i": i, "j": j}) == i + (i + j) * (i + j + 1) // 2).all()


def test_arithmetic_goes_on_with_the_normal_form() -> None:
    chosen, normal = forms.derive(triangle, I, J), triangle(I, J)
    assert chosen + 1 is normal + 1
    assert chosen - normal == 0
    assert (3 * chosen) // 3 is normal
    assert (4 * chosen + 3) % 4 == 3
    assert where(chosen < 0, 1, 2) == 2
    assert (chosen ^ normal) == 0
    assert substitute(chosen, {}) is normal
    assert plain(chosen) is normal
    assert plain(7) == 7


def test_several_results_are_weighed_together() -> None:
    """The products that two results share are counted once, so the whole form wins for both."""
    a, b = forms.derive(lambda i, j: (triangle(i, j), triangle(i, j) + 1), I, J)
    assert isinstance(a, Spelled)
    assert isinstance(b, Spelled)
    assert count((a, b)) == 6


def test_a_nested_derivation_chooses_no_form() -> None:
    """Nested derivations: cancellation in the outer one needs the inner one expanded."""

    def outer(i: Int, j: Int) -> Int:
        return forms.derive(lambda a, b: (a + 1) * (b + 1), i, j) - i * j - i

    chosen = forms.derive(outer, I, J)
    assert chosen is J + 1


def test_whole_products_do_not_leak() -> None:
    """What was cached while products were kept whole is not used outside of the derivation."""

    def make(i: Int, divide: bool) -> Int:
        x = (i + J) * (i + N)
        return x // 7 if divide else x

    forms.derive(make, I, True)
    for x in (make(I, True), make(I, False)):
        seen: list[Int] = [x]
        while seen:
            node = seen.pop()
            assert not isinstance(node, Mul | Spelled)
            if isinstance(node, Poly):
                seen += [atom for mono, _ in node.terms for atom, _ in mono]
            elif isinstance(node, Expr):
                seen += [getattr(node, f) for f in node.__match_args__ if f in ("num", "den")]


def test_threads_choose_each_for_itself() -> None:
    def derived(k: int) -> str:
        return repr(forms.derive(triangle, I, J) if k % 2 else triangle(I, J))

    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(derived, range(64)))
    assert set(texts[1::2]) == {repr(forms.derive(triangle, I, J))}
    assert set(texts[::2]) == {repr(triangle(I, J))}


P = Sym("p", 0, 1023)


def test_a_quotient_makes_its_remainder_good() -> None:
    """256*(p // 32) + p % 32 has a shift, a mask and a product; p + 224*(p // 32) no mask."""
    chosen = forms.derive(lambda p: 256 * (p // 32) + p % 32, P)
    assert repr(chosen) == "p + 224*(p//32)"
    assert repr(plain(chosen)) == "256*(p//32) + p%32"
    p = np.arange(1024)
    assert (evaluate(chosen, {"p": p}) == 256 * (p // 32) + p % 32).all()


def test_a_remainder_stays_where_nothing_is_gained() -> None:
    for make in (
        lambda p: p // 32 + 64 * (p % 32),  # 64*p - 2047*(p // 32) takes as many
        lambda p: 256 * (p // 16) + p % 32,
        lambda p: N * (p // 32) + p % 32,
        lambda p: (p % 32) * (p // 32),
    ):
        assert not isinstance(forms.derive(make, P), Spelled)


def test_digits_in_another_order() -> None:
    p = np.arange(1024)

    def make(x: Int) -> Int:
        return 7 * (x // 64) + 30 * ((x // 16) % 4) + 3 * ((x // 4) % 4) + 100 * (x % 4) + 5

    chosen = forms.derive(make, P)
    assert count(chosen) < count(plain(chosen))
    assert (evaluate(chosen, {"p": p}) == make(p)).all()


def test_no_form_leaves_32_bits_for_fewer_operations() -> None:
    """2**26*(i % 32) fits; 2**26*i, which saves the mask, does not."""
    i = Sym("i", 0, 1023)
    assert not isinstance(forms.derive(lambda x: x // 32 * 4 + (x % 32) * (1 << 26), i), Spelled)
    wide = Sym("i", 0, (1 << 40) - 1)  # 64 bits anyway
    assert isinstance(forms.derive(lambda x: 256 * (x // 32) + x % 32, wide), Spelled)
