"""Random layouts against what they are by definition (`random_layouts`).

LEGO_TEST_EXAMPLES sets the number of layouts for a longer run.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
import unsimplified
from hypothesis import given, settings
from hypothesis import strategies as st
from own_permutations import FUNCTIONS
from random_layouts import (
    B,
    L,
    bound,
    built,
    every_index,
    layouts,
    sigma,
    symbolic_layouts,
    table_of,
    values_of,
)

from lego_mlir.algebra import Col, Layout, OrderBy, parse_layout
from lego_mlir.index import Sym, bounds, evaluate

LAYOUTS = int(os.environ.get("LEGO_TEST_EXAMPLES", "500"))


def symbolic_index(layout: Layout) -> list[Sym]:
    return [Sym(f"i{k}", 0, n - 1) for k, n in enumerate(layout.dims)]


@settings(max_examples=LAYOUTS)
@given(layouts())
def test_apply_inv_and_offsets_are_the_enumeration(d: L) -> None:
    """NumPy, all points: a wrong permutation, stage order or reshuffle shows here."""
    layout, truth = built(d), table_of(d)
    index = every_index(layout.dims)
    assert (np.sort(truth) == np.arange(len(truth))).all()  # the oracle itself is a bijection
    assert (np.broadcast_to(layout.apply(*index), truth.shape) == truth).all()
    for got, i in zip(layout.inv(truth), index, strict=True):
        assert (np.broadcast_to(got, i.shape) == i).all()
    # offsets() is in tensor order: the levels of each dimension joined.
    offsets = layout.offsets()
    assert offsets.shape == layout.tensor_shape
    levels = len(layout.view.tiles) if layout.view and layout.view.kind == "TileBy" else 1
    tensor = truth.reshape(layout.dims).transpose(sigma(layout.rank // levels, levels))
    assert (offsets.reshape(-1) == tensor.reshape(-1)).all()


@settings(max_examples=LAYOUTS // 4)
@given(layouts())
def test_symbolic_apply_and_inv_are_the_enumeration(d: L) -> None:
    """The expressions at every point, simplified and with no rule applied; and their ranges."""
    layout, truth = built(d), table_of(d)
    index = every_index(layout.dims)
    values = {f"i{k}": i for k, i in enumerate(index)}
    symbols, flat = symbolic_index(layout), Sym("flat", 0, len(truth) - 1)
    with unsimplified.recording(layout):
        plain_offset, plain_index = layout.apply(*symbols), layout.inv(flat)
    assert (unsimplified.value(plain_offset, values) == truth).all()
    assert (evaluate(layout.apply(*symbols), values) == truth).all()
    for plain, x, i, n in zip(plain_index, layout.inv(flat), index, layout.dims, strict=True):
        assert (unsimplified.value(plain, {"flat": truth}) == i).all()
        assert (evaluate(x, {"flat": truth}) == i).all()
        lo, hi = bounds(x)
        assert lo is None or lo <= 0
        assert hi is None or hi >= n - 1


@settings(max_examples=LAYOUTS // 4)
@given(layouts(), st.data())
def test_plain_integers(d: L, data: st.DataObject) -> None:
    """Python ints in, Python ints out, at some points and the two corners."""
    layout, truth = built(d), table_of(d)
    at = data.draw(st.integers(0, len(truth) - 1))
    for k in (0, at, len(truth) - 1):
        index = tuple(int(i) for i in np.unravel_index(k, layout.dims))
        offset = layout.apply(*index)
        assert type(offset) is int
        assert offset == truth[k]
        assert layout.apply(index) == offset
        assert layout.inv(offset) == index


@settings(max_examples=LAYOUTS // 12)
@given(layouts(), st.data())
def test_sympy_symbols(d: L, data: st.DataObject) -> None:
    """SymPy in, SymPy out: numbers put into the result are the offsets."""
    sympy = pytest.importorskip("sympy")
    layout, truth = built(d), table_of(d)
    names = sympy.symbols(f"i:{layout.rank}", integer=True)
    flat = sympy.Symbol("flat", integer=True)
    offset, back = layout.apply(*names), layout.inv(flat)
    for k in {0, data.draw(st.integers(0, len(truth) - 1)), len(truth) - 1}:
        index = tuple(int(i) for i in np.unravel_index(k, layout.dims))
        assert sympy.sympify(offset).subs(dict(zip(names, index, strict=True))) == truth[k]
        assert tuple(sympy.sympify(x).subs(flat, truth[k]) for x in back) == index


@settings(max_examples=LAYOUTS // 4)
@given(symbolic_layouts(), st.data())
def test_symbolic_sizes_are_right_at_each(d: L, data: st.DataObject) -> None:
    """One derivation for all sizes, then numbers: apply, inv, size and the layout itself."""
    layout = built(d)
    sizes = data.draw(values_of(layout))
    numbers = bound(d, sizes)
    assert layout.bind(**sizes) == built(numbers)
    truth = table_of(numbers)
    assert evaluate(layout.size, sizes) == len(truth)
    index = every_index(built(numbers).dims)
    values = {f"i{k}": i for k, i in enumerate(index)} | sizes
    offset = layout.apply(*symbolic_index(layout))
    assert (np.broadcast_to(evaluate(offset, values), truth.shape) == truth).all()
    flat = Sym("flat", 0, layout.size - 1)
    for x, i in zip(layout.inv(flat), index, strict=True):
        assert (evaluate(x, {"flat": truth} | sizes) == i).all()


@settings(max_examples=LAYOUTS // 2)
@given(st.one_of(layouts(), symbolic_layouts()), st.data())
def test_text_parses_to_the_layout_it_prints(d: L, data: st.DataObject) -> None:
    layout = built(d)
    parsed = parse_layout(layout.text, functions=FUNCTIONS)
    assert parsed.text == layout.text
    assert parsed == layout
    assert hash(parsed) == hash(layout)
    # Blanks mean nothing between tokens.
    blank = data.draw(st.sampled_from([" ", "  ", "\t", "\n"]))
    spaced = "".join(blank + c + blank if c in "()[]{},.*@" else c for c in layout.text)
    assert parse_layout(spaced, functions=FUNCTIONS) == layout


def test_the_oracle_on_a_hand_made_table() -> None:
    """Col(2, 3) tiled by columns: offsets written out by hand, for oracle and product."""
    d = L((("OrderBy", (B(((2,), (3,)), "Col"),)),), ("TileBy", (((1,), (3,)), ((2,), (1,)))))
    assert table_of(d).tolist() == [0, 1, 2, 3, 4, 5]
    assert built(d).offsets().tolist() == [[0, 2, 4], [1, 3, 5]]
    assert built(d) == OrderBy(Col(2, 3)).TileBy([1, 3], [2, 1])
