"""`python -m bench attention build|run|report`."""

from __future__ import annotations

import argparse
from typing import Any

from bench.contenders.command import add_steps, run_steps

_MANIFEST = "attention.json"
_ROUNDS = 11


def add_parser(commands: Any, only: dict[str, Any]) -> None:
    """Add the command to those of the bench."""
    command = commands.add_parser("attention", help="attention forward and decoding, with peers")
    add_steps(command, only, _ROUNDS, what="the kernels", rounds_help="default: %(default)s")


def run(options: argparse.Namespace) -> int:
    """Run the command; return the number of failures."""
    if options.step == "report":
        from bench.attention.report import report

        print(report(options.file), end="")
        return 0
    from bench.attention.cases import cases

    return run_steps(cases(), options, _MANIFEST)
