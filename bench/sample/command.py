"""The command lines `python -m bench sample` and `python -m bench calibrate`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from bench.run import measured_cases
from bench.sample.build import build, processes, read_manifest
from bench.sample.shapes import ALIGNED, ANY, LINES, random_gemms
from lego_mlir.diagnostics import LegoError

ROUNDS = 5
LIMIT_S = 60.0

_CALIBRATION = (160, 6, 6)
"""GEMMs that `calibrate` measures, candidates of each that the model ranks first, and others."""

_STEPS = 40000
"""Steps of the search for constants."""


def add_sample_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `bench sample`."""
    steps = parser.add_subparsers(dest="what", required=True, metavar="build | run | report")
    step = steps.add_parser("build", help="compile candidates of random GEMMs; needs no GPU")
    step.add_argument("folder", type=Path)
    step.add_argument("--seed", type=int, default=1, help="of the shapes (%(default)s)")
    step.add_argument("--count", type=int, default=300, help="GEMMs (%(default)s)")
    step.add_argument("--only", choices=(ALIGNED, LINES, ANY), default="", help="one class of them")
    step.add_argument(
        "--best", type=int, default=5, help="candidates that rank first (%(default)s)"
    )
    step.add_argument(
        "--explore", type=int, default=0, help="candidates that rank next (%(default)s)"
    )
    step.add_argument("--target", default="sm_90a")
    step.add_argument("--jobs", type=int, default=processes(), help="processes (%(default)s)")
    step = steps.add_parser("run", help="check and time them")
    step.add_argument("folder", type=Path)
    step.add_argument("-o", dest="output", type=Path, required=True, metavar="FILE")
    step.add_argument("--rounds", type=int, default=ROUNDS, help="counted rounds (%(default)s)")
    step.add_argument("--gaps", action="store_true", help="also with a kernel between launches")
    step = steps.add_parser("report", help="print ratios to cuBLAS and regrets")
    step.add_argument("files", type=Path, nargs="+", metavar="FILE")
    step = steps.add_parser("worker")  # the child of `run`
    step.add_argument("folder", type=Path)
    step.add_argument("--rounds", type=int, required=True)
    step.add_argument("--gaps", action="store_true")


def sample(options: argparse.Namespace) -> int:
    """Run `bench sample`; return the number of failures."""
    match options.what:
        case "build":
            return build(
                options.folder,
                random_gemms(options.seed, options.count, options.only),
                best=options.best,
                explored=options.explore,
                target=options.target,
                jobs=options.jobs,
            )
        case "run":
            return run(options.folder, options.output, options.rounds, gaps=options.gaps)
        case "worker":
            from bench.sample.worker import serve

            return serve(options.folder, options.rounds, gaps=options.gaps)
        case _:
            from bench.sample.report import report

            print(report(options.files), end="")
            return 0


def run(folder: Path, output: Path, rounds: int, *, gaps: bool) -> int:
    """Measure all GEMMs of a folder in a worker; return the number of wrong or failed kernels."""
    names = list(read_manifest(folder)["cases"])
    command = [sys.executable, "-m", "bench", "sample", "worker", str(folder)]
    command += ["--rounds", str(rounds), *(["--gaps"] if gaps else [])]
    failures = 0
    with output.open("w") as lines:
        for number, result in enumerate(measured_cases(command, names, LIMIT_S), 1):
            lines.write(json.dumps(result) + "\n")
            lines.flush()
            failures += len(result.get("wrong", ())) + ("error" in result)
            if number % 20 == 0 or "error" in result:
                print(f"[{number}/{len(names)}] {result.get('error', '')}", flush=True)
    return failures


def add_calibrate_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `bench calibrate`."""
    parser.add_argument(
        "files", type=Path, nargs="*", metavar="FILE", help="results of `sample run`; or measure"
    )
    parser.add_argument("-o", dest="output", type=Path, metavar="CARD.json", help="the card's file")
    parser.add_argument("--seed", type=int, default=1, help="of the shapes (%(default)s)")
    parser.add_argument("--steps", type=int, default=_STEPS, help="of the search (%(default)s)")


def calibrate(options: argparse.Namespace) -> int:
    """Run `bench calibrate`: measure unless results are given, fit, and write the card."""
    from bench.sample.card import card_file, card_of
    from bench.sample.fit import fit, read_samples, summary, write_card
    from lego_mlir.kernels.gemm.wgmma.model import model_of

    with tempfile.TemporaryDirectory() as scratch:
        files = options.files or [_measured(Path(scratch), options.seed)]
        device = _device(files)
        gpu = card_of(device)
        samples = read_samples(files, gpu)
    if not samples:
        raise LegoError("calibrate: the results have no `wgmma` configs to fit constants to")
    model = model_of(gpu)
    print(f"{len(samples)} GEMMs, {sum(len(s.us) for s in samples)} configs on an {device}")
    print(f"regret before: {summary(samples, model)}")
    fitted = fit(samples, model, steps=options.steps)
    print(f"regret after:  {summary(samples, fitted)}")
    file = options.output or card_file(device)
    write_card(gpu, fitted, file)
    print(f"the constants are in {file}")
    return 0


def _measured(scratch: Path, seed: int) -> Path:
    count, best, explored = _CALIBRATION
    gemms = random_gemms(seed, count, ALIGNED)
    folder, output = scratch / "sample", scratch / "results.jsonl"
    build(folder, gemms, best=best, explored=explored, target="sm_90a", jobs=processes())
    run(folder, output, ROUNDS, gaps=False)
    return output


def _device(files: list[Path]) -> str:
    """Return the device of results; all are of one."""
    names = {
        json.loads(line)["device"]
        for file in files
        for line in file.read_text().splitlines()
        if '"device"' in line
    }
    if len(names) != 1:
        raise LegoError(
            f"calibrate: the results are of {len(names)} devices: {', '.join(sorted(names))}",
            hint="fit the constants of one card at a time",
        )
    return names.pop()
