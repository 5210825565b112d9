"""Conversions between linear layouts that may hold copies; truth is enumeration."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.analysis.linear import (
    Dim,
    LinearLayout,
    blocked,
    conversion,
    identity,
    linear,
    unswizzled,
)
from lego_mlir.diagnostics import LegoError

UNITS = ("register", "lane", "warp")


def every(layout: LinearLayout) -> list[dict[str, int]]:
    """All inputs of a layout."""
    names = [d.name for d in layout.inputs]
    return [
        dict(zip(names, xs, strict=True)) for xs in product(*(range(d.size) for d in layout.inputs))
    ]


@st.composite
def layouts(draw: st.DrawFn, bits: int, distributed: bool = False) -> LinearLayout:
    """A layout of a tensor of `2**bits` elements, often with copies."""
    zeros = draw(st.integers(0, 2))
    columns = draw(st.permutations([1 << k for k in range(bits)] + [0] * zeros))
    if not distributed:
        size = st.integers(0, (1 << bits) - 1)
        columns = [draw(size) if draw(st.integers(0, 3)) == 0 else c for c in columns]
    cuts = sorted(draw(st.integers(0, len(columns))) for _ in range(2))
    sizes = (cuts[0], cuts[1] - cuts[0], len(columns) - cuts[1])
    names = draw(st.permutations(UNITS))
    inputs = tuple(Dim(name, n) for name, n in zip(names, sizes, strict=True))
    outputs = [Dim("x", bits - bits // 2), Dim("y", bits // 2)]
    return LinearLayout(inputs, tuple(outputs), tuple(columns))


@st.composite
def pairs(draw: st.DrawFn, distributed: bool = False) -> tuple[LinearLayout, LinearLayout]:
    """Two layouts of one tensor."""
    bits = draw(st.integers(0, 4))
    source, destination = (draw(layouts(bits, distributed)) for _ in range(2))
    return source.with_outputs(*draw(st.permutations("xy"))), destination


@given(pairs())
def test_each_position_is_mapped_to_one_with_its_element(
    case: tuple[LinearLayout, LinearLayout],
) -> None:
    """Also: what has the same position on both sides stays there."""
    source, destination = case
    held = {tuple(sorted(destination.apply(**y).items())) for y in every(destination)}
    elements = {tuple(sorted(source.apply(**x).items())) for x in every(source)}
    if not elements <= held:
        with pytest.raises(LegoError, match=r"element .* is nowhere in the layout from"):
            conversion(source, destination)
        return
    found = conversion(source, destination)
    sizes = {d.name: d.size for d in destination.inputs}
    for x in every(source):
        y = found.apply(**x)
        assert destination.apply(**y) == source.apply(**x)
        if all(x[name] < sizes[name] for name in UNITS) and destination.apply(**x) == source.apply(
            **x
        ):
            assert y == x


@given(st.integers(0, 4).flatmap(layouts))
def test_the_conversion_of_a_layout_to_itself_is_the_identity(layout: LinearLayout) -> None:
    found = conversion(layout, layout)
    assert found.columns == tuple(1 << k for k in range(len(layout.columns)))
    assert found.inputs == found.outputs == layout.inputs


@given(pairs(distributed=True))
def test_all_copies_of_the_destination_are_written(
    case: tuple[LinearLayout, LinearLayout],
) -> None:
    """A tensor moved from one layout to the other: each position reads where `conversion` says."""
    source, destination = case
    moved = conversion(destination, source)
    registers = {tuple(x.values()): source.apply(**x) for x in every(source)}
    names = [d.name for d in source.inputs]
    for y in every(destination):
        read = moved.apply(**y)
        assert registers[tuple(read[name] for name in names)] == destination.apply(**y)


def test_copies_are_read_in_the_own_lane() -> None:
    """Rows of 4 elements in 4 lanes; of the 8 warps, pairs hold the same: no warp reads another."""
    pair = linear({"register": [], "lane": [(1,), (2,)], "warp": [(0,), (4,)]}, {"x": 8})
    other = linear({"register": [(1,)], "lane": [(2,), (0,)], "warp": [(0,), (4,)]}, {"x": 8})
    moved = conversion(other, pair)
    assert moved.select(["warp"]).bases["warp"] == ((0, 0, 1), (0, 0, 2))


def test_to_memory_it_is_the_inverse() -> None:
    memory = unswizzled([16, 16])
    tile = blocked([16, 16], registers=[1, 4], lanes=[8, 4], warps=[1, 1])
    assert conversion(tile, memory) == memory.inverse() @ tile


def test_layouts_of_two_tensors() -> None:
    with pytest.raises(LegoError, match=r"of \(x: 4\) is not converted to one of \(x: 8\)"):
        conversion(identity("lane", "x", 4), identity("lane", "x", 8))
