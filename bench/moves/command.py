"""`python -m bench moves build|run|report`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

_ROUNDS, _SEED = 5, 19


def add_parser(commands: Any, only: dict[str, Any]) -> None:
    """Add the command to those of the bench."""
    command = commands.add_parser("moves", help="kernels that only move data, beside a copy")
    steps = command.add_subparsers(dest="step", required=True)
    step = steps.add_parser("build", help="compile them into a folder; needs no GPU")
    step.add_argument("folder", type=Path)
    step.add_argument("--only", **only)
    step.add_argument("--target", default="sm_90a")
    step.add_argument(
        "--seed", type=int, default=_SEED, help="of the random permutations (%(default)s)"
    )
    step = steps.add_parser("run", help="check and time those of a folder")
    step.add_argument("folder", type=Path)
    step.add_argument("--only", **only)
    step.add_argument("-o", "--output", type=Path, help="append lines of JSON to this file")
    step.add_argument("--rounds", type=int, default=_ROUNDS, help="of measurements (%(default)s)")
    step.add_argument(
        "--compiled", type=int, default=0, metavar="N", help="the first N beside torch.compile"
    )
    step = steps.add_parser("report", help="write the table of a file of results")
    step.add_argument("file", type=Path)


def run(options: argparse.Namespace) -> int:
    """Run the command; return the number of failures."""
    match options.step:
        case "build":
            from bench.moves.build import build

            return build(options.folder, options.only, options.target, options.seed)
        case "run":
            from bench.moves.run import run as measure

            return measure(
                options.folder, options.only, options.output, options.rounds, options.compiled
            )
    from bench.moves.report import report

    print(report(options.file), end="")
    return 0
