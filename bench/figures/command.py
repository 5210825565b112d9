"""`python -m bench figures DIR`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from bench.contenders.case import ContenderCase, build_cases
from bench.contenders.run import measure_cases, select
from bench.figures import cuda_cases, triton_cases
from lego_mlir.diagnostics import LegoError

_MANIFEST = "figures.json"
_TABLES = "linear_layouts.md"
_ROWS = Path(__file__).parents[1] / "results" / "rows.jsonl"
_ROUNDS = 11


def add_parser(commands: Any, only: dict[str, Any]) -> None:
    """Add the command to those of the bench."""
    command = commands.add_parser(
        "figures", help="the papers' figures made again: printed kernels, by hand, ours"
    )
    command.add_argument("folder", type=Path, help="of what is built, and of the results")
    command.add_argument("--only", **only)
    command.add_argument("--target", default="sm_90a")
    command.add_argument(
        "--rounds", type=int, default=_ROUNDS, help="of measurements (%(default)s)"
    )
    command.add_argument("-o", "--output", type=Path, help="append lines of JSON to this file")
    step = command.add_mutually_exclusive_group()
    step.add_argument("--build", action="store_true", help="build only; needs no GPU")
    step.add_argument("--run", action="store_true", help="run what was built; needs no MLIR")
    step.add_argument("--report", action="store_true", help="write the table of the results")


def all_cases() -> list[ContenderCase]:
    """Return the cases of all figures."""
    return [*triton_cases.cases(), *cuda_cases.cases()]


def run(options: argparse.Namespace) -> int:
    """Build, run and report, or one of them; return the number of failures."""
    chosen = select(all_cases(), options.only)
    results = options.output or options.folder / "figures.jsonl"
    failures = 0
    every = not (options.build or options.run or options.report)
    if options.build or every:
        build_cases(chosen, options.folder, options.target, _MANIFEST)
    if options.run or every:
        failures = measure_cases(chosen, options.folder, options.rounds, results, _MANIFEST)
    if options.report or every:
        from bench.figures import bandwidth
        from bench.figures.report import report

        tables = options.folder / _TABLES
        if not tables.exists():  # the folder is that of another machine, or of some cases
            try:
                _build_tables(options.folder)
            except ImportError as e:
                raise LegoError(
                    f"{tables} is not there, and cannot be made here: {e}",
                    hint="--build makes it, on a machine with MLIR",
                ) from None
        further = ["\n".join(bandwidth.lines(_ROWS)), tables.read_text().rstrip()]
        print(report(results, *further), end="")
    return failures


def _build_tables(folder: Path) -> None:
    """Write the tables of the linear layouts paper, which need no GPU."""
    from bench.tiles import tables

    found = {family: tables.reductions(family) for family in tables.BROADCAST}
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(["## Linear Layouts: tables 3 and 4", "", *tables.lines(found)])
    (folder / _TABLES).write_text(text + "\n")
