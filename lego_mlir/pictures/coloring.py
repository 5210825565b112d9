"""What the cells of a picture show: one function for each word that `draw(by=...)` takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import BANK_BYTES, BANKS, SECTOR_BYTES
from lego_mlir.pictures import palette
from lego_mlir.pictures.elements import Elements
from lego_mlir.pictures.grid import Cell
from lego_mlir.pictures.threads import Threads


@dataclass(frozen=True, slots=True)
class Coloring:
    """A function from row, column and offset to the cell, and a sentence on what it shows."""

    cell: Callable[[int, int, int], Cell]
    caption: str


def coloring(by: str, elements: Elements, element: int) -> Coloring:
    """Return what cells show.

    Args:
        by: a word of `COLORINGS`.
        elements: what is drawn.
        element: bytes of an element.

    Raises:
        LegoError: there is no such word, or the layout has no threads to be colored by.
    """
    if by not in COLORINGS:
        raise LegoError(
            f"there is no coloring by '{by}'", hint=f"colorings: {', '.join(COLORINGS)}"
        )
    return COLORINGS[by](elements, element)


def _by_offset(elements: Elements, _: int) -> Coloring:
    last = max(int(elements.layout.size) - 1, 1)

    def cell(_r: int, _c: int, offset: int) -> Cell:
        return Cell(palette.progress_color(offset / last), str(offset), short=str(offset))

    return Coloring(cell, "each cell: the offset; colors go from the first offset to the last")


def _by_tile(elements: Elements, _: int) -> Coloring:
    rows, columns = elements.tiles

    def cell(r: int, c: int, offset: int) -> Cell:
        fill = palette.category(3 * rows[r] + columns[c])
        return Cell(fill, str(offset), short=str(offset))

    return Coloring(cell, "each cell: the offset; colors: the tile")


def _by_bank(_: Elements, element: int) -> Coloring:
    def cell(_r: int, _c: int, offset: int) -> Cell:
        bank = offset * element // BANK_BYTES % BANKS
        return Cell(palette.bank_color(bank, BANKS), str(offset), f"b{bank}", str(bank))

    return Coloring(cell, f"each cell: the offset, and the bank b of its {element} bytes")


def _by_sector(_: Elements, element: int) -> Coloring:
    def cell(_r: int, _c: int, offset: int) -> Cell:
        sector = offset * element // SECTOR_BYTES
        return Cell(palette.category(sector), str(offset), f"s{sector}", str(sector))

    return Coloring(
        cell, f"each cell: the offset, and the {SECTOR_BYTES}-byte sector s of its {element} bytes"
    )


def _by_owner(number: Callable[[Threads, int], int], what: str) -> Callable[..., Coloring]:
    """Return the coloring by a part of a distributed layout's physical space."""

    def make(elements: Elements, _: int) -> Coloring:
        threads = Threads.of(elements.layout)

        def cell(_r: int, _c: int, offset: int) -> Cell:
            owner, register = threads.text(offset)
            short = f"{owner.replace(' ', '')}{register}"
            return Cell(palette.category(number(threads, offset)), owner, register, short)

        named = ["w: warp"] if threads.warps > 1 else []
        named = (["c: CTA"] if threads.ctas > 1 else []) + named
        legend = ", ".join([*named, "T: lane", "r: register"])
        return Coloring(cell, f"each cell: who holds it ({legend}); colors: the {what}")

    return make


COLORINGS: dict[str, Callable[[Elements, int], Coloring]] = {
    "offset": _by_offset,
    "tile": _by_tile,
    "bank": _by_bank,
    "sector": _by_sector,
    "thread": _by_owner(lambda threads, at: threads.split(at)[2] // 4, "lane / 4"),
    "register": _by_owner(lambda threads, at: at % threads.registers, "register"),
    "warp": _by_owner(lambda threads, at: threads.split(at)[1], "warp"),
    "order": _by_offset,
}
"""What cells can be colored by; `order` also draws the path from each offset to the next."""
