"""Hardware counters of kernels of ours and of their peers, by Nsight Compute.

    python -m bench profile DIR --only gemm_f16_4096_nn -o FILE.jsonl

runs `ncu` on a child that launches each contestant of each case some times, of which the last is
profiled, and writes a line for each case. The clocks are left as they are.
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

from bench import one
from bench.build import chosen, read_manifest
from bench.counters import METRICS, counters, samples
from bench.driver import call, driver, synchronize
from bench.peers import PEERS, Absent
from bench.results import OURS
from lego_mlir import runtime
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import cuda

_WARM_UP = 20
"""Launches before the one that is profiled: caches and clocks are then as at work."""

_NCU = ("--clock-control", "none", "--profile-from-start", "off", "--target-processes", "all")


def run(folder: Path, only: Sequence[str], output: Path) -> int:
    """Profile the chosen cases of a bundle; always 0 failures.

    Args:
        folder: the bundle.
        only: words that the names of the cases contain; all cases if there are none.
        output: the file of results, a line of JSON for each case.

    Raises:
        LegoError: there is no `ncu`, it fails, a contestant launches several kernels, or the bundle
            cannot be read.
    """
    manifest = read_manifest(folder)
    names = chosen(list(manifest["cases"]), only)
    child = [sys.executable, "-m", "bench", "launch", str(folder), *names]
    counted = counters(_pages(["--metrics", ",".join(METRICS)], "raw", child))
    sampled = samples(_pages(["--section", "SourceCounters"], "source", child))
    contestants = [(name, who) for name in names for who in _contestants(manifest, name)]
    if not len(contestants) == len(counted) == len(sampled):
        raise LegoError(
            f"{len(contestants)} contestants launched {len(counted)} kernels",
            hint="choose cases of whom each launches one, by --only",
        )
    command = " ".join(["python -m bench profile DIR", *(f"--only {word}" for word in only)])
    device = _device()
    with output.open("w") as lines:
        for name in names:
            entry = manifest["cases"][name]
            told = [k for k, (case, _) in enumerate(contestants) if case == name]
            result = {
                "case": name,
                "commit": manifest["commit"],
                "device": device,
                "command": command,
                "reference": entry["reference"],
                "verified": {},
                "counters": {contestants[k][1]: counted[k] for k in told},
                "samples": {contestants[k][1]: sampled[k] for k in told},
            }
            lines.write(json.dumps(result) + "\n")
    print(f"{len(names)} cases are in {output}")
    return 0


def _contestants(manifest: dict[str, Any], name: str) -> list[str]:
    return [OURS, *manifest["cases"][name]["peers"]]


def _device() -> str:
    """The name of the first GPU, which the child has."""
    call(driver().cuInit, 0)
    name: bytes = call(driver().cuDeviceGetName, 256, call(driver().cuDeviceGet, 0))
    return name.partition(b"\0")[0].decode()


def _pages(what: Sequence[str], page: str, child: Sequence[str]) -> str:
    """What `ncu` says of the child's kernels, as CSV in base units.

    Raises:
        LegoError: it is not on the PATH, or fails.
    """
    with tempfile.TemporaryDirectory() as scratch:
        report = str(Path(scratch) / "profile.ncu-rep")
        _ncu(*_NCU, *what, "-o", report, *child)
        return _ncu("--import", report, "--csv", "--print-units", "base", "--page", page)


def launch(folder: Path, names: Sequence[str]) -> int:
    """The child: launch every contestant, and have the last launch of each profiled."""
    cuda_driver = driver()
    for name in names:
        entry = read_manifest(folder)["cases"][name]
        artifact = runtime.Artifact.load(folder / f"{name}.lego")
        loaded = cuda.load(artifact)
        torch = one.pytorch()
        with tempfile.TemporaryDirectory() as scratch:
            options = one.Options(0, Path(scratch), numpy=False, alone=False, sets=2)
            dtype = artifact.arguments[0].dtype
            with one.prepared(entry, dtype, loaded.device, torch, options) as setup:
                setup.data.draw(1)
                shapes = [argument.shape for argument in artifact.arguments]
                arrays = [setup.data.arrays(k, shapes) for k in range(setup.data.sets)]
                bound = [loaded.bind(*(x.pointer for x in group)) for group in arrays]
                calls: list[Any] = [lambda k, bound=bound, setup=setup: bound[k](setup.stream)]
                for peer in entry["peers"]:
                    try:
                        calls.append(PEERS[peer](setup))
                    except Absent as reason:
                        raise LegoError(f"{name}: without {peer}: {reason}") from None
                for contestant in calls:
                    for number in range(_WARM_UP):
                        contestant(number % setup.data.sets)
                    synchronize()
                    call(cuda_driver.cuProfilerStart)
                    contestant(0)
                    synchronize()
                    call(cuda_driver.cuProfilerStop)
    return 0


def _ncu(*arguments: str) -> str:
    """What Nsight Compute prints.

    Raises:
        LegoError: it is not on the PATH, or fails.
    """
    tool = shutil.which("ncu")
    if tool is None:
        raise LegoError("ncu is not on the PATH", hint="it comes with CUDA, as Nsight Compute")
    said = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)
    if said.returncode:
        raise LegoError(f"ncu fails: {(said.stderr or said.stdout).strip()[-800:]}")
    return said.stdout
