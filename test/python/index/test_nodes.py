"""The nodes themselves: one object an expression, immutable, with a stable order."""

from __future__ import annotations

import copy
import gc
import pickle
import random

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Sym, bounds, evaluate, isqrt, minimum, substitute, symbols, where
from lego_mlir.index.nodes import Expr, Poly
from lego_mlir.index.structure import order

X, Y = Sym("x"), Sym("y", 0, 9)
N = Sym("N", 1, None, frozenset({4}))


def test_equal_expressions_are_one_object() -> None:
    assert X + Y is Y + X
    assert (X + 1) * (X - 1) is X * X - 1
    assert 2 * (X // 3) is X // 3 + X // 3
    assert minimum(X, Y) is minimum(Y, X)
    assert X ^ Y is Y ^ X
    assert Sym("x") is X
    assert X - X == 0


def test_symbols_differ_by_all_they_know() -> None:
    assert Sym("x", 0) is not X
    assert Sym("x", None, 5) is not X
    assert Sym("N", 1) is not N


def test_nodes_are_immutable() -> None:
    for node in (X, X + 1, X // 2):
        with pytest.raises(AttributeError, match="immutable"):
            node.name = "z"
    with pytest.raises(AttributeError, match="immutable"):
        X.color = 1


def test_copies_are_the_same_object() -> None:
    for x in (X, 3 * X * Y + 1, (X + 1) // N % 5, where(X < Y, X ^ 1, isqrt(Y + 40))):
        assert copy.copy(x) is x
        assert copy.deepcopy(x) is x
        assert pickle.loads(pickle.dumps(x)) is x  # noqa: S301


def test_dead_expressions_are_forgotten() -> None:
    """Interning holds weakly: a compiler that runs for long does not grow by its symbols."""
    from lego_mlir.index.nodes import _interned

    name = "a_name_that_no_other_test_has"
    node = Sym(name) + 1
    assert any(key[1] == name for key in list(_interned))
    del node
    gc.collect()
    assert not any(key[1] == name for key in list(_interned))


def test_the_truth_of_an_expression_is_refused() -> None:
    with pytest.raises(LegoError, match="where"):
        bool(X < Y)
    with pytest.raises(LegoError, match="symbolic"):
        range(X)


def test_the_order_is_total_and_of_structure_alone() -> None:
    """Sorting by it gives one result however the operands come, so generated code is the same."""
    nodes = [X, Y, N, X + Y, X * Y, X // 2, X % 3, X ^ Y, X + 1, Sym("x", 0), Sym("x", None, N)]
    expected = [repr(n) for n in sorted(nodes, key=order)]
    for seed in range(5):
        shuffled = nodes[:]
        random.Random(seed).shuffle(shuffled)
        assert [repr(n) for n in sorted(shuffled, key=order)] == expected
        assert repr(sum(shuffled, 0)) == repr(sum(nodes, 0))


def test_polynomials_have_no_zero_and_no_empty_terms() -> None:
    for x in (X - Y + Y * 1, 2 * X - X, (X + Y) * (X - Y) + Y * Y - X * X + Y, X * N // N + Y):
        for part in [x] if isinstance(x, Poly) else []:
            assert all(mono and c for mono, c in part.terms)


def test_symbols_of_an_expression() -> None:
    assert symbols((X + Y) // N + where(X < 3, Y, 2)) == {X, Y, N}
    assert symbols(5) == frozenset()


def test_numpy_scalars_mix_with_symbols() -> None:
    three = np.int64(3)
    assert X + three is X + 3
    assert three * X is 3 * X
    assert X // three is X // 3


def test_other_operands_are_a_type_error() -> None:
    for operation in (lambda: X + "1", lambda: X < "1", lambda: X >= None, lambda: X // 1.5):
        with pytest.raises(TypeError):
            operation()


def test_evaluation_names_the_missing_symbol() -> None:
    with pytest.raises(LegoError, match="'y' of 'x \\+ y' has no value"):
        evaluate(X + Y, {"x": 1})


def test_substitution_simplifies_again() -> None:
    k = Sym("k", 0, 7)
    assert substitute(X % 8, {X: 8 * Y + k}) is k
    assert substitute(X // N, {X: 12, N: 4}) == 3
    with pytest.raises(LegoError, match="by zero"):
        substitute(X // Y, {Y: 0})


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (X, (None, None)),
        (Y * -2 + 3, (-15, 3)),
        (Y // 4, (0, 2)),
        ((Y - 5) // 3, (-2, 1)),
        (Y % 4, (0, 3)),
        ((Y + 20) % 64, (20, 29)),
        (X % N, (0, None)),
        (Sym("P", 1, None, frozenset({128})) // 128, (1, None)),
        (Y ^ 5, (0, 15)),
        (X ^ Y, (None, None)),
        (minimum(X, Y), (None, 9)),
        (X < Y, (0, 1)),
        (where(X < 0, Y, 20), (0, 20)),
        (Y * Sym("z", -3, 2), (-27, 18)),
    ],
    ids=str,
)
def test_nodes_have_these_bounds(x: Expr, expected: tuple[int | None, int | None]) -> None:
    assert bounds(x) == expected
