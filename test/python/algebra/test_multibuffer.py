"""Copies of a layout, one after another, equal the layout element by element."""

from __future__ import annotations

import numpy as np
import pytest

from lego_mlir.algebra import parse_layout
from lego_mlir.algebra.multibuffer import multibuffered
from lego_mlir.diagnostics import LegoError


@pytest.mark.parametrize(
    "text",
    [
        "OrderBy(Row(6, 4))",
        "OrderBy(GenP([8, 16], swizzle(4, 1, 4)))",
        "OrderBy(GenP([16, 8], swizzle(4, 1, 2))).OrderBy(RegP([8, 16], [1, 0]))",
        "OrderBy(RegP([4, 6], [1, 0])).GroupBy([2, 12])",
        "OrderBy(Row(2, 2), Col(3, 4)).OrderBy(RegP([2, 3, 2, 4], [0, 2, 1, 3])).GroupBy([6, 8])",
        "OrderBy(Col(8, 12)).TileBy([2, 3], [4, 4])",
        "GroupBy([4, 5])",
    ],
)
def test_each_copy_is_the_layout_further_on(text: str) -> None:
    layout = parse_layout(text)
    size = layout.size
    assert isinstance(size, int)
    stages = multibuffered(layout, 3)
    assert stages.dims == (3, *layout.dims)
    index = np.indices([n for n in layout.dims if isinstance(n, int)]).reshape(layout.rank, -1)
    alone = layout.apply(*index)
    for stage in range(3):
        assert (stages.apply(np.full(size, stage), *index) == stage * size + alone).all()


def test_a_plain_layout_stays_plain() -> None:
    tile = parse_layout("OrderBy(GenP([128, 64], swizzle(8, 1, 8)))")
    assert multibuffered(tile, 4).text == "OrderBy(Row(4), GenP([128, 64], swizzle(8, 1, 8)))"


def test_partial_tiles_have_no_copies() -> None:
    with pytest.raises(LegoError, match="partial tiles"):
        multibuffered(parse_layout("OrderBy(Row(10)).TileBy([3], [4])"), 2)
