"""The command line: `python -m bench build | run | report | profile | index`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from lego_mlir.diagnostics import LegoError

RESULTS = [
    file
    for name in ("transpose", "gemm", "variants", "grouped", "profile")
    if (file := Path(__file__).with_name("results") / f"{name}.jsonl").exists()
]


def main() -> int:
    """Run one step; status 1 says that a case is not right, 2 that nothing could be done."""
    options = _parser().parse_args()
    try:
        return _step(options)
    except LegoError as e:
        print(e.render(), file=sys.stderr)
        return 2


def _step(options: argparse.Namespace) -> int:
    # Each step imports what it needs alone: `run` works where there is no MLIR, `build` where
    # there is no GPU, and only `report` wants matplotlib.
    match options.step:
        case "build":
            from bench.build import build

            failures = build(options.folder, options.only, options.target, sass=options.sass)
        case "run":
            from bench.run import run

            failures = run(
                options.folder,
                options.only,
                options.output,
                rounds=0 if options.check else options.rounds,
                limit_s=options.limit,
                check_by_numpy=options.check_by_numpy,
                alone=options.alone,
                sets=options.sets,
            )
        case "one":
            from bench.one import Options, serve

            asked = Options(
                options.rounds,
                options.scratch,
                options.check_by_numpy,
                options.alone,
                options.sets,
            )
            failures = serve(options.folder, asked)
        case "profile":
            from bench import profile

            failures = profile.run(options.folder, options.only, options.output)
        case "launch":
            from bench import profile

            failures = profile.launch(options.folder, options.names)
        case "tune":
            from bench.gemm import tune

            failures = tune.run(options)
        case "report":
            from bench.report import write

            failures = 0
            for file in options.files:
                print(write(file, mixed=options.mixed), end="")
        case _:
            from bench import index

            failures = index.run(options.only, options.json)
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    from bench import index
    from bench.gemm import tune
    from bench.run import LIMIT_S, MOST_SETS, ROUNDS

    parser = argparse.ArgumentParser(prog="python -m bench", allow_abbrev=False)
    steps = parser.add_subparsers(
        dest="step", required=True, metavar="build | run | report | profile | tune | index"
    )
    only: dict[str, Any] = {
        "action": "append",
        "default": [],
        "metavar": "WORD",
        "help": "cases whose name contains this; may be given again for more",
    }

    step = steps.add_parser("build", help="compile the cases into a folder; no GPU is needed")
    step.add_argument("folder", type=Path)
    step.add_argument("--only", **only)
    step.add_argument("--target", default="sm_90a")
    step.add_argument("--sass", action="store_true", help="count the main loops' instructions")

    step = steps.add_parser("run", help="check and time the cases of a folder")
    step.add_argument("folder", type=Path)
    step.add_argument("--only", **only)
    step.add_argument("--rounds", type=_rounds, default=ROUNDS, help="how many count (%(default)s)")
    step.add_argument("--check", action="store_true", help="do not time")
    step.add_argument(
        "--limit", type=float, default=LIMIT_S, metavar="S", help="seconds a case (%(default)g)"
    )
    step.add_argument("--check-by-numpy", action="store_true", help="even where PyTorch is there")
    step.add_argument("--alone", action="store_true", help="no peers, no PyTorch: kernels of ours")
    step.add_argument(
        "--sets", type=_count, default=MOST_SETS, metavar="N", help="of data, at most (%(default)s)"
    )
    step.add_argument("-o", dest="output", type=Path, metavar="FILE", help="write JSON lines")

    step = steps.add_parser("one")  # the child of `run`: names on stdin, JSON on stdout
    step.add_argument("folder", type=Path)
    step.add_argument("--rounds", type=int, required=True)
    step.add_argument("--scratch", type=Path, required=True)
    step.add_argument("--check-by-numpy", action="store_true")
    step.add_argument("--alone", action="store_true")
    step.add_argument("--sets", type=int, required=True)

    step = steps.add_parser("profile", help="counters of the cases of a folder, by Nsight Compute")
    step.add_argument("folder", type=Path)
    step.add_argument("--only", **only)
    step.add_argument("-o", dest="output", type=Path, metavar="FILE", required=True)

    step = steps.add_parser("launch")  # the child of `profile`
    step.add_argument("folder", type=Path)
    step.add_argument("names", nargs="+")

    step = steps.add_parser("report", help="tables and a figure, beside files of JSON lines")
    step.add_argument("files", type=Path, nargs="*", metavar="FILE", default=RESULTS)
    step.add_argument("--mixed", action="store_true", help="of several commits or devices, too")

    step = steps.add_parser("tune", help="search for the best configurations of products")
    tune.add_options(step)
    index.add_options(steps.add_parser("index", help="derive index expressions; no GPU is needed"))
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of sets, at least 1")
    return int(text)


def _rounds(text: str) -> int:
    """The quartiles want some rounds to be quartiles of."""
    if not text.isdecimal() or int(text) < 3:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of rounds, at least 3")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
