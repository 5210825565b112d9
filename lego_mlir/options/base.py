"""The parser that the commands share: its errors have the form of all other errors of legoc."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from lego_mlir.diagnostics import printable

Fail = Callable[[str], NoReturn]
"""Prints the error on a usage, and exits with status 2."""


class Parser(argparse.ArgumentParser):
    """An argument parser of `prog`, whose options are spelled out and whose help is kept as it is.

    `legoc: error: ...` and a hint at the help are printed on wrong usage; the exit status is 2.
    """

    def __init__(self, **keywords: Any) -> None:
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **keywords
        )

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"legoc: error: {printable(message)}\nhint: {self.prog} --help\n")
