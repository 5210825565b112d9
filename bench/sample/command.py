"""The command lines `python -m bench sample` and `python -m bench calibrate`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from math import exp, log
from pathlib import Path

from bench.run import measured_cases
from bench.sample.build import build, processes, read_manifest
from bench.sample.lists import LISTS
from bench.sample.shapes import ALIGNED, ANY, FEW, LINES, random_gemms
from lego_mlir.diagnostics import LegoError

CORRECTIONS = "corrections"
"""What `calibrate` fits only if it is told to: it takes more GEMMs than constants take."""

ROUNDS = 5
LIMIT_S = 60.0

_CALIBRATION = 160
"""GEMMs that `calibrate` measures; a quarter of them have few rows or columns."""

_CANDIDATES = (6, 6)
"""Candidates of each that the models rank first, and others."""

_LEAST_SAMPLES = 8
"""GEMMs with two measured configs that the constants of a model are fitted to, at least."""

_LEAST_CORRECTED, _FOLDS = 100, 5
"""GEMMs that corrections are fitted to, at least, and parts of them that are left out in turn."""

_STEPS = 40000
"""Steps of the search for constants."""


def add_sample_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `bench sample`."""
    steps = parser.add_subparsers(dest="what", required=True, metavar="build | run | report")
    step = steps.add_parser("build", help="compile candidates of random GEMMs; needs no GPU")
    _add_gemms(step)
    step.add_argument(
        "--best", type=int, default=5, help="candidates that rank first (%(default)s)"
    )
    step.add_argument(
        "--explore", type=int, default=0, help="candidates that rank next (%(default)s)"
    )
    step = steps.add_parser("run", help="check and time them")
    step.add_argument("folder", type=Path)
    step.add_argument("-o", dest="output", type=Path, required=True, metavar="FILE")
    step.add_argument("--rounds", type=int, default=ROUNDS, help="counted rounds (%(default)s)")
    step.add_argument("--gaps", action="store_true", help="also with a kernel between launches")
    step = steps.add_parser("report", help="print ratios to cuBLAS and regrets")
    step.add_argument("files", type=Path, nargs="+", metavar="FILE")
    step.add_argument("--each", action="store_true", help="a row for each GEMM")
    step = steps.add_parser("worker")  # the child of `run`
    step.add_argument("folder", type=Path)
    step.add_argument("--rounds", type=int, required=True)
    step.add_argument("--gaps", action="store_true")


def _add_gemms(step: argparse.ArgumentParser) -> None:
    """Add the arguments that say which GEMMs are compiled, and how."""
    step.add_argument("folder", type=Path)
    step.add_argument("--seed", type=int, default=1, help="of the shapes (%(default)s)")
    step.add_argument("--count", type=int, default=300, help="GEMMs (%(default)s)")
    step.add_argument(
        "--only", choices=(ALIGNED, LINES, ANY, FEW), default="", help="one class of them"
    )
    step.add_argument("--list", choices=LISTS, help="a list of GEMMs instead of random ones")
    step.add_argument("--target", default="sm_90a")
    step.add_argument("--jobs", type=int, default=processes(), help="processes (%(default)s)")


def sample(options: argparse.Namespace) -> int:
    """Run `bench sample`; return the number of failures."""
    match options.what:
        case "build":
            return _build(options, options.best, options.explore)
        case "run":
            return run(options.folder, options.output, options.rounds, gaps=options.gaps)
        case "worker":
            from bench.sample.worker import serve

            return serve(options.folder, options.rounds, gaps=options.gaps)
        case _:
            from bench.sample.report import report

            print(report(options.files, each=options.each), end="")
            return 0


def _build(options: argparse.Namespace, best: int, explored: int) -> int:
    """Compile what the options say; return the number of kernels that do not compile."""
    return build(
        options.folder,
        LISTS[options.list]()
        if options.list
        else random_gemms(options.seed, options.count, options.only),
        best=best,
        explored=explored,
        target=options.target,
        jobs=options.jobs,
    )


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
    parser.add_argument(
        "--only",
        nargs="+",
        choices=("wgmma", "gemv", "mma", "unaligned", CORRECTIONS),
        default=(),
        metavar="MODEL",
        help="fit these only: %(choices)s",
    )
    parser.add_argument(
        "--count", type=int, default=_CALIBRATION, help="GEMMs to measure (%(default)s)"
    )
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep what is measured")
    parser.add_argument("--seed", type=int, default=1, help="of the shapes (%(default)s)")
    parser.add_argument("--steps", type=int, default=_STEPS, help="of the search (%(default)s)")


def calibrate(options: argparse.Namespace) -> int:
    """Run `bench calibrate`: measure unless results are given, fit, and write the card."""
    from bench.sample.card import card_file, card_of, cluster_placement, compiled_probe
    from bench.sample.families import families
    from bench.sample.fit import fit, read_samples, summary, write_card
    from lego_mlir.hardware.specs import read_card

    with tempfile.TemporaryDirectory() as scratch:
        files = options.files or [_measured(Path(scratch), options)]
        device = _device(files)
        file = options.output or card_file(device)
        gpu = card_of(device, file)
        if not options.files and gpu.wgmma_model is not None:
            placement = cluster_placement(compiled_probe(), gpu.multiprocessors)
            write_card(file, {"wgmma": replace(gpu.wgmma_model, cluster_placement=placement)})
        fitted = 0
        for family in families():
            if options.only and family.key not in options.only:
                continue
            gpu = read_card(file)  # with the constants that are fitted already
            samples = read_samples(files, gpu, family)
            if len(samples) < _LEAST_SAMPLES:
                print(f"{family.key}: {len(samples)} GEMMs are too few; its constants stay")
                continue
            model = family.model_of(gpu)
            configs = sum(len(s.us) for s in samples)
            print(f"{family.key}: {len(samples)} GEMMs, {configs} configs on an {device}")
            print(f"  regret before: {summary(samples, model, family)}", flush=True)
            found = fit(samples, model, family, steps=options.steps)
            print(f"  regret after:  {summary(samples, found, family)}", flush=True)
            write_card(file, {family.key: found})
            fitted += 1
        if CORRECTIONS in options.only:
            fitted += _fit_corrections(files, file)
    if not fitted:
        raise LegoError("calibrate: the results have too few configs to fit constants to")
    print(f"the constants are in {file}")
    return 0


def _fit_corrections(files: list[Path], card: Path) -> int:
    """Fit what corrects the models to results, and write the card; return the models."""
    from bench.sample.corrections import (
        Regression,
        cross_validated,
        read_measured,
        regrets,
        write_corrections,
    )
    from lego_mlir.hardware.specs import read_card

    gpu = read_card(card)
    gemms = read_measured(files, gpu)
    if len(gemms) < _LEAST_CORRECTED:
        print(f"corrections: {len(gemms)} GEMMs are too few; they stay as they are")
        return 0
    found = Regression(gemms).fitted()
    for what, regret in (
        ("by the models", regrets(gemms, {})),
        ("corrected", regrets(gemms, found)),
        ("corrected without these sizes", cross_validated(gemms, _FOLDS)),
    ):
        mean = exp(sum(map(log, regret)) / len(regret))
        print(f"corrections: {len(gemms)} GEMMs, {what}: mean {mean:.4f}, worst {max(regret):.3f}")
    write_corrections(card, found)
    return len(found)


def _measured(scratch: Path, options: argparse.Namespace) -> Path:
    """Measure a random sample on the GPU in this machine, and return the file of results."""
    best, explored = _CANDIDATES
    few = options.count // 4
    gemms = [
        *random_gemms(options.seed, options.count - few),
        *random_gemms(options.seed, few, FEW),
    ]
    folder, output = scratch / "sample", options.results or scratch / "results.jsonl"
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
