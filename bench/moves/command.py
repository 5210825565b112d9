"""`python -m bench moves build|run|report`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from bench.contenders.command import add_steps

_ROUNDS, _SEED = 5, 19
_RESULTS = Path("bench/results/moves.jsonl")


def add_parser(commands: Any, only: dict[str, Any]) -> None:
    """Add the command to those of the bench."""
    command = commands.add_parser("moves", help="kernels that only move data, beside a copy")
    steps = add_steps(command, only, _ROUNDS)
    steps.build.add_argument(
        "--seed", type=int, default=_SEED, help="of the random permutations (%(default)s)"
    )
    steps.build.add_argument(
        "--worst",
        type=int,
        default=0,
        metavar="N",
        help="begin with the N permutations that were slowest beside a copy (%(default)s)",
    )
    steps.build.add_argument(
        "--results",
        type=Path,
        default=_RESULTS,
        metavar="FILE",
        help="the results that --worst looks at (%(default)s)",
    )
    steps.build.add_argument(
        "--count", action="store_true", help="let the simulator count sectors and conflicts"
    )
    steps.run.add_argument(
        "--compiled", type=int, default=0, metavar="N", help="the first N beside torch.compile"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command; return the number of failures."""
    match options.step:
        case "build":
            from bench.moves.build import build

            return build(
                options.folder,
                options.only,
                options.target,
                options.seed,
                options.worst,
                options.results,
                count=options.count,
            )
        case "run":
            from bench.moves.run import run as measure

            return measure(
                options.folder, options.only, options.output, options.rounds, options.compiled
            )
    from bench.moves.report import report

    print(report(options.file), end="")
    return 0
