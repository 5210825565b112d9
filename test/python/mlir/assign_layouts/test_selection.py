"""Minimum cuts are minimum, and the choice of layouts is the cheapest where all can be tried."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.mlir.tile_passes.assign_layouts.min_cut import SINK, SOURCE, Cuts

EDGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9)), max_size=20)


@given(EDGES, st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=6, max_size=6))
def test_cuts_are_minimum_and_take_the_fewest(
    edges: list[tuple[int, int, int]], terminals: list[tuple[int, int]]
) -> None:
    cuts = Cuts()
    every = [(a, b, c) for a, b, c in edges if a != b]
    for node, (taken, kept) in enumerate(terminals):
        every += [(SOURCE, node, taken), (node, SINK, kept)]  # type: ignore[list-item]
    for edge in every:
        cuts.add(*edge)
    taking = cuts.sink_side()

    def cost(sink_side: set[object]) -> int:
        return sum(c for a, b, c in every if a not in sink_side and b in sink_side)

    sides = [
        {SINK, *(n for n, is_taken in enumerate(choice) if is_taken)}
        for choice in product((False, True), repeat=6)
    ]
    least = min(map(cost, sides))
    assert cost(taking) == least
    assert all(taking <= side for side in sides if cost(side) == least)
