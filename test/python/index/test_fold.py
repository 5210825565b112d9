"""The fold over index expressions calls one method a node, and each shared node once."""

from __future__ import annotations

import pytest

from lego_mlir.index import Int, Sym
from lego_mlir.index.fold import Algebra, fold
from lego_mlir.index.nodes import Expr, FloorDiv, Mod, Spelled
from lego_mlir.index.structure import children


class Depth(Algebra[int]):
    """How many nodes stand inside one another."""

    def constant(self, x: int) -> int:
        return 0

    def other(self, x: Expr) -> int:
        return 1 + max((self(operand) for operand in children(x)), default=0)


class Calls(Depth):
    """The same, with the nodes that were interpreted."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Expr] = []

    def interpret(self, x: Expr) -> int:
        self.seen.append(x)
        return super().interpret(x)


def divided(i: Int) -> Int:
    return i // 32 % 8


def test_kinds_without_a_method_go_to_other() -> None:
    assert fold(divided(Sym("i", 0)), Depth()) == 3
    assert fold(7, Depth()) == 0


def test_a_shared_node_is_interpreted_once() -> None:
    i = Sym("i", 0)
    calls = Calls()
    fold((i // 32) * (i // 32 % 8) + i % 3, calls)
    assert len(calls.seen) == len(set(calls.seen))
    assert {type(x) for x in calls.seen} >= {Sym, FloorDiv, Mod}


def test_a_spelled_expression_is_folded_by_its_form() -> None:
    i = Sym("i", 0)
    value, form = i // 32, divided(i)
    assert isinstance(value, Expr)
    assert isinstance(form, Expr)
    assert fold(Spelled(value, form), Depth()) == fold(form, Depth())


def test_a_kind_that_nothing_interprets_is_named() -> None:
    class Nothing(Algebra[int]):
        pass

    with pytest.raises(AssertionError, match="Nothing does not interpret Sym"):
        fold(Sym("i"), Nothing())
