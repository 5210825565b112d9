"""Pictures show what enumeration gives: offsets, tiles, banks, threads, orders."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import random_layouts
from hypothesis import given, settings
from hypothesis import strategies as st

import lego_mlir as lg
from lego_mlir import GenP, GroupBy, Layout, OrderBy, RegP, Row, hilbert, parse_layout
from lego_mlir.analysis.instructions.mma_fragments import operand_a
from lego_mlir.diagnostics import LegoError
from lego_mlir.pictures import Picture, draw
from lego_mlir.pictures.grid import Grid

MMA_A = "OrderBy(Row(32, 8)).OrderBy(RegP([2, 8, 2, 4, 2], [1, 3, 2, 0, 4])).GroupBy([16, 16])"


def texts(picture: Picture) -> list[list[str | None]]:
    (grid,) = picture.grids
    return [[None if cell is None else cell.text for cell in row] for row in grid.cells]


def only(picture: Picture) -> Grid:
    (grid,) = picture.grids
    return grid


@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=2),
    st.lists(st.integers(1, 4), min_size=2, max_size=2),
    st.booleans(),
)
def test_cells_of_a_tiled_layout_are_its_offsets(
    tiles: list[int], tile: list[int], transposed: bool
) -> None:
    shape = [a * b for a, b in zip(tiles, tile, strict=True)]
    layout = OrderBy(RegP(shape, [1, 0] if transposed else [0, 1])).TileBy(tiles, tile)
    expected = np.arange(math.prod(shape)).reshape(shape, order="F" if transposed else "C")
    assert texts(layout.draw()) == expected.astype(str).tolist()


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 9), st.integers(1, 9))
def test_a_sample_is_part_of_the_whole(m: int, n: int, rows: int, columns: int) -> None:
    layout = OrderBy(Row(m, n))
    grid = only(layout.draw(rows=rows, columns=columns))
    assert len(grid.rows.digits) == min(m, rows)
    assert len(grid.columns.digits) == min(n, columns)
    for r, row in zip(grid.rows.numbers, grid.cells, strict=True):
        for c, cell in zip(grid.columns.numbers, row, strict=True):
            assert cell is not None
            assert cell.text == str(r * n + c)
    assert any("sampled" in text for text in grid.captions) == (m > rows or n > columns)


def test_a_huge_layout_is_sampled_and_says_so() -> None:
    grid = only(OrderBy(Row(1 << 30, 1 << 30)).draw())
    assert f"sampled: 32 of {1 << 30} rows and 32 of {1 << 30} columns are drawn" in grid.captions
    assert grid.rows.numbers[-1] == (1 << 30) - 1


@settings(max_examples=40)
@given(random_layouts.layouts(most=4))
def test_cells_of_any_layout_lie_at_the_coordinates_of_their_labels(d: random_layouts.L) -> None:
    """`offsets` computes from the memory to the tensor, pictures from the index to the offset."""
    layout = random_layouts.built(d)
    offsets = layout.offsets()
    grid = only(layout.draw(rows=12, columns=12))
    for row, label in zip(grid.cells, grid.rows.labels, strict=True):
        for cell, column in zip(row, grid.columns.labels, strict=True):
            at = tuple(int(i) for i in f"{label},{column}".split(","))
            if offsets.ndim == 1:
                at = (at[0] * grid.columns.axis.size + at[1],)
            assert cell is not None
            assert cell.text == str(offsets[at])


def test_padding_has_no_elements() -> None:
    layout = parse_layout("OrderBy(Row(5, 3)).TileBy([ceildiv(5, 4), ceildiv(3, 2)], [4, 2])")
    expected = [[str(3 * i + j) if i < 5 and j < 3 else None for j in range(4)] for i in range(8)]
    assert texts(layout.draw()) == expected


def test_skewed_tiles_have_the_offsets_of_their_coordinates() -> None:
    layout = parse_layout("OrderBy(Row(4, 7)).TileBy([1, 3], [4, 4], skew(1, [3, 0], 4))")
    shown = texts(layout.draw())
    for i in range(4):
        for c in range(12):
            j = c - 3 * i % 4
            assert shown[i][c] == (str(7 * i + j) if 0 <= j < 7 else None)


@pytest.mark.parametrize("sizes", [[7], [64], [96], [2, 3, 4], [2, 2, 2, 3]])
def test_layouts_of_any_rank_are_drawn_row_by_row(sizes: list[int]) -> None:
    cells = [cell for row in texts(GroupBy(sizes).draw(rows=99)) for cell in row]
    assert cells == [str(k) for k in range(math.prod(sizes))]


def test_threads_and_registers_are_those_of_the_fragment() -> None:
    shown = only(parse_layout(MMA_A).draw(by="thread")).cells
    fragment = operand_a(16).layout
    for i in range(16):
        for j in range(16):
            lane, register = fragment.inv(16 * i + j)
            cell = shown[i][j]
            assert cell is not None
            assert (cell.text, cell.note) == (f"T{lane}", f"r{register}")


def test_colors_tell_banks_and_tiles_apart() -> None:
    banks: dict[str, set[str]] = {}
    for row in only(OrderBy(GenP([32, 32], lg.swizzle)).draw(by="bank")).cells:
        for cell in filter(None, row):
            banks.setdefault(cell.note, set()).add(cell.fill)
            assert cell.note == f"b{int(cell.text) % 32}"
    assert sorted(map(len, banks.values())) == [1] * 32
    assert len({fill for fills in banks.values() for fill in fills}) == 32
    tiles = only(OrderBy(Row(4, 4)).TileBy([2, 2], [2, 2]).draw(by="tile")).cells
    fills = [[cell.fill for cell in row if cell] for row in tiles]
    assert len({fills[0][0], fills[0][2], fills[2][0], fills[2][2]}) == 4
    assert fills[0][0] == fills[1][1]


@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_the_path_of_the_hilbert_order_visits_neighbors(n: int) -> None:
    grid = only(OrderBy(GenP([n, n], hilbert)).draw(by="order"))
    assert len(grid.path) == n * n - 1
    assert all(step.is_neighbor for step in grid.path)
    assert grid.ends == ((0, 0), (n - 1, 0))


def test_the_path_of_rows_jumps_between_them() -> None:
    grid = only(OrderBy(Row(3, 4)).draw(by="order"))
    assert sum(not step.is_neighbor for step in grid.path) == 2


def test_pictures_stand_side_by_side() -> None:
    a, b = OrderBy(Row(2, 3)), OrderBy(Row(3, 2))
    assert draw(a, b) == a.draw().beside(b.draw())
    left, right = str(a.draw()).splitlines(), str(b.draw()).splitlines()
    assert left[-1].startswith(right[-1])  # captions have 80 columns, and 40 side by side
    del left[-1], right[-1]
    both = str(draw(a, b)).splitlines()
    assert len(left) == 4
    assert all(line.startswith(start) for line, start in zip(both, left, strict=False))
    assert all(line.endswith(end) for line, end in zip(both, right, strict=False))


@pytest.mark.parametrize("by", ["offset", "tile", "bank", "sector", "order"])
def test_an_svg_file_is_xml_with_the_text_of_every_cell(by: str) -> None:
    picture = OrderBy(Row(5, 6)).draw(by=by)
    root = ET.fromstring(picture.svg())
    shown = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert all(str(k) in shown for k in range(30))
    assert "script" not in picture.svg()


def test_a_notebook_shows_what_can_be_drawn() -> None:
    layout = parse_layout("OrderBy(Row(M, 4))")
    assert layout._repr_svg_() is None
    assert OrderBy(Row(1 << 40, 1 << 40))._repr_svg_() is None
    svg = layout.bind(M=2)._repr_svg_()
    assert svg is not None
    assert svg == layout.bind(M=2).draw()._repr_svg_()


def test_a_terminal_gets_colors() -> None:
    console = pytest.importorskip("rich.console")
    with (out := console.Console(force_terminal=True, color_system="truecolor")).capture() as got:
        out.print(OrderBy(Row(2, 2)).draw())
    assert "\x1b[" in got.get()
    assert re.sub(r"\x1b\[[\d;]*m", "", got.get()).split() == str(OrderBy(Row(2, 2)).draw()).split()


@pytest.mark.parametrize(
    ("layout", "options", "says"),
    [
        (parse_layout("OrderBy(Row(M, 4))"), {}, "has sizes without values"),
        (OrderBy(Row(1 << 40, 1 << 40)), {}, "too many for int64"),
        (OrderBy(Row(4, 4)).TileBy([1, 1], [1 << 70, 4]), {}, "too many for int64"),
        (OrderBy(Row(4, 4)), {"by": "taste"}, "no coloring by 'taste'"),
        (OrderBy(Row(4, 4)), {"by": "thread"}, "does not say which thread"),
        (OrderBy(Row(4, 4)), {"element": 3}, "element is 3"),
        (OrderBy(Row(4, 4)), {"rows": 0}, "1 to 256 rows"),
        (OrderBy(Row(4, 4)), {"columns": 257}, "1 to 256 columns"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(
    layout: Layout, options: dict[str, object], says: str
) -> None:
    with pytest.raises(LegoError, match=says):
        layout.draw(**options)  # type: ignore[arg-type]
