"""`python -m bench sizes build|run`."""

from __future__ import annotations

import argparse
from typing import Any

from bench.contenders.command import add_steps, run_steps

_MANIFEST = "sizes.json"
_ROUNDS = 11


def add_parser(commands: Any, only: dict[str, Any]) -> None:
    """Add the command to those of the bench."""
    command = commands.add_parser("sizes", help="rows at run time beside rows that are known")
    add_steps(
        command,
        only,
        _ROUNDS,
        what="the kernels",
        rounds_help="default: %(default)s",
        has_report=False,
    )


def run(options: argparse.Namespace) -> int:
    """Run the command; return the number of failures."""
    from bench.sizes.cases import cases

    return run_steps(cases(), options, _MANIFEST)
