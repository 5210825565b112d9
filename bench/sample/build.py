"""Compile candidate configs of many GEMMs on all cores into a folder that `worker` measures."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.build import make_folder
from bench.gemm.cases import case_name, make_kernel
from bench.gemm.references import GemmReference
from lego_mlir.diagnostics import LegoError
from lego_mlir.files import write_whole
from lego_mlir.progress import track

if TYPE_CHECKING:
    from lego_mlir.kernels.gemm.config import GemmConfig

MANIFEST = "sample.json"
CHOICE = "choice"
"""The name of the library's own choice among the candidates."""


@dataclass(frozen=True, slots=True)
class Job:
    """One kernel to compile.

    Attributes:
        reference: the GEMM.
        name: the candidate's name: `choice`, or the text of its config.
        config: its config; `None` for the library's choice.
        file: where it is saved.
        target: the GPU architecture.
    """

    reference: GemmReference
    name: str
    config: GemmConfig | None
    file: Path
    target: str


def build(
    folder: Path,
    gemms: Iterable[tuple[str, GemmReference]],
    *,
    best: int,
    explored: int,
    target: str,
    jobs: int,
) -> int:
    """Compile candidates of GEMMs; return the number of kernels that do not compile.

    Args:
        folder: where kernels and the manifest are written.
        gemms: the GEMMs and their classes.
        best: candidates that the model ranks first.
        explored: further ones, drawn from those that it ranks next.
        target: the GPU architecture.
        jobs: processes.
    """
    make_folder(folder)
    cases: dict[str, dict[str, Any]] = {}
    work: list[Job] = []
    for number, (which, reference) in enumerate(gemms):
        name = f"{number:04d}_{case_name(reference)}"
        cases[name] = {"class": which, "reference": asdict(reference), "candidates": []}
        found = candidates(reference, best, explored, target, number)
        for index, config in enumerate([None, *found]):
            text = CHOICE if config is None else str(config)
            work.append(Job(reference, text, config, folder / f"{name}.{index}.lego", target))
    failures = 0
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context) as pool:
        outcomes = pool.map(_compiled, work, chunksize=4)
        for job, outcome in track("compiling", zip(work, outcomes, strict=True), len(work)):
            case = cases[job.file.name.split(".")[0]]
            if outcome["error"]:
                failures += 1
                print(f"{job.file.name} {job.name}: {outcome['error']}", flush=True)
                if job.config is None:
                    case["choice_error"] = outcome["error"]
                continue
            case["candidates"].append({"name": job.name, "file": job.file.name, **outcome["entry"]})
    write_whole(folder / MANIFEST, json.dumps({"target": target, "cases": cases}).encode())
    return failures


def candidates(
    reference: GemmReference, best: int, explored: int, target: str, seed: int
) -> list[GemmConfig]:
    """Return the configs that the model ranks first, and a few of those that it ranks next."""
    from bench.sample.families import problem_of
    from lego_mlir.hardware.targets import Target
    from lego_mlir.kernels.gemm.planner import ways

    if not best:
        return []
    problem, layouts = problem_of(reference)
    ranked = ways(problem, layouts, Target.parse(target))
    found, rest = ranked[:best], ranked[best:]
    numbers = random.Random(seed)
    # Later ranks are drawn less often: what is far from the best says little about the choice.
    while rest and explored > 0:
        place = min(int(numbers.expovariate(3 / len(rest))), len(rest) - 1)
        found.append(rest.pop(place))
        explored -= 1
    return found


def _compiled(job: Job) -> dict[str, Any]:
    """Compile and save a kernel; return its config and time of choice, or the error."""
    from time import perf_counter

    try:
        start = perf_counter()
        kernel = make_kernel(job.reference, "", job.target, job.config)
        chosen = perf_counter()
        artifact = kernel.compile(job.target)
        compiled = perf_counter()
        artifact.save(job.file)
    except LegoError as e:
        return {"error": e.message}
    entry: dict[str, Any] = {
        "schedule": kernel.schedule,
        "choice_s": round(chosen - start, 4),
        "compile_s": round(compiled - chosen, 4),
        "config": None if job.config is None else asdict(job.config),
        "explanation": kernel.explain()
        if job.config is None and hasattr(kernel, "explain")
        else "",
    }
    return {"error": "", "entry": entry}


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what `build` wrote."""
    data: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
    return data


def processes() -> int:
    """Return the number of cores."""
    return os.cpu_count() or 1
