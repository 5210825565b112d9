"""`python -m bench sizes build|run`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

_MANIFEST = "sizes.json"
_ROUNDS = 11


def add_parser(commands: Any, only: dict[str, Any]) -> None:
    """Add the command to those of the bench."""
    command = commands.add_parser("sizes", help="rows at run time beside rows that are known")
    steps = command.add_subparsers(dest="step", required=True)
    step = steps.add_parser("build", help="compile the kernels into a folder; needs no GPU")
    step.add_argument("folder", type=Path)
    step.add_argument("--only", **only)
    step.add_argument("--target", default="sm_90a")
    step = steps.add_parser("run", help="check and time those of a folder")
    step.add_argument("folder", type=Path)
    step.add_argument("--only", **only)
    step.add_argument("-o", "--output", type=Path, help="append lines of JSON to this file")
    step.add_argument("--rounds", type=int, default=_ROUNDS, help="default: %(default)s")


def run(options: argparse.Namespace) -> int:
    """Run the command; return the number of failures."""
    from bench.contenders.run import select
    from bench.sizes.cases import cases

    chosen = select(list(cases()), options.only)
    if options.step == "build":
        from bench.build import commit
        from bench.contenders.case import build_case

        for case in chosen:
            build_case(case, options.folder / case.folder, options.target)
            print(case.name, flush=True)
        (options.folder / _MANIFEST).write_text(json.dumps({"commit": commit()}))
        return 0
    from bench.contenders.run import append, measure_case, shown

    failures = 0
    made = json.loads((options.folder / _MANIFEST).read_text())["commit"]
    for case in chosen:
        if not (options.folder / case.folder).exists():
            continue
        line = measure_case(case, options.folder / case.folder, options.rounds, made)
        failures += "error" in line or bool(line["wrong"])
        print(shown(line), flush=True)
        if options.output is not None:
            append(options.output, line)
    return failures
