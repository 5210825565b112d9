"""`legoc --draw`: from layouts and options to a picture in a file or a terminal."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TextIO

from lego_mlir.algebra import Layout, parse_layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.pictures.picture import MOST_COLUMNS, MOST_ROWS, Picture, draw
from lego_mlir.pictures.terminal import lines, show

_LEAST_COLUMNS = 4
_NAME = r"[A-Za-z_]\w*"


def layouts_of(texts: Sequence[str], access: str | None, sizes: Mapping[str, int]) -> list[Layout]:
    """Return the layouts of texts of the command line.

    Args:
        texts: of the layouts.
        access: the text of `--access`, which may name sizes, too.
        sizes: values of symbols.

    Raises:
        LegoError: a text is no layout, at its column; or none names one of the sizes.
    """
    layouts = [parse_layout(text, sizes) for text in texts]
    named = {word for text in (*texts, access or "") for word in re.findall(_NAME, text)}
    for name in sizes:
        if name not in named:
            raise LegoError(f"no layout has a size '{name}' to set", hint="leave out its --set")
    return layouts


def drawing(
    layouts: Sequence[Layout], options: Any, sizes: Mapping[str, int]
) -> tuple[Callable[..., Picture], int]:
    """Return what draws layouts with at most so many `columns`, and the most that are wanted.

    Args:
        layouts: from left to right.
        options: of the command line.
        sizes: values of symbols.

    Raises:
        LegoError: the access calls something, but is no layout.
    """
    access: str | Layout | None = options.access
    if options.access is not None and "(" in options.access:
        access = parse_layout(options.access, sizes)
    rows, columns = options.cells or (MOST_ROWS, MOST_COLUMNS)
    given = {name: getattr(options, name) for name in ("element", "vector")}
    chosen = {name: value for name, value in given.items() if value is not None}
    return partial(draw, *layouts, by=options.by, access=access, rows=rows, **chosen), columns


def print_fitting(drawn: Callable[..., Picture], columns: int, out: TextIO) -> None:
    """Print a picture, with as many columns as the terminal has room for.

    Args:
        drawn: makes the picture with at most so many `columns`.
        columns: the most that are wanted.
        out: where it is printed.
    """
    room = shutil.get_terminal_size().columns if out.isatty() else None
    while True:
        picture = drawn(columns=columns)
        widest = max(sum(len(span.text) for span in line) for line in lines(picture.grids))
        if room is None or widest <= room or columns <= _LEAST_COLUMNS:
            break
        columns = max(_LEAST_COLUMNS, min(columns - 1, columns * room // widest))
    show(picture.grids, out)
