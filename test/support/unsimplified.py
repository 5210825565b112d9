"""Index expressions with no rule applied: what the algebra computes, written down as it comes.

Within `recording()` every constructor of `lego_mlir.index` only notes the operation and its
operands. What a layout derives there is the paper's formula, unsimplified, and its value shows
whether the simplified one is right.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from lego_mlir.algebra import Layout
from lego_mlir.index import construct, evaluate
from lego_mlir.index.nodes import Expr, Int, Node, Sym
from lego_mlir.index.structure import symbols


def isqrt(x: Any) -> Any:
    """Exact up to 2**52, where a double is."""
    assert np.all(np.asarray(x) < 1 << 52)
    return np.floor(np.sqrt(x)).astype(np.int64)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "xor": operator.xor,
    "less": lambda a, b: np.less(a, b).astype(np.int64),
    "minimum": np.minimum,
    "maximum": np.maximum,
    "isqrt": isqrt,
    "where": lambda condition, a, b: np.where(np.not_equal(condition, 0), a, b),
}


class Recorded(Node):
    """An operation on ints, symbols and other recorded operations; nothing is known of it."""

    __slots__ = ("operands", "operation")
    __match_args__ = ("operation", "operands")
    rank = 99
    operation: str
    operands: tuple[Int, ...]


def record(operation: str, *operands: Int) -> Int:
    if all(isinstance(x, int) for x in operands):
        return int(OPERATIONS[operation](*operands))
    node = Recorded(operation, operands)
    object.__setattr__(node, "_bounds", (None, None))
    return node


@contextmanager
def recording(layout: Layout) -> Iterator[None]:
    """Nothing is simplified in here; a layout keeps the sizes of its blocks, so they come first."""
    for stage in layout.stages:
        for block in stage:
            assert block.size != 0
    with patch.multiple(construct, **{name: partial(record, name) for name in OPERATIONS}):
        yield


def value(x: Int, values: Mapping[str, Any]) -> Any:
    """The value of a recorded expression where each symbol has the value of its name."""
    done: dict[Expr, Any] = {}

    def visit(node: Int) -> Any:
        if isinstance(node, int):
            return node
        if node not in done:
            match node:
                case Sym(name):
                    done[node] = values[name]
                case Recorded(operation, operands):
                    done[node] = OPERATIONS[operation](*map(visit, operands))
                case _:  # a layout's size, made with the layout
                    assert all(s.lo == 1 for s in symbols(node)), f"{node!r} was simplified"
                    done[node] = evaluate(node, values)
        return done[node]

    return visit(x)
