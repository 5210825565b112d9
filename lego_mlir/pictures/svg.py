"""Grids as SVG: one small file without scripts, fonts or links, for light and dark pages.

Cells keep their own colors on every page; what stands outside of cells, and in faint ones, takes
the page's ink.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from xml.sax.saxutils import escape

from lego_mlir.diagnostics import printable
from lego_mlir.pictures import palette
from lego_mlir.pictures.axes import Sampled
from lego_mlir.pictures.grid import Cell, Grid

_LETTER, _LINE, _MARGIN = 6.7, 14, 10
_CUT, _GAP, _BETWEEN = 3, 12, 28
"""Pixels: between tiles, where something is left out, between two layouts."""

_STYLE = f"""\
.lego-picture{{font:11px ui-monospace,Menlo,Consolas,monospace;--ink:#1b1f24;--line:#1b3a57}}
.lego-picture text{{text-anchor:middle;fill:var(--ink)}}
.lego-picture .t{{text-anchor:start;font-weight:600}}
.lego-picture .c{{text-anchor:start;font-size:11px}}
.lego-picture .l{{font-size:9px;opacity:.75}}.lego-picture .r{{text-anchor:end}}
.lego-picture .d text{{fill:{palette.DARK_INK}}}.lego-picture .w text{{fill:{palette.LIGHT_INK}}}
.lego-picture .n{{font-size:9px}}.lego-picture .o{{font-size:9px;text-anchor:start}}
.lego-picture .p{{fill:none;stroke:#1b3a57;stroke-width:1.6}}
.lego-picture .j{{stroke-dasharray:3 3;stroke-width:1;stroke-opacity:.65}}
.lego-picture .m{{fill:none;stroke:var(--ink);stroke-width:1.5}}
.lego-picture .x{{fill:none;stroke:{palette.CONFLICT};stroke-width:2.5}}
@media (prefers-color-scheme:dark){{.lego-picture{{--ink:#e6edf3}}
.lego-picture .x{{stroke:#ff6b6b}}}}"""


def svg(grids: Sequence[Grid]) -> str:
    """Return grids side by side as the text of an SVG file."""
    parts: list[str] = []
    x, height = float(_MARGIN), 0.0
    for grid in grids:
        panel = _Panel(grid, x)
        parts.extend(panel.parts())
        x += panel.width + _BETWEEN
        height = max(height, panel.height)
    width = x - _BETWEEN + _MARGIN
    title = escape(printable("; ".join(grid.title for grid in grids)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lego-picture" role="img" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


class _Panel:
    """One grid, from its title to its captions, with its left side at `left`."""

    def __init__(self, grid: Grid, left: float) -> None:
        self.grid = grid
        self.left = left
        cells = [cell for row in grid.cells for cell in row if cell is not None]
        letters = max([2, *(max(len(c.text), len(c.note) - 1) for c in cells)])
        two_lines = any(c.note for c in cells) or bool(grid.path)
        self.cell_width = round(letters * _LETTER + (13 if grid.path else 6))
        self.cell_height = 28 if two_lines else 19
        self.two_lines = two_lines
        self.label = max(len(label) for label in grid.rows.labels) * 5.6 + 6
        self.xs = _places(grid.columns, self.cell_width, left + self.label)
        across = self.xs[-1] + self.cell_width - left
        most = max(int(across / _LETTER), 44)  # letters in a line of the title
        self.title = textwrap.wrap(printable(grid.title), most)
        self.captions = [line for text in grid.captions for line in textwrap.wrap(text, most)]
        top = _MARGIN + len(self.title) * _LINE + 16
        self.ys = _places(grid.rows, self.cell_height, top)
        self.bottom = self.ys[-1] + self.cell_height
        self.height = self.bottom + len(self.captions) * _LINE + _MARGIN
        lines = [*self.title, *self.captions]
        self.width = max(across, max(len(line) for line in lines) * _LETTER)

    def parts(self) -> Iterator[str]:
        """Return the elements of the panel, those behind first."""
        for k, line in enumerate(self.title, 1):
            y = _MARGIN + k * _LINE - 4
            yield f'<text class="t" x="{self.left:g}" y="{y:g}">{escape(line)}</text>'
        yield from self._labels()
        yield from self._fills()
        yield from self._path()
        yield from self._texts()
        yield from self._outlines()
        for k, line in enumerate(self.captions, 1):
            below = self.bottom + k * _LINE + 2
            yield f'<text class="c" x="{self.left:g}" y="{below:g}">{escape(line)}</text>'

    def _labels(self) -> Iterator[str]:
        middle, baseline = self.cell_width / 2, self.cell_height / 2 + 3
        columns = _fitting(self.grid.columns.labels, self.cell_width)
        yield '<g class="l">' + "".join(
            f'<text x="{x + middle:g}" y="{self.ys[0] - 4:g}">{label}</text>'
            for x, label in zip(self.xs, columns, strict=True)
            if label
        )
        edge = self.xs[0] - 4
        yield (
            "".join(
                f'<text class="r" x="{edge:g}" y="{y + baseline:g}">{label}</text>'
                for y, label in zip(self.ys, self.grid.rows.labels, strict=True)
            )
            + "</g>"
        )
        for k in sorted(self.grid.columns.gaps):
            yield f'<text x="{self.xs[k] - _GAP / 2 - 0.5:g}" y="{self.ys[0] + 10:g}">…</text>'
        for k in sorted(self.grid.rows.gaps):
            yield f'<text x="{self.xs[0] + middle:g}" y="{self.ys[k] - 3:g}">⋮</text>'

    def _cells(self) -> Iterator[tuple[float, float, Cell | None]]:
        for y, row in zip(self.ys, self.grid.cells, strict=True):
            for x, cell in zip(self.xs, row, strict=True):
                yield x, y, cell

    def _box(self, x: float, y: float, inset: float = 0) -> str:
        width, height = self.cell_width - 1 - 2 * inset, self.cell_height - 1 - 2 * inset
        return f"M{x + inset:g} {y + inset:g}h{width:g}v{height:g}h-{width:g}z"

    def _fills(self) -> Iterator[str]:
        """Return one path for all the cells of a color."""
        boxes: dict[tuple[str, bool], list[str]] = defaultdict(list)
        for x, y, cell in self._cells():
            key = (cell.fill, cell.is_faint) if cell else (palette.ABSENT, True)
            boxes[key].append(self._box(x, y))
        for (fill, is_faint), paths in boxes.items():
            opacity = ' fill-opacity=".35"' if is_faint else ""
            yield f'<path fill="{fill}"{opacity} d="{"".join(paths)}"/>'

    def _texts(self) -> Iterator[str]:
        groups: dict[str, list[str]] = defaultdict(list)
        for x, y, cell in self._cells():
            if cell is None:
                continue
            inks = {palette.DARK_INK: "d", palette.LIGHT_INK: "w"}
            group = groups["f" if cell.is_faint else inks[palette.ink(cell.fill)]]
            if self.grid.path:  # beside the path, which goes through the lower right
                group.append(f'<text class="o" x="{x + 3:g}" y="{y + 10:g}">{cell.text}</text>')
                continue
            middle = x + (self.cell_width - 1) / 2
            baseline = y + (12 if self.two_lines else 13)
            group.append(f'<text x="{middle:g}" y="{baseline:g}">{escape(cell.text)}</text>')
            if cell.note:
                note = escape(cell.note)
                group.append(f'<text class="n" x="{middle:g}" y="{y + 23:g}">{note}</text>')
        for name, texts in groups.items():
            yield f'<g class="{name}">{"".join(texts)}</g>'

    def _outlines(self) -> Iterator[str]:
        for name, is_conflict in (("m", False), ("x", True)):
            boxes = [
                self._box(x, y, 0.75)
                for x, y, cell in self._cells()
                if cell and cell.is_marked and cell.is_conflict == is_conflict
            ]
            if boxes:
                yield f'<path class="{name}" d="{"".join(boxes)}"/>'

    def _path(self) -> Iterator[str]:
        """Return the steps between neighbors, the jumps, and the first and the last cell."""

        def center(cell: tuple[int, int]) -> tuple[float, float]:
            return self.xs[cell[1]] + self.cell_width - 7, self.ys[cell[0]] + 19

        for name, is_neighbor in (("p", True), ("p j", False)):
            lines, last = [], None
            for step in self.grid.path:
                if step.is_neighbor != is_neighbor:
                    continue
                (x1, y1), (x2, y2) = center(step.start), center(step.end)
                lines.append(("" if last == step.start else f"M{x1:g} {y1:g}") + f"L{x2:g} {y2:g}")
                last = step.end
            if lines:
                yield f'<path class="{name}" d="{"".join(lines)}"/>'
        first, final = self.grid.ends
        if first is not None:
            x, y = center(first)
            yield f'<circle cx="{x:g}" cy="{y:g}" r="4" fill="#1b3a57"/>'
        if final is not None:
            x, y = center(final)
            yield f'<path fill="#1b3a57" d="M{x - 4:g} {y - 4:g}h8v8h-8z"/>'


def _places(positions: Sampled, size: int, start: float) -> list[float]:
    """Return where each drawn position begins."""
    spaces = [
        _GAP if k in positions.gaps else _CUT if k in positions.cuts else 0
        for k in range(1, len(positions.digits))
    ]
    return list(accumulate((size + space for space in spaces), initial=start))


def _fitting(labels: Sequence[str], width: int) -> list[str]:
    """Return the labels of columns, without some where they are wider than the columns."""
    longest = max(len(label) for label in labels) * 5.6 + 4
    every = 1
    while longest > every * width:
        every *= 2
    return [label if k % every == 0 else "" for k, label in enumerate(labels)]
