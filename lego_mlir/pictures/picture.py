"""Pictures: one layout or several side by side, as SVG and in a terminal."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.files import write_whole
from lego_mlir.pictures import palette
from lego_mlir.pictures.accesses import Access, access_of
from lego_mlir.pictures.coloring import coloring
from lego_mlir.pictures.elements import Elements, elements_of
from lego_mlir.pictures.grid import Cell, Grid, Step

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST_ROWS = MOST_COLUMNS = 32
_MOST = 256
_ELEMENT_BYTES, _VECTORS = (1, 2, 4, 8, 16), (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Picture:
    """Layouts side by side. A notebook shows it, `print` prints it, `save` writes an SVG file.

    Attributes:
        grids: one for each layout, from left to right.
    """

    grids: tuple[Grid, ...]

    def beside(self, other: Picture) -> Picture:
        """Return the picture with another one on its right."""
        return Picture((*self.grids, *other.grids))

    def svg(self) -> str:
        """Return the picture as the text of an SVG file, for light and dark pages."""
        from lego_mlir.pictures.svg import svg

        return svg(self.grids)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to an SVG file.

        Raises:
            LegoError: the file cannot be written.
        """
        write_whole(path, self.svg().encode())

    def _repr_svg_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        from lego_mlir.pictures.terminal import plain

        return plain(self.grids)

    def __rich__(self) -> RenderableType:
        from lego_mlir.pictures.terminal import colored

        return colored(self.grids)


def draw(
    *layouts: Layout,
    by: str | None = None,
    element: int = 4,
    access: str | Layout | None = None,
    vector: int = 1,
    rows: int = MOST_ROWS,
    columns: int = MOST_COLUMNS,
) -> Picture:
    """Return the picture of layouts, side by side: a cell for each logical index.

    A layout with more rows or columns than are asked for is sampled, and its caption says so.

    Args:
        layouts: their sizes must have values.
        by: what cells are colored by: `offset`, `tile`, `bank` or `sector` of a layout in memory;
            `thread`, `register` or `warp` of a distributed layout, which begins with
            `OrderBy(Row(warps, 32, registers))`; `order`, which draws the path of the offsets. By
            default `bank` if there is an access, `tile` if there are tiles, else `offset`.
        element: bytes of an element.
        access: elements that a warp touches: a slice such as ":, 0", whose elements the lanes take
            in order, or a distributed layout of the same shape. Its bank conflicts and, by
            `sector`, its sectors are drawn and counted.
        vector: elements that a lane of the access touches at once.
        rows: the most rows that are drawn.
        columns: the most columns that are drawn.

    Raises:
        LegoError: a size is symbolic, or an argument is none of these.
    """
    if not layouts:
        raise LegoError("there is no layout to draw")
    for name, n, allowed in (("element", element, _ELEMENT_BYTES), ("vector", vector, _VECTORS)):
        if n not in allowed:
            numbers = ", ".join(map(str, allowed))
            raise LegoError(f"{name} is {n}", hint=f"it is one of {numbers}")
    for name, n in (("rows", rows), ("columns", columns)):
        if not 1 <= n <= _MOST:
            raise LegoError(
                f"a picture has 1 to {_MOST} {name}, not {n}", hint="larger layouts are sampled"
            )
    return Picture(tuple(_grid(a, by, element, access, vector, rows, columns) for a in layouts))


def _grid(
    layout: Layout,
    by: str | None,
    element: int,
    how: str | Layout | None,
    vector: int,
    rows: int,
    columns: int,
) -> Grid:
    elements = elements_of(layout, rows, columns)
    tiled = layout.view is not None and layout.view.kind == "TileBy"
    by = by or ("bank" if how is not None else "tile" if tiled else "offset")
    shown = coloring(by, elements, element)
    cells = [
        [shown.cell(r, c, int(at)) if at >= 0 else None for c, at in enumerate(row)]
        for r, row in enumerate(elements.offsets)
    ]
    captions = [shown.caption]
    if how is not None:
        access = access_of(layout, how, element, vector)
        cells = _marked(elements, cells, access, by)
        times = "" if by == "sector" else "; ×n: its bank serves n words"
        captions.append(f"outlined: what lane L touches{times}")
        captions.append(access.sector_caption() if by == "sector" else access.bank_caption())
    path: tuple[Step, ...] = ()
    ends: tuple[tuple[int, int] | None, tuple[int, int] | None] = (None, None)
    if by == "order":
        path, ends = _path(elements)
        captions = ["each cell: the offset; the path leads from one to the next, dashed over jumps"]
    if not elements.exists.all():
        captions.append("gray: no element")
    if elements.left_out:
        captions.append(elements.left_out)
    return Grid(str(layout), cells, elements.rows, elements.columns, tuple(captions), path, ends)


def _marked(
    elements: Elements, cells: list[list[Cell | None]], access: Access, by: str
) -> list[list[Cell | None]]:
    """Return the cells with those of an access outlined, and the others faint."""
    lanes = access.lanes(elements.offsets)

    def marked(cell: Cell | None, offset: int) -> Cell | None:
        if cell is None:
            return None
        if offset not in lanes:
            return replace(cell, fill=palette.ABSENT, is_faint=True)
        lane, words = lanes[offset]
        is_conflict = words > 1 and by != "sector"
        times = f" ×{words}" if is_conflict else ""
        return replace(
            cell,
            text=f"L{lane}{times}",
            short=f"{cell.short}{'!' if is_conflict else '*'}",
            is_marked=True,
            is_conflict=is_conflict,
        )

    return [
        [marked(cell, int(at)) for cell, at in zip(row, offsets, strict=True)]
        for row, offsets in zip(cells, elements.offsets, strict=True)
    ]


def _path(
    elements: Elements,
) -> tuple[tuple[Step, ...], tuple[tuple[int, int] | None, tuple[int, int] | None]]:
    """Return the steps between drawn cells of consecutive offsets, and the first and last cell."""
    at = {
        int(offset): (r, c)
        for r, row in enumerate(elements.offsets)
        for c, offset in enumerate(row)
        if offset >= 0
    }
    steps = tuple(Step(cell, at[n + 1]) for n, cell in sorted(at.items()) if n + 1 in at)
    last = int(elements.layout.size) - 1
    return steps, (at.get(0), at.get(last))
