"""Layouts: random ones against their enumeration, and damaged texts of them.

A random layout must apply, invert, print, derive and verify as its definition says, which is
written down in NumPy in `random_layouts`. A damaged text is refused, or it is a layout that is
itself again when printed and, where it has known sizes, a bijection exactly if `verify` says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

import numpy as np
from own_permutations import FUNCTIONS
from random_layouts import L, built, every_index, table_of

from fuzz import drawn
from fuzz.mutations import mutated_text, smaller_texts
from fuzz.runner import WrongError
from lego_mlir.algebra import Layout, OrderBy, Row, parse_layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Sym, evaluate

MOST_ELEMENTS = 600
MOST_ENUMERATED = 5000
WORDS = (
    *("OrderBy", "TileOrderBy", "GroupBy", "TileBy", "Row", "Col", "RegP", "GenP", "skew"),
    *("swizzle", "antidiagonal", "reverse", "morton", "hilbert", "bricks", "block_cyclic"),
    "row_groups",
    *("tma_swizzle", "inverse", "@rotate", "@rotate_inv", "@nowhere", "ceildiv", "min", "max"),
    *("(", ")", "[", "]", "{", "}", ",", ".", "@", "*", "/", "//", "+", "-", ":", "M", "N", "K"),
)
SEEDS = (
    "OrderBy(Row(M, K)).TileBy([M/128, K/64], [128, 64])",
    "OrderBy(Row(N/T, N/T))",
    "OrderBy(GenP([T, T], swizzle(4, 2)))",
    "OrderBy(Row(M, K)).TileBy([ceildiv(M, 16), ceildiv(K, 8)], [16, 8])",
    "OrderBy(Row(30, 21)).TileBy([ceildiv(30, 8), ceildiv(21, 4)], [8, 4])",
    "OrderBy(Row(N, 41)).TileBy([ceildiv(N, 8), 11], [8, 4], skew(1, [3, 0], 4))",
    "OrderBy(RegP([M{16}, N, 4], [2, 0, 1])).GroupBy([M, N*2, 2])",
    "OrderBy(GenP([M, N], bricks(8, 8)), Col(min(M, 4), max(2, K + 1)))",
)


@dataclass(frozen=True)
class Drawn:
    """A layout by its description."""

    description: L
    depth: int
    """Which of the slower checks are made."""


class Layouts:
    """See the module."""

    name = "layouts"

    def prepare(self) -> None:
        """Import what is imported lazily."""
        self.check(Drawn(drawn.layout(Random(0), [2, 3, 4]), 7))

    def make(self, random: Random) -> Drawn | str:
        """Return a description, or a text."""
        description = drawn.layout(random, drawn.pool(random, MOST_ELEMENTS))
        choice = random.random()
        if choice < 0.4:
            return Drawn(description, random.randrange(16))
        text = built(description).text if choice < 0.75 else random.choice(SEEDS)
        return mutated_text(random, text, WORDS)

    def show(self, made: Drawn | str) -> str:
        return repr(made) if isinstance(made, str) else f"{built(made.description).text}\n{made}"

    def smaller(self, made: Drawn | str) -> Iterable[Drawn | str]:
        return smaller_texts(made) if isinstance(made, str) else ()

    def check(self, made: Drawn | str) -> str:
        if isinstance(made, str):
            return check_text(made)
        try:
            check_drawn(made)
        except LegoError as e:
            raise WrongError(f"a right layout is refused: {e}") from e
        return "right"


def check_drawn(made: Drawn) -> None:
    """Compare a layout with its enumeration."""
    layout, truth = built(made.description), table_of(made.description)
    _compare(layout, truth)
    _expect(parse_layout(layout.text, functions=FUNCTIONS) == layout, "its text is another layout")
    if made.depth in (0, 1, 2):
        _compare_derived(layout, truth)
    if made.depth in (3, 4):
        _expect(layout.verify().holds, "verify: no bijection")
    if made.depth == 5:
        _expect(layout.verify("enumeration").holds, "verify by enumeration: no bijection")
    if made.depth in (6, 7):
        _compare(layout.simplified(), truth, "simplified: ")
        inverse = layout.inverse()
        _compare(inverse, np.argsort(truth), "inverse: ")
        _compare(inverse.compose(layout), np.arange(len(truth)), "inverse composed: ")
    if made.depth == 8:
        _expect(layout.equals(layout.simplified()), "it differs from itself, simplified")
        identity = bool((truth == np.arange(len(truth))).all())
        rows = OrderBy(Row(*layout.dims))
        _expect(bool(layout.equals(rows)) == identity, "equals(row-major) is wrong")


def _compare(layout: Layout, truth: Any, what: str = "") -> None:
    index = every_index(layout.dims)
    offsets = np.broadcast_to(layout.apply(*index), truth.shape)
    _expect((offsets == truth).all(), f"{what}apply differs from the enumeration")
    for back, i in zip(layout.inv(truth), index, strict=True):
        _expect((np.broadcast_to(back, i.shape) == i).all(), f"{what}inv does not undo apply")


def _compare_derived(layout: Layout, truth: Any) -> None:
    index = every_index(layout.dims)
    symbols = [Sym(f"i{k}", 0, n - 1) for k, n in enumerate(layout.dims)]
    values = {f"i{k}": i for k, i in enumerate(index)}
    offsets = evaluate(layout.apply(*symbols), values)
    _expect((np.broadcast_to(offsets, truth.shape) == truth).all(), "derived apply differs")
    for x, i in zip(layout.inv(Sym("f", 0, len(truth) - 1)), index, strict=True):
        back = np.broadcast_to(evaluate(x, {"f": truth}), i.shape)
        _expect((back == i).all(), "derived inv differs")


def check_text(text: str) -> str:
    """Parse a text and, if it is a layout, look at it as far as its size allows."""
    layout = parse_layout(text, functions=FUNCTIONS)
    _expect(parse_layout(layout.text, functions=FUNCTIONS) == layout, "its text is another layout")
    if layout.symbols:
        _look_at_symbolic(layout)
        layout = layout.bind(**{s.name: 4 + 12 * bool(s.divisors) for s in layout.symbols})
    if prod(layout.dims) > MOST_ENUMERATED:
        if layout.verify("construction"):
            _look_at_corners(layout)
        return "large"
    _look_at_all(layout)
    return "a layout"


def _look_at_symbolic(layout: Layout) -> None:
    """Derive its expressions; the only error that it may raise is a LegoError."""
    symbols = [Sym(f"i{k}", 0, n - 1) for k, n in enumerate(layout.dims)]
    str(layout.apply(*symbols))
    str(layout.inv(Sym("f", 0, layout.size - 1)))


def _look_at_corners(layout: Layout) -> None:
    for flat in {0, 1, layout.size // 2, layout.size - 1} & set(range(4)) | {layout.size - 1}:
        index = layout.inv(flat)
        _expect(layout.apply(*index) == flat, f"apply{index} is {layout.apply(*index)}, not {flat}")


def _look_at_all(layout: Layout) -> None:
    """Whether it is a bijection from its elements onto 0 .. size-1, and verify knows."""
    index = every_index(layout.dims)
    shape = index[0].shape
    known = np.broadcast_to(np.asarray(layout.mask(*index), bool), shape)
    offsets = np.broadcast_to(layout.apply(*index), shape)[known]
    onto = np.array_equal(np.sort(offsets), np.arange(layout.size))
    verdict = layout.verify()
    if onto and verdict.holds:
        for back, i in zip(layout.inv(offsets), index, strict=True):
            _expect((np.broadcast_to(back, offsets.shape) == i[known]).all(), "inv is wrong")
    _expect(verdict.holds is not True or onto, "verify takes for a bijection what is none")
    _expect(verdict.holds is not False or "undo" in verdict.detail or not onto, verdict.detail)


def _expect(holds: Any, otherwise: str) -> None:
    if not holds:
        raise WrongError(otherwise)


FUZZER = Layouts()
