"""Hardware counters of kernels of ours and of their peers, by Nsight Compute.

    python -m bench profile DIR --only gemm_f16_4096_nn -o FILE.csv

runs `ncu` on a child that launches each contestant of each case a few times, of which the last is
profiled: its counters go to the file, its waiting warps, sampled by instruction, to `FILE.pc.csv`.
The clocks are left as they are. See `bench.counters` for what is made of the file.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import one
from bench.build import chosen, read_manifest
from bench.counters import METRICS
from bench.driver import call, driver, synchronize
from bench.peers import PEERS, Absent
from lego_mlir import runtime
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import cuda

_WARM_UP = 20
"""Launches before the one that is profiled: caches and clocks are then as at work."""


def run(folder: Path, only: Sequence[str], output: Path) -> int:
    """Profile the chosen cases of a bundle; always 0 failures.

    Args:
        folder: the bundle.
        only: words that the names of the cases contain; all cases if there are none.
        output: the file of counters, one line a kernel.

    Raises:
        LegoError: there is no `ncu`, it fails, or the bundle cannot be read.
    """
    names = chosen(list(read_manifest(folder)["cases"]), only)
    child = [sys.executable, "-m", "bench", "launch", str(folder), *names]
    common = ["--clock-control", "none", "--profile-from-start", "off", "--target-processes", "all"]
    as_text = ["--csv", "--print-units", "base"]
    known = _ncu("--query-metrics", "--chip", "gh100").split()
    wanted = ",".join(
        name for name in METRICS if name.startswith("launch__") or name.partition(".")[0] in known
    )
    with tempfile.TemporaryDirectory() as scratch:
        report = str(Path(scratch) / "counters.ncu-rep")
        _ncu(*common, "--metrics", wanted, "-o", report, *child)
        output.write_text(_ncu("--import", report, *as_text, "--page", "raw"))
        report = str(Path(scratch) / "samples.ncu-rep")
        _ncu(*common, "--section", "SourceCounters", "-o", report, *child)
        samples = _ncu("--import", report, *as_text, "--page", "source")
        output.with_suffix(".pc.csv").write_text(samples)
    print(f"{len(names)} cases are in {output}")
    return 0


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
