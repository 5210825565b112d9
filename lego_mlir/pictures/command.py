"""`legoc --draw`: from layouts and options to a picture in a file or a terminal."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import TextIO

from lego_mlir.algebra import Layout, parse_layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.pictures.picture import MOST_COLUMNS, MOST_ROWS, Picture, draw
from lego_mlir.pictures.terminal import lines, show


def layout_of(text: str, sizes: Mapping[str, int]) -> Layout:
    """Return the layout of a text of the command line.

    Raises:
        LegoError: it is no layout, at its column.
    """
    return parse_layout(text, sizes)


def check_used(sizes: Mapping[str, int], texts: Sequence[str]) -> None:
    """Raise LegoError if a size has a value that no layout names."""
    names = {s.name for text in texts for s in parse_layout(text).symbols}
    for name in sizes:
        if name not in names:
            known = ", ".join(sorted(names)) or "none"
            raise LegoError(f"no layout has a size '{name}' to set", hint=f"their sizes: {known}")


def picture_of(
    layouts: Sequence[Layout], by: str | None, element: int, access: str | None, vector: int
) -> Picture:
    """Return the picture that the options of the command ask for.

    Raises:
        LegoError: as `draw`; an access that is no slice and no layout.
    """
    how = _access(access)
    return draw(*layouts, by=by, element=element, access=how, vector=vector)


def print_picture(
    layouts: Sequence[Layout],
    by: str | None,
    element: int,
    access: str | None,
    vector: int,
    out: TextIO,
) -> None:
    """Print a picture, with as many columns as the terminal has room for."""
    columns, how = MOST_COLUMNS, _access(access)
    room = shutil.get_terminal_size().columns if out.isatty() else None
    while True:
        picture = draw(
            *layouts,
            by=by,
            element=element,
            access=how,
            vector=vector,
            rows=MOST_ROWS,
            columns=columns,
        )
        widest = max(sum(len(span.text) for span in line) for line in lines(picture.grids))
        if room is None or widest <= room or columns <= 4:
            break
        columns = max(4, min(columns - 1, columns * room // widest))
    show(picture.grids, out)


def _access(text: str | None) -> str | Layout | None:
    """Return an access as `draw` takes it: a layout where its text calls something."""
    return parse_layout(text) if text is not None and "(" in text else text
