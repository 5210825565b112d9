"""The command line: `python -m bench build | run | report | index`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench import index
from bench.build import build
from bench.report import report
from bench.run import one, run


def main() -> int:
    """Run one step."""
    parser = argparse.ArgumentParser(prog="python -m bench", allow_abbrev=False)
    steps = parser.add_subparsers(dest="step", required=True)
    step = steps.add_parser("build", help="compile the cases into a folder; no GPU is needed")
    step.add_argument("folder", type=Path)
    step.add_argument("--only", default="", help="cases whose name contains this")
    step.add_argument("--target", default="sm_90a")
    step = steps.add_parser("run", help="check and time the cases of a folder")
    step.add_argument("folder", type=Path)
    step.add_argument("--only", default="", help="cases whose name contains this")
    step.add_argument("--check", action="store_true", help="do not time")
    step.add_argument("-o", dest="output", type=Path, help="write JSON lines")
    step = steps.add_parser("one", help="one case, in this process")
    step.add_argument("folder", type=Path)
    step.add_argument("--case", required=True)
    step.add_argument("--check", action="store_true")
    step = steps.add_parser("report", help="the table of a file of JSON lines")
    step.add_argument("file", type=Path)
    index.add_options(steps.add_parser("index", help="derive index expressions; no GPU is needed"))
    options = parser.parse_args()
    match options.step:
        case "build":
            build(options.folder, options.only, options.target)
        case "run":
            failures = run(options.folder, options.only, options.output, not options.check)
            return 1 if failures else 0
        case "one":
            one(options.folder, options.case, not options.check)
        case "report":
            print(report(options.file), end="")
        case "index":
            return 1 if index.run(options.only, options.json) else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
