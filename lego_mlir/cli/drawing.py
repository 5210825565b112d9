"""Draws layouts."""

from __future__ import annotations

from typing import Any

from lego_mlir.cli.streams import read, stdout, write


def draw(options: Any) -> int:
    """Draw the layouts that the input and the arguments name, and return the exit status."""
    from lego_mlir.pictures import command

    sizes = dict(options.sizes)
    if options.input == "-" or options.input.endswith(".mlir"):
        from lego_mlir.mlir.context import Source
        from lego_mlir.mlir.named_layouts import named_layouts

        module = named_layouts(Source(*read(options.input)), sizes)  # outlives its layouts
        layouts = module.chosen(options.arrays)
    else:
        layouts = command.layouts_of([options.input, *options.arrays], options.access, sizes)
    draw, columns = command.drawing(layouts, options, sizes)
    if options.output is None:
        with stdout() as out:
            command.print_fitting(draw, columns, out)
    else:
        write(options.output, draw(columns=columns).svg().encode())
    return 0
