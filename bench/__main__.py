"""The command line: `python -m bench COMMAND`; `--help` lists the commands."""

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
    """Run one command; return 1 if a case fails, 2 if nothing could be done."""
    options = _parser().parse_args()
    try:
        return _run(options)
    except LegoError as e:
        print(e.render(), file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    # Each command imports only what it needs: `run` works without MLIR, `build` without a GPU, and
    # only `report` needs matplotlib.
    match options.command:
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
                max_sets=options.sets,
            )
        case "worker":
            from bench.measure.worker import WorkerOptions, serve

            worker_options = WorkerOptions(
                options.rounds,
                options.scratch,
                options.check_by_numpy,
                options.alone,
                options.sets,
            )
            failures = serve(options.folder, worker_options)
        case "report":
            from bench.report.command import write_report

            failures = 0
            for file in options.files:
                print(write_report(file, mixed=options.mixed), end="")
        case "profile":
            from bench.profile import command as profile

            failures = profile.run(options.folder, options.only, options.output)
        case "profiled":
            from bench.profile import command as profile

            failures = profile.launch(options.folder, options.names)
        case "launch":
            from bench.launch import command as launches

            failures = launches.run(options)
        case "mlp":
            from bench import mlp

            failures = mlp.run(options)
        case "tune":
            from bench.gemm import tune

            failures = tune.run(options)
        case "sample":
            from bench.sample import command as samples

            failures = samples.sample(options)
        case "calibrate":
            from bench.sample import command as samples

            failures = samples.calibrate(options)
        case "rows":
            from bench.rows import command as rows

            failures = rows.run(options)
        case "attention":
            from bench.attention import command as attention

            failures = attention.run(options)
        case "sizes":
            from bench.sizes import command as sizes

            failures = sizes.run(options)
        case "figures":
            from bench.figures import command as figures

            failures = figures.run(options)
        case "moves":
            from bench.moves import command as moves

            failures = moves.run(options)
        case "tiles":
            from bench.tiles import command as tiles

            failures = tiles.run(options)
        case "compile":
            from bench.compile import command as compile_times

            failures = compile_times.run(options)
        case _:
            from bench.index import command as index

            failures = index.run(options.only, options.json)
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    from bench import mlp
    from bench.attention import command as attention
    from bench.compile import command as compile_times
    from bench.figures import command as figures
    from bench.gemm import tune
    from bench.index import command as index
    from bench.launch import command as launches
    from bench.moves import command as moves
    from bench.rows import command as rows
    from bench.run import LIMIT_S, MAX_SETS, ROUNDS
    from bench.sample import command as samples
    from bench.sizes import command as sizes
    from bench.tiles import command as tiles

    parser = argparse.ArgumentParser(prog="python -m bench", allow_abbrev=False)
    commands = parser.add_subparsers(
        dest="command",
        required=True,
        metavar="build | run | report | profile | tune | sample | calibrate | rows | moves | "
        "tiles | figures | attention | sizes | index | launch | mlp | compile",
    )
    only: dict[str, Any] = {
        "action": "append",
        "default": [],
        "metavar": "WORD",
        "help": "select cases whose name contains this; repeat it to select more",
    }

    command = commands.add_parser("build", help="compile the cases into a folder; needs no GPU")
    command.add_argument("folder", type=Path)
    command.add_argument("--only", **only)
    command.add_argument("--target", default="sm_90a")
    command.add_argument("--sass", action="store_true", help="count the main loops' instructions")

    rows.add_parser(commands, only)
    moves.add_parser(commands, only)
    tiles.add_parser(commands, only)
    figures.add_parser(commands, only)
    attention.add_parser(commands, only)
    sizes.add_parser(commands, only)

    command = commands.add_parser("run", help="check and time the cases of a folder")
    command.add_argument("folder", type=Path)
    command.add_argument("--only", **only)
    command.add_argument(
        "--rounds", type=_rounds, default=ROUNDS, help="number of counted rounds (%(default)s)"
    )
    command.add_argument("--check", action="store_true", help="check without timing")
    command.add_argument(
        "--limit", type=float, default=LIMIT_S, metavar="S", help="seconds per case (%(default)g)"
    )
    command.add_argument(
        "--check-by-numpy", action="store_true", help="check with NumPy even if PyTorch is here"
    )
    command.add_argument(
        "--alone", action="store_true", help="launch our kernels only: no peers, no PyTorch"
    )
    command.add_argument(
        "--sets",
        type=_count,
        default=MAX_SETS,
        metavar="N",
        help="maximum number of sets of data (%(default)s)",
    )
    command.add_argument("-o", dest="output", type=Path, metavar="FILE", help="write JSON lines")

    command = commands.add_parser("worker")  # the child of `run`: names on stdin, JSON on stdout
    command.add_argument("folder", type=Path)
    command.add_argument("--rounds", type=int, required=True)
    command.add_argument("--scratch", type=Path, required=True)
    command.add_argument("--check-by-numpy", action="store_true")
    command.add_argument("--alone", action="store_true")
    command.add_argument("--sets", type=int, required=True)

    command = commands.add_parser(
        "profile", help="read hardware counters of the cases of a folder, by Nsight Compute"
    )
    command.add_argument("folder", type=Path)
    command.add_argument("--only", **only)
    command.add_argument("-o", dest="output", type=Path, metavar="FILE", required=True)

    command = commands.add_parser("profiled")  # the child of `profile`
    command.add_argument("folder", type=Path)
    command.add_argument("names", nargs="+")

    command = commands.add_parser(
        "report", help="write tables and a figure beside files of JSON lines"
    )
    command.add_argument("files", type=Path, nargs="*", metavar="FILE", default=RESULTS)
    command.add_argument(
        "--mixed", action="store_true", help="accept results of several commits or devices"
    )

    tune.add_options(commands.add_parser("tune", help="search for the fastest GEMM configs"))
    samples.add_sample_options(
        commands.add_parser("sample", help="compile and time random GEMMs beside cuBLAS")
    )
    samples.add_calibrate_options(
        commands.add_parser("calibrate", help="fit the constants of this GPU's cost model")
    )
    index.add_options(
        commands.add_parser("index", help="measure the derivation of index expressions; no GPU")
    )
    launches.add_options(commands.add_parser("launch", help="measure what a launch costs the host"))
    mlp.add_options(
        commands.add_parser("mlp", help="time a network of linear layers; needs a GPU and PyTorch")
    )
    compile_times.add_options(
        commands.add_parser("compile", help="measure compile times; needs no GPU")
    )
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of sets, which is at least 1")
    return int(text)


def _rounds(text: str) -> int:
    """Parse a number of rounds; quartiles need at least three."""
    if not text.isdecimal() or int(text) < 3:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of rounds, which is at least 3")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
