"""The options of `legoc --draw`, which draws layouts."""

from __future__ import annotations

import argparse
from typing import Any

from lego_mlir.options import values
from lego_mlir.options.base import Fail
from lego_mlir.options.compiling import check_compiles_nothing


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    drawing = parser.add_argument_group("drawing")
    drawing.add_argument(
        "--draw",
        action="store_true",
        help="draw layouts side by side, on the terminal or with -o as SVG: the texts that are "
        "given, or those of a .mlir file, all of them or those that are named behind it",
    )
    drawing.add_argument(
        "--by",
        metavar="WHAT",
        help="color cells by offset, tile, bank or sector; by thread, register or warp of a "
        "distributed layout, OrderBy(Row(warps, 32, registers))...; or order, with its path",
    )
    drawing.add_argument(
        "--access",
        metavar="SLICE|LAYOUT",
        help='outline what a warp accesses, such as ":, 0", and count its bank conflicts, or '
        "with --by sector its sectors",
    )
    drawing.add_argument(
        "--element", type=values.count, metavar="BYTES", help="bytes of an element (4)"
    )
    drawing.add_argument(
        "--vector",
        type=values.count,
        metavar="N",
        help="elements that a lane accesses at once",
    )
    drawing.add_argument(
        "--cells",
        type=values.cells,
        metavar="ROWSxCOLUMNS",
        help="draw at most so many; a larger layout is sampled (default: 32x32)",
    )


def check(options: Any, fail: Fail) -> None:
    """Check which options stand beside --draw, and that its own do not stand alone."""
    if options.draw:
        check_compiles_nothing(options, "--draw", fail, {"--print": options.language})
        return
    drawing = {
        "--by": options.by,
        "--access": options.access,
        "--element": options.element,
        "--vector": options.vector,
        "--cells": options.cells,
    }
    for flag, value in drawing.items():
        if value:
            fail(f"{flag} needs --draw")
