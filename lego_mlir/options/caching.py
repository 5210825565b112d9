"""The options of the cache: what it holds, and whether it is used."""

from __future__ import annotations

import argparse
from typing import Any

from lego_mlir.options.base import Fail

COMMANDS = ("--cache-info", "--cache-clear")
"""Options that are commands of their own: each is the whole command line."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    caching = parser.add_argument_group("cache of compiled code")
    caching.add_argument(
        "--no-cache", action="store_true", help="compile anew, and keep nothing of it"
    )
    caching.add_argument(
        "--cache-info",
        action="store_true",
        help="print the folder of the cache (LEGO_MLIR_CACHE), its entries and its size",
    )
    caching.add_argument(
        "--cache-clear", action="store_true", help="remove all entries of the cache"
    )


def check(options: Any, fail: Fail) -> None:
    """Check that no command stands beside an input."""
    for command, is_given in zip(COMMANDS, (options.cache_info, options.cache_clear), strict=True):
        if is_given:
            fail(f"{command} stands alone: legoc {command}")
