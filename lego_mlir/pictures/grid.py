"""What is drawn, before it is drawn: cells in rows and columns, with texts and colors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lego_mlir.pictures.axes import Sampled


@dataclass(frozen=True, slots=True)
class Cell:
    """One element.

    Attributes:
        fill: its color, `#rrggbb`.
        text: its first line.
        note: its second line, empty if there is none.
        short: what a terminal shows of both.
        is_marked: whether it is outlined, as an element that an access touches.
        is_conflict: whether its outline is that of a bank conflict.
        is_faint: whether it is only the background of others.
    """

    fill: str
    text: str
    note: str = ""
    short: str = ""
    is_marked: bool = False
    is_conflict: bool = False
    is_faint: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A piece of a path from one cell to another, both as (row, column) of the drawn cells."""

    start: tuple[int, int]
    end: tuple[int, int]

    @property
    def is_neighbor(self) -> bool:
        """Whether both cells touch, also at a corner."""
        return max(abs(a - b) for a, b in zip(self.start, self.end, strict=True)) == 1


@dataclass(frozen=True, slots=True)
class Grid:
    """The picture of one layout.

    Attributes:
        title: the layout's text.
        cells: row by row; `None` where there is no element.
        rows: the positions that the rows stand for.
        columns: the positions that the columns stand for.
        captions: sentences below: what colors mean, what accesses cost, what is left out.
        path: the steps of an order of the cells.
        ends: the cells where the order begins and ends, if they are drawn.
    """

    title: str
    cells: Sequence[Sequence[Cell | None]]
    rows: Sampled
    columns: Sampled
    captions: tuple[str, ...] = ()
    path: tuple[Step, ...] = ()
    ends: tuple[tuple[int, int] | None, tuple[int, int] | None] = field(default=(None, None))
