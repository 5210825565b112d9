"""Grids in a terminal: text of equal columns, colored where `rich` is installed."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, TextIO

from lego_mlir.diagnostics import printable
from lego_mlir.pictures import palette
from lego_mlir.pictures.grid import Cell, Grid, Step

if TYPE_CHECKING:
    from rich.text import Text

_BETWEEN = "   "
_ARROWS = {
    (0, 1): "→",
    (0, -1): "←",
    (1, 0): "↓",
    (-1, 0): "↑",
    (1, 1): "↘",
    (1, -1): "↙",
    (-1, 1): "↗",
    (-1, -1): "↖",
}
_LEAST_TEXT = 40
"""The columns of titles and captions of grids side by side, where a grid is narrower."""
_LEAST_TEXT_ALONE = 80


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line: its text, and its fill where it is a cell's."""

    text: str
    fill: str | None = None
    is_marked: bool = False


Line = tuple[Span, ...]


def lines(grids: Sequence[Grid]) -> list[Line]:
    """Return grids side by side, line by line."""
    least = _LEAST_TEXT if len(grids) > 1 else _LEAST_TEXT_ALONE
    panels = [_panel(grid, least) for grid in grids]
    widths = [max(sum(len(span.text) for span in line) for line in panel) for panel in panels]
    found: list[Line] = []
    for row in zip_longest(*panels, fillvalue=()):
        line: list[Span] = []
        for spans, width in zip(row, widths, strict=True):
            space = width - sum(len(span.text) for span in spans)
            line += [*spans, Span(" " * space + _BETWEEN)]
        found.append(tuple(line))
    return found


def plain(grids: Sequence[Grid]) -> str:
    """Return grids as text without colors."""
    return "\n".join("".join(span.text for span in line).rstrip() for line in lines(grids))


def colored(grids: Sequence[Grid]) -> Text:
    """Return grids as a text of `rich`, which prints it in the colors that a terminal has."""
    from rich.style import Style
    from rich.text import Text

    text = Text(no_wrap=True, overflow="ignore", end="")
    for line in lines(grids):
        for span in line:
            if span.fill is None:
                text.append(span.text)
                continue
            style = Style(
                color=palette.ink(span.fill),
                bgcolor=span.fill,
                bold=span.is_marked,
                underline=span.is_marked,
            )
            text.append(span.text, style)
        text.append("\n")
    return text


def show(grids: Sequence[Grid], out: TextIO) -> None:
    """Print grids: in colors if `out` is a terminal and `rich` is installed."""
    if out.isatty():
        try:
            from rich.console import Console
        except ImportError:
            print(plain(grids), file=out)
            sys.stderr.write("hint: pip install 'lego-mlir[draw]' for colors\n")
            return
        Console(file=out).print(colored(grids), soft_wrap=True, end="")
        return
    print(plain(grids), file=out)


def _panel(grid: Grid, least: int) -> list[Line]:
    """Return the lines of one grid, whose texts take `least` columns or those of its cells."""
    arrows = _arrows(grid.path)
    width = max(
        [2, *(len(c.short) + bool(arrows) for row in grid.cells for c in row if c is not None)]
    )
    labels = grid.rows.labels
    margin = max(map(len, labels))
    column_labels = grid.columns.labels
    has_room = max(map(len, column_labels)) <= width
    head: list[Span] = [Span(" " * margin + " ")]
    body: list[Line] = []
    for c, label in enumerate(column_labels):
        head.append(Span(_before(grid.columns.gaps, grid.columns.cuts, c)))
        head.append(Span(label.rjust(width) + " " if has_room else " " * (width + 1)))
    for r, row in enumerate(grid.cells):
        if r in grid.rows.gaps:
            body.append((Span(" " * margin + " ⋮"),))
        elif r in grid.rows.cuts:
            body.append(())
        line: list[Span] = [Span(labels[r].rjust(margin) + " ")]
        for c, cell in enumerate(row):
            line.append(Span(_before(grid.columns.gaps, grid.columns.cuts, c)))
            line.append(_span(cell, width, arrows.get((r, c), " ") if arrows else ""))
        body.append(tuple(line))
    across = max(sum(len(span.text) for span in line) for line in (tuple(head), *body))
    most = max(across, least)
    above = [(Span(t),) for t in textwrap.wrap(printable(grid.title), most)]
    below = [(Span(t),) for text in grid.captions for t in textwrap.wrap(text, most)]
    return [*above, tuple(head), *body, *below]


def _span(cell: Cell | None, width: int, arrow: str) -> Span:
    if cell is None:
        return Span("·".rjust(width) + " ")
    text = (cell.short + arrow).rjust(width) + " "
    return Span(text, None if cell.is_faint else cell.fill, cell.is_marked)


def _before(gaps: frozenset[int], cuts: frozenset[int], k: int) -> str:
    return "… " if k in gaps else " " if k in cuts else ""


def _arrows(path: Sequence[Step]) -> dict[tuple[int, int], str]:
    """Return the sign of each cell whose successor is drawn: an arrow, or a dot for a jump."""
    signs: dict[tuple[int, int], str] = {}
    for step in path:
        move = (step.end[0] - step.start[0], step.end[1] - step.start[1])
        signs[step.start] = _ARROWS.get(move, "·")
    return signs
