"""What commands with the steps build, run and report have in common: `python -m bench COMMAND`.

The command line imports it whatever the command, so it imports cases only where it needs them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from bench.contenders.case import ContenderCase


class Steps(NamedTuple):
    """The parsers of a command's steps, to which it adds its own options.

    Attributes:
        all: to which it adds further steps.
        build: of the step that needs no GPU.
        run: of the step that needs one.
    """

    all: Any
    build: argparse.ArgumentParser
    run: argparse.ArgumentParser


def add_steps(
    command: argparse.ArgumentParser,
    only: dict[str, Any],
    rounds: int,
    *,
    what: str = "them",
    rounds_help: str = "of measurements (%(default)s)",
    has_report: bool = True,
) -> Steps:
    """Add the steps build, run and report to a command; return their parsers.

    Args:
        command: the command's parser.
        only: what selects cases, as `add_argument` takes it.
        rounds: of a run, by default.
        what: the step build compiles.
        rounds_help: says what rounds are.
        has_report: whether there is a step report.
    """
    steps = command.add_subparsers(dest="step", required=True)
    build = steps.add_parser("build", help=f"compile {what} into a folder; needs no GPU")
    run = steps.add_parser("run", help="check and time those of a folder")
    for step in (build, run):
        step.add_argument("folder", type=Path)
        step.add_argument("--only", **only)
    build.add_argument("--target", default="sm_90a")
    run.add_argument("-o", "--output", type=Path, help="append lines of JSON to this file")
    run.add_argument("--rounds", type=int, default=rounds, help=rounds_help)
    if has_report:
        report = steps.add_parser("report", help="write the table of a file of results")
        report.add_argument("file", type=Path)
    return Steps(steps, build, run)


def run_steps(cases: Iterable[ContenderCase], options: argparse.Namespace, manifest: str) -> int:
    """Build or run the cases that a command's options select; return the number of failures.

    A run leaves out what was not built.

    Args:
        cases: all of the command.
        options: as `add_steps` has them.
        manifest: the name of the file that says what the folder was built of.
    """
    from bench.contenders.case import build_cases
    from bench.contenders.run import measure_cases, select

    folder: Path = options.folder
    chosen = select(list(cases), options.only)
    if options.step == "build":
        build_cases(chosen, folder, options.target, manifest)
        return 0
    built = [case for case in chosen if (folder / case.folder).exists()]
    return measure_cases(built, folder, options.rounds, options.output, manifest)
