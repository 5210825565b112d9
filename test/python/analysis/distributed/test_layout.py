"""Distributed layouts against enumeration, their text, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_distributed import any_layouts, pairs

from lego_mlir.algebra import parse_layout
from lego_mlir.analysis.distributed import (
    REPLICA,
    DistributedLayout,
    Factor,
    from_linear,
    replicas,
    to_linear,
)
from lego_mlir.diagnostics import LegoError

LANES = [Factor(0, 8, 1), Factor(1, 4, 2)]


def grid(layout: DistributedLayout) -> list[Any]:
    """All positions, as four arrays of the shape of `sizes`."""
    return list(np.indices(layout.sizes))


def enumerated(layout: DistributedLayout) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Every position's coordinates, by odometers: no code in common with `apply`."""
    table = {}
    flat = [f for place in layout.places for f in place]
    counts = product(*(range(f.size) for f in flat))
    for position, digits in zip(product(*map(range, layout.sizes)), counts, strict=True):
        at = [0] * (layout.rank + 1)
        for f, digit in zip(flat, digits, strict=True):
            at[f.dim] += digit * f.stride
        table[position] = tuple(at)
    return table


@given(any_layouts())
def test_apply_is_the_bijection_of_the_factors(layout: DistributedLayout) -> None:
    table = enumerated(layout)
    assert len(set(table.values())) == len(table) == prod(layout.shape) * layout.replicas
    for position in list(table)[:: max(1, len(table) // 50)]:
        coordinates, replica = layout.apply(*position)
        assert (*coordinates, replica) == table[position]
        assert layout.inverse(coordinates, replica) == position
    coordinates, replica = layout.apply(*grid(layout))
    assert [*zip(*(x.reshape(-1).tolist() for x in (*coordinates, replica)), strict=True)] == list(
        table.values()
    )
    for x, y in zip(layout.inverse(coordinates, replica), grid(layout), strict=True):
        assert np.array_equal(x, y)
    flat = np.ravel_multi_index(coordinates, layout.shape)
    assert np.array_equal(layout.elements(), flat)


@given(any_layouts())
def test_the_text_parses_to_the_layout_and_is_its_function(layout: DistributedLayout) -> None:
    assert DistributedLayout.parse(layout.text, layout.shape) == layout
    algebra = parse_layout(layout.text)
    coordinates, replica = layout.apply(*grid(layout))
    index = (*coordinates, replica) if layout.replicas > 1 else coordinates
    assert np.array_equal(algebra.apply(*index).reshape(-1), np.arange(prod(layout.sizes)))


@given(pairs())
def test_equal_layouts_and_no_others_have_equal_text(
    pair: tuple[DistributedLayout, DistributedLayout],
) -> None:
    a, b = pair
    same = a.sizes == b.sizes and np.array_equal(a.elements(), b.elements())
    assert (a == b) == (a.text == b.text) == same


@given(any_layouts(), st.data())
def test_factors_may_be_cut_and_replicas_numbered_in_any_way(
    layout: DistributedLayout, data: st.DataObject
) -> None:
    places = []
    for place in layout.places:
        new = [Factor(0, 1, 1)]
        for f in place:
            low = data.draw(st.sampled_from([n for n in range(1, f.size + 1) if f.size % n == 0]))
            parts = [Factor(f.dim, f.size // low, f.stride * low), Factor(f.dim, low, f.stride)]
            new += [replace(p, stride=7) if p.dim == REPLICA else p for p in parts]
        places.append(tuple(new))
    assert DistributedLayout(layout.shape, (places[0], places[1], places[2], places[3])) == layout


@given(any_layouts())
def test_any_way_of_writing_is_read(layout: DistributedLayout) -> None:
    """Written by two permutations, with cuts of its own, and replicas the other way around."""
    physical = [f for p in layout.places for f in p]
    logical = [f for d in (*range(layout.rank), REPLICA) for _, f in layout.factors_of(d)]
    copies = [f for f in logical if f.dim == REPLICA]
    logical = [f for f in logical if f.dim != REPLICA] + copies[::-1]
    back = list(range(len(logical)))[::-1]
    order = [back.index(logical.index(f)) for f in physical]
    sizes = ", ".join(str(f.size) for f in logical[::-1])
    text = (
        f"OrderBy(Row({', '.join(map(str, layout.sizes))}))"
        f".OrderBy(RegP([{sizes}], {order})).OrderBy(RegP({[f.size for f in logical]}, {back}))"
        f".GroupBy({[*layout.shape, layout.replicas]})"
    )
    if logical:
        assert DistributedLayout.parse(text, layout.shape) == layout


@given(any_layouts().filter(lambda x: x.is_power_of_two))
def test_powers_of_two_agree_with_linear_layouts(layout: DistributedLayout) -> None:
    matrix = to_linear(layout)
    assert from_linear(matrix) == layout
    cta, warp, lane, register = grid(layout)
    image = matrix.apply(register=register, lane=lane, warp=warp, cta=cta)
    for k, x in enumerate(layout.apply(cta, warp, lane, register).coordinates):
        assert np.array_equal(np.broadcast_to(image[f"dim{k}"], layout.sizes), x)


@given(any_layouts())
def test_contiguous_elements_are_all_in_each_thread(layout: DistributedLayout) -> None:
    def of_threads(coordinates: Sequence[Any]) -> Any:
        """Return how many different elements the registers of each thread have."""
        ids = np.ravel_multi_index(tuple(coordinates), layout.shape).reshape(-1, layout.registers)
        return 1 + np.count_nonzero(np.diff(np.sort(ids), axis=1), axis=1)

    coordinates, _ = layout.apply(*grid(layout))
    elements = of_threads(coordinates)
    for dim, x in enumerate(coordinates):
        best = 1
        for n in (n for n in range(1, layout.shape[dim] + 1) if layout.shape[dim] % n == 0):
            groups = of_threads([*coordinates[:dim], x // n, *coordinates[dim + 1 :]])
            best = max(best, n) if (groups * n == elements).all() else best
        # The factors may be of a coarser radix than the widest vector, never wider.
        assert best % layout.contiguous(dim) == 0


@pytest.mark.parametrize(
    ("text", "shape", "table"),
    [
        (
            "OrderBy(Row(4, 32, 64)).OrderBy(RegP([16, 4, 2, 16, 4], [1, 2, 3, 0, 4]))"
            ".GroupBy([128, 64])",
            (128, 64),
            "warp      4 along dim 0 by 2\nlane      2 along dim 0, 16 along dim 1 by 4\n"
            "register  16 along dim 0 by 8, 4 along dim 1",
        ),
        (
            "OrderBy(Row(4, 32, 2)).OrderBy(RegP([4, 2, 8, 4], [0, 2, 3, 1])).GroupBy([64, 1, 4])",
            (64, 1),
            "warp      4 along dim 0 by 16\nlane      8 along dim 0, 4 copies\n"
            "register  2 along dim 0 by 8",
        ),
        ("OrderBy(Row(4, 32, 1)).GroupBy([128])", (), "warp      4 copies\nlane      32 copies"),
        (
            "OrderBy(Row(2, 1, 32, 3)).GroupBy([192])",
            (192,),
            "CTA       2 along dim 0 by 96\nlane      32 along dim 0 by 3\nregister  3 along dim 0",
        ),
    ],
)
def test_texts(text: str, shape: tuple[int, ...], table: str) -> None:
    layout = DistributedLayout.parse(text, shape)
    assert layout.text == text
    assert layout.table() == table


@pytest.mark.parametrize(
    ("text", "shape", "message"),
    [
        ("OrderBy(Row(4, 16, 2)).GroupBy([128])", (128,), "does not begin with the physical space"),
        ("GroupBy([128])", (128,), "does not begin with the physical space"),
        ("OrderBy(Col(4, 32, 2)).GroupBy([256])", (256,), "does not begin with the physical space"),
        ("OrderBy(Row(4, 32, N)).GroupBy([128*N])", (128,), "has symbolic sizes (N)"),
        ("OrderBy(Row(4, 32, 1)).GroupBy([128])", (64,), "is not the tile [64]"),
        ("OrderBy(Row(4, 32, 1)).GroupBy([2, 2, 32])", (2,), "is not the tile [2]"),
        ("OrderBy(Row(40, 32, 1)).GroupBy([1280])", (1280,), "has 40 warps; 32 are the most"),
        ("OrderBy(Row(17, 1, 32, 1)).GroupBy([544])", (544,), "has 17 CTAs; 16 are the most"),
        (
            "OrderBy(Row(1, 32, 8)).OrderBy(GenP([8, 32], swizzle)).GroupBy([256])",
            (256,),
            "does more than permute size factors",
        ),
    ],
)
def test_texts_of_no_distributed_layout(text: str, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(LegoError) as error:
        DistributedLayout.parse(text, shape)
    assert message in str(error.value)


def test_sizes_that_do_not_meet_are_refused() -> None:
    text = "OrderBy(Row(3, 32, 2)).OrderBy(RegP([2, 3, 32], [0, 1, 2])).GroupBy([8, 24])"
    with pytest.raises(LegoError, match="where its sizes meet, none divides the other"):
        DistributedLayout.parse(text, (8, 24))


@pytest.mark.parametrize(
    ("registers", "message"),
    [
        ([Factor(0, 2, 8)], "no register holds element (0, 1)"),
        (
            [Factor(0, 2, 4), Factor(1, 2, 1)],
            "warp 0 lane 0 register 2 and warp 0 lane 16 register 0 both hold element (4, 0)",
        ),
        (
            [Factor(0, 3, 8), Factor(1, 2, 1)],
            "register 4 would hold element (16, 0), outside of the tile [16, 8]",
        ),
        ([Factor(2, 2, 8)], "counts along dimension 2, but the tile has the shape [16, 8]"),
        ([Factor(0, 2, 0)], "has size 2 and stride 0; both are at least 1"),
    ],
)
def test_factors_that_are_no_bijection(registers: list[Factor], message: str) -> None:
    with pytest.raises(LegoError) as error:
        DistributedLayout.of((16, 8), lanes=LANES, registers=registers)
    assert message in str(error.value)


@given(st.data())
def test_random_factors_are_accepted_only_if_they_are_a_bijection(data: st.DataObject) -> None:
    numbers = st.integers(1, 4)
    factors = data.draw(st.lists(st.builds(Factor, st.just(0), numbers, numbers), max_size=3))
    n = data.draw(st.integers(1, 12))
    held = sorted(
        sum(d * f.stride for d, f in zip(digits, factors, strict=True))
        for digits in product(*(range(f.size) for f in factors))
    )
    places = ((), (), (replicas(32),), tuple(factors))
    if held == list(range(n)):
        assert DistributedLayout((n,), places).registers == n
    else:
        with pytest.raises(LegoError, match=r"both hold|no register holds|would hold"):
            DistributedLayout((n,), places)


def test_other_errors() -> None:
    with pytest.raises(LegoError, match="a warp has 32 lanes, the layout 8"):
        DistributedLayout.of((8,), lanes=[Factor(0, 8, 1)])
    with pytest.raises(LegoError, match="sizes of at least 1, not 0"):
        DistributedLayout.of((0,), lanes=[replicas(32)])
    layout = DistributedLayout.of((32,), lanes=[Factor(0, 32, 1)])
    for wrong in ((0, 0, 32, 0), (0, 0, np.arange(33), 0), (0, -1, 0, 0)):
        with pytest.raises(LegoError, match=r"not in \[0, "):
            layout.apply(*wrong)
    with pytest.raises(LegoError, match="has 1 values"):
        layout.inverse((1, 2))
    with pytest.raises(LegoError, match=r"coordinate 0 is 32, not in \[0, 32\)"):
        layout.inverse((32,))
    huge = DistributedLayout.of(
        (1 << 40,), lanes=[Factor(0, 32, 1)], registers=[Factor(0, 1 << 35, 32)]
    )
    assert huge.apply(0, 0, 1, (1 << 35) - 1).coordinates == ((1 << 40) - 31,)
    with pytest.raises(LegoError, match="is not enumerated"):
        huge.elements()
    assert DistributedLayout.parse(huge.text, huge.shape) == huge
