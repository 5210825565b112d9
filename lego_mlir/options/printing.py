"""The options of `legoc --print`, which prints a layout in another language."""

from __future__ import annotations

import argparse
from typing import Any

from lego_mlir.options.base import Fail
from lego_mlir.options.compiling import check_compiles_nothing

TEMPLATE_LANGUAGES = ("c", "cuda", "numpy", "python", "triton")
PRINTED = (*TEMPLATE_LANGUAGES, "cute")
"""The languages of templates, and of --print; `printers` is imported only where it is needed."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    printing = parser.add_argument_group("printing a layout")
    printing.add_argument(
        "--print",
        dest="language",
        choices=PRINTED,
        metavar="LANGUAGE",
        help="print the layout that the input is: its functions in c, cuda, triton, python or "
        "numpy, or the layout of cute; --set gives its symbols values",
    )
    printing.add_argument(
        "--name", default=None, metavar="NAME", help="begin the names of its functions with this"
    )


def check(options: Any, fail: Fail) -> None:
    """Check which options stand beside --print."""
    if options.language is not None:
        check_compiles_nothing(options, "--print", fail)
    elif options.name is not None:
        fail("--name needs --print")
