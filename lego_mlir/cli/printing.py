"""Prints a layout in another language, and fills templates of source text."""

from __future__ import annotations

from typing import Any

from lego_mlir.cli.streams import read, write


def print_layout(options: Any) -> int:
    """Print the layout that the input is, and return the exit status."""
    from lego_mlir.printers.command import printed_layout

    name = options.name or "layout"
    text = printed_layout(options.input, options.language, name, dict(options.sizes))
    write(options.output, text.encode())
    return 0


def fill(options: Any) -> int:
    """Fill the holes of the template that the input is, and return the exit status."""
    from lego_mlir.printers.templates import language_of, render

    file, text = read(options.input, "a template")
    language = options.language or language_of(file)
    filled = render(text, dict(options.values), language, file)
    write(options.output, filled.encode())
    return 0
