"""`python -m bench rows build|run|report`."""

from __future__ import annotations

import argparse
from typing import Any

from bench.contenders.command import add_steps
from bench.rows.peers import PEERS

_ROUNDS = 15


def add_parser(commands: Any, only: dict[str, Any]) -> None:
    """Add the command to those of the bench."""
    command = commands.add_parser(
        "rows", help="kernels on rows: softmax, norms, cross-entropy, gradients"
    )
    steps = add_steps(command, only, _ROUNDS)
    steps.build.add_argument("--sweep", action="store_true", help="compile other configs, too")
    steps.build.add_argument(
        "--open", action="store_true", help="compile kernels whose sizes the launch knows, too"
    )
    steps.build.add_argument(
        "--count", action="store_true", help="let the simulator count sectors and conflicts"
    )
    steps.run.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS)
    steps.run.add_argument(
        "--processes", type=int, default=1, help="that prepare cases; one at a time is timed"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command; return the number of failures."""
    match options.step:
        case "build":
            from bench.rows.build import build

            return build(
                options.folder,
                options.only,
                options.target,
                sweep=options.sweep,
                open_sizes=options.open,
                count=options.count,
            )
        case "run":
            from bench.rows.run import run as measure

            return measure(
                options.folder,
                options.only,
                options.output,
                options.rounds,
                options.peers,
                options.processes,
            )
    from bench.rows.report import report

    print(report(options.file), end="")
    return 0
