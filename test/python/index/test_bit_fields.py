"""Bit fields as masks: equal to quotients and remainders, and never longer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.algebra import parse_layout
from lego_mlir.index import Int, Sym, construct, evaluate
from lego_mlir.index.extraction.bit_fields import with_bit_fields
from lego_mlir.index.extraction.cost import count
from lego_mlir.index.nodes import plain
from lego_mlir.printers import to_c, to_triton

X, Y = Sym("x", 0, (1 << 20) - 1), Sym("y")

POWERS = st.sampled_from([1, 2, 4, 8, 16, 64])


@st.composite
def sums(draw: st.DrawFn, depth: int = 1) -> Int:
    """Return a sum of fields of x, of y, which may be negative, and of such sums."""
    total: Int = draw(st.integers(-3, 3))
    for _ in range(draw(st.integers(1, 4))):
        number = draw(st.sampled_from([X, Y, X + 3 * Y]))
        if depth and draw(st.booleans()):
            number = draw(sums(depth=0))
        term = number // draw(POWERS)
        if draw(st.booleans()):
            term = term % draw(POWERS)
        total = total + term * draw(st.sampled_from([1, 2, 4, 8, -4, 3]))
    return total


@given(sums(), st.integers(0, (1 << 20) - 1), st.integers(-(1 << 20), 1 << 20))
def test_masks_have_the_values_of_quotients_and_remainders(x: Int, i: int, j: int) -> None:
    at = {"x": i, "y": j}
    assert evaluate(with_bit_fields(x), at) == evaluate(x, at)


@given(st.integers(-100, 100), st.integers(-(1 << 12), 1 << 12))
def test_bits_by_quotients_and_remainders(mask: int, i: int) -> None:
    assert evaluate(construct.bits(Y, mask), {"y": i}) == i & mask


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (2 * (X // 1024 % 4) + X // 8 % 2, "((x >> 3) & 1) + ((x >> 9) & 6)"),
        (4 * (X // 32 % 2) + X // 8 % 2, "(x >> 3) & 5"),
        (X % 4 + 16 * (X // 16 % 4), "x & 51"),
        (8 * (Y // 8), "y & -8"),
        (64 * (X // 8 % 4), "(x & 24) * 8"),
        (8 * (Y // 8) + Y % 4, "y & -5"),
        (-4 * (Y // 8 % 2), "-((y >> 1) & 4)"),
        (X // 8 % 4, "(x >> 3) & 3"),
        (3 * (X // 8 % 4), "((x >> 3) & 3) * 3"),
    ],
)
def test_fields_that_move_together_take_one_mask(x: Int, text: str) -> None:
    assert to_c(x, bits=32) == text


def test_triton_reads_through_quotients_but_not_through_masks() -> None:
    assert "&" not in to_triton(2 * (X // 1024 % 4) + X // 8 % 2)


@pytest.mark.parametrize(
    ("function", "plainly", "with_masks"), [("apply", 28, 24), ("inv", 28, 24)]
)
def test_bricks_of_bricks(function: str, plainly: int, with_masks: int) -> None:
    """Each field of the inner levels takes a shift and a mask, and no further shift."""
    sizes, axes = [6, 4, 2] * 3, [0, 3, 6, 1, 4, 7, 2, 5, 8]
    layout = parse_layout(f"OrderBy(RegP({sizes}, {axes})).GroupBy([48, 48, 48])")
    if function == "inv":
        found = layout.inv(Sym("t", 0, layout.size - 1))
    else:
        found = (layout.apply(*(Sym(name, 0, 47) for name in "ijk")),)
    assert count(tuple(map(plain, found))) == plainly
    assert count(found) == with_masks
