"""`legoc --draw`: from layouts and options to a picture in a file or a terminal."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from lego_mlir.algebra import Layout, parse_layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.pictures.picture import Picture
from lego_mlir.pictures.terminal import lines, show

_LEAST_COLUMNS = 4


def layout_of(text: str, sizes: Mapping[str, int]) -> Layout:
    """Return the layout of a text of the command line.

    Raises:
        LegoError: it is no layout, at its column.
    """
    return parse_layout(text, sizes)


def check_used(sizes: Mapping[str, int], texts: Sequence[str]) -> None:
    """Raise LegoError if a size has a value that no layout names."""
    named = {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}
    for name in sizes:
        if name not in named:
            raise LegoError(f"no layout has a size '{name}' to set", hint="leave out its --set")


def access_of_text(text: str | None, sizes: Mapping[str, int]) -> str | Layout | None:
    """Return an access as `draw` takes it: a layout where its text calls something.

    Raises:
        LegoError: it is no layout.
    """
    return parse_layout(text, sizes) if text is not None and "(" in text else text


def print_fitting(draw: Callable[..., Picture], columns: int, out: TextIO) -> None:
    """Print a picture, with as many columns as the terminal has room for.

    Args:
        draw: makes the picture with at most so many `columns`.
        columns: the most that are wanted.
        out: where it is printed.
    """
    room = shutil.get_terminal_size().columns if out.isatty() else None
    while True:
        picture = draw(columns=columns)
        widest = max(sum(len(span.text) for span in line) for line in lines(picture.grids))
        if room is None or widest <= room or columns <= _LEAST_COLUMNS:
            break
        columns = max(_LEAST_COLUMNS, min(columns - 1, columns * room // widest))
    show(picture.grids, out)
