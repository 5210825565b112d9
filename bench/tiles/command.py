"""`python -m bench tiles build|run|report|tables`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

_ROUNDS = 15


def add_parser(commands: Any, only: dict[str, Any]) -> None:
    """Add the command to those of the bench."""
    command = commands.add_parser("tiles", help="programs on tiles: rows, attention, conversions")
    steps = command.add_subparsers(dest="step", required=True)
    step = steps.add_parser("build", help="compile them into a folder; needs no GPU")
    step.add_argument("folder", type=Path)
    step.add_argument("--only", **only)
    step.add_argument("--target", default="sm_90a")
    step = steps.add_parser("run", help="check and time those of a folder")
    step.add_argument("folder", type=Path)
    step.add_argument("--only", **only)
    step.add_argument("-o", "--output", type=Path, help="append lines of JSON to this file")
    step.add_argument("--rounds", type=int, default=_ROUNDS, help="of measurements (%(default)s)")
    step = steps.add_parser("report", help="write the table of a file of results")
    step.add_argument("file", type=Path)
    steps.add_parser("tables", help="tables 3 and 4 of the linear layouts paper; needs no GPU")


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
