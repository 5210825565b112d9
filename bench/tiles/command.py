"""`python -m bench tiles build|run|report|tables`."""

from __future__ import annotations

import argparse
from typing import Any

from bench.contenders.command import add_steps

_ROUNDS = 15


def add_parser(commands: Any, only: dict[str, Any]) -> None:
    """Add the command to those of the bench."""
    command = commands.add_parser("tiles", help="programs on tiles: rows, attention, conversions")
    steps = add_steps(command, only, _ROUNDS)
    steps.all.add_parser("tables", help="tables 3 and 4 of the linear layouts paper; needs no GPU")


def run(options: argparse.Namespace) -> int:
    """Run the command; return the number of failures."""
    match options.step:
        case "build":
            from bench.tiles.build import build

            return build(options.folder, options.only, options.target)
        case "run":
            from bench.tiles.run import run as measure

            return measure(options.folder, options.only, options.output, options.rounds)
        case "report":
            from bench.tiles.report import report

            print(report(options.file), end="")
            return 0
    from bench.tiles.tables import main

    return main()
