"""`python -m bench profile`: read hardware counters of our kernels and of their peers.

Runs Nsight Compute (`ncu`) on a child process that launches each contender of each case several
times and profiles the last launch. Writes a line for each case. The clocks are not locked.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.build import read_manifest, select
from bench.measure import worker
from bench.measure.driver import call, driver, synchronize
from bench.peers import PEERS, Absent
from bench.profile.counters import METRICS, counters, samples
from bench.report.results import OURS
from lego_mlir import runtime
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import cuda

_WARM_UP = 20
"""Launches before the profiled one, after which caches and clocks are as in steady use."""

_NCU = ("--clock-control", "none", "--profile-from-start", "off", "--target-processes", "all")


def run(folder: Path, only: Sequence[str], output: Path) -> int:
    """Profile the selected cases of a bundle; return 0, the number of failures.

    Args:
        folder: the bundle.
        only: words that the names of the cases contain; all cases if there are none.
        output: the file of results, a line of JSON for each case.

    Raises:
        LegoError: `ncu` is missing or fails, a contender launches several kernels, or the bundle
            cannot be read.
    """
    manifest = read_manifest(folder)
    names = select(list(manifest["cases"]), only)
    child = [sys.executable, "-m", "bench", "profiled", str(folder), *names]
    counted = counters(_page(["--metrics", ",".join(METRICS)], "raw", child))
    sampled = samples(_page(["--section", "SourceCounters"], "source", child))
    contenders = [(name, contender) for name in names for contender in _contenders(manifest, name)]
    if not len(contenders) == len(counted) == len(sampled):
        raise LegoError(
            f"{len(contenders)} contenders launched {len(counted)} kernels, not one each",
            hint="select cases whose contenders launch one kernel each: --only WORD",
        )
    command = " ".join(["python -m bench profile DIR", *(f"--only {word}" for word in only)])
    device = _device()
    with output.open("w") as lines:
        for name in names:
            entry = manifest["cases"][name]
            own = [k for k, (case, _) in enumerate(contenders) if case == name]
            result = {
                "case": name,
                "commit": manifest["commit"],
                "device": device,
                "command": command,
                "reference": entry["reference"],
                "verified": {},
                "counters": {contenders[k][1]: counted[k] for k in own},
                "samples": {contenders[k][1]: sampled[k] for k in own},
            }
            lines.write(json.dumps(result) + "\n")
    print(f"{len(names)} cases are in {output}")
    return 0


def _contenders(manifest: dict[str, Any], name: str) -> list[str]:
    return [OURS, *manifest["cases"][name]["peers"]]


def _device() -> str:
    """Return the name of the first GPU, on which the child runs."""
    call(driver().cuInit, 0)
    name: bytes = call(driver().cuDeviceGetName, 256, call(driver().cuDeviceGet, 0))
    return name.partition(b"\0")[0].decode()


def _page(sections: Sequence[str], page: str, child: Sequence[str]) -> str:
    """Profile the child's kernels; return a page of the report as CSV in base units.

    Raises:
        LegoError: `ncu` is not on the PATH, or fails.
    """
    with tempfile.TemporaryDirectory() as scratch:
        report = str(Path(scratch) / "profile.ncu-rep")
        _ncu(*_NCU, *sections, "-o", report, *child)
        return _ncu("--import", report, "--csv", "--print-units", "base", "--page", page)


def launch(folder: Path, names: Sequence[str]) -> int:
    """Launch every contender of the named cases, and have the last launch of each profiled."""
    cuda_driver = driver()
    for name in names:
        entry = read_manifest(folder)["cases"][name]
        artifact = runtime.Artifact.load(folder / f"{name}.lego")
        loaded = cuda.load(artifact)
        torch = worker.pytorch()
        with tempfile.TemporaryDirectory() as scratch:
            options = worker.WorkerOptions(
                0, Path(scratch), check_by_numpy=False, alone=False, max_sets=2
            )
            dtype = artifact.arguments[0].dtype
            with worker.set_up(entry, dtype, loaded.device, torch, options) as setup:
                setup.data.fill_inputs(1)
                shapes = [argument.shape for argument in artifact.arguments]
                arrays = [setup.data.arrays(k, shapes) for k in range(setup.data.sets)]
                bound = [loaded.bind(*(x.pointer for x in group)) for group in arrays]
                calls: list[Any] = [lambda k, bound=bound, setup=setup: bound[k](setup.stream)]
                for peer in entry["peers"]:
                    try:
                        calls.append(PEERS[peer](setup))
                    except Absent as reason:
                        raise LegoError(f"{name}: {peer} is absent: {reason}") from None
                for contender in calls:
                    for number in range(_WARM_UP):
                        contender(number % setup.data.sets)
                    synchronize()
                    call(cuda_driver.cuProfilerStart)
                    contender(0)
                    synchronize()
                    call(cuda_driver.cuProfilerStop)
    return 0


def _ncu(*arguments: str) -> str:
    """Run Nsight Compute; return what it prints.

    Raises:
        LegoError: `ncu` is not on the PATH, or fails.
    """
    tool = shutil.which("ncu")
    if tool is None:
        raise LegoError("ncu is not on the PATH", hint="it comes with CUDA, as Nsight Compute")
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LegoError(f"ncu fails: {(done.stderr or done.stdout).strip()[-800:]}")
    return done.stdout
