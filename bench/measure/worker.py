"""The worker process of `bench run`: checks and times the cases whose names its parent sends.

Names arrive on stdin, one per line; for each, a line of JSON is written to stdout. After an error
the worker ends, because the CUDA context may be broken. What libraries print goes to stderr.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.build import read_manifest
from bench.gemm.operands import GemmOperands
from bench.gemm.references import gemm_reference_of
from bench.gemm.search import add_candidates, time_candidates
from bench.measure import gpu_state
from bench.measure.comparison import Comparison, one_line
from bench.measure.driver import attribute
from bench.peers import Setup, nvcc
from bench.permute.operands import PermuteOperands
from bench.permute.reference import PermuteReference
from bench.report.results import BY_LAUNCH, OURS
from lego_mlir import runtime
from lego_mlir.runtime import cuda, dtypes

CACHES = 4
"""All sets together touch this many times the bytes of the L2 cache, if enough sets are allowed."""

_PR_SET_PDEATHSIG = 1
"""Linux's option by which a hanging worker does not outlive the parent that would have ended it."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The options that the parent passes on.

    Attributes:
        rounds: number of counted rounds; 0 does not time at all.
        scratch: a folder for what peers compile.
        check_by_numpy: check with NumPy even if PyTorch is installed.
        alone: without peers and without PyTorch, so that only our kernels are launched.
        max_sets: maximum number of sets of data.
    """

    rounds: int
    scratch: Path
    check_by_numpy: bool
    alone: bool
    max_sets: int


def serve(folder: Path, options: WorkerOptions) -> int:
    """Measure the cases named on stdin until it ends or a case fails; return 1 after a failure."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            name = line.strip()
            try:
                result = measure_case(folder, name, options)
            except Exception as e:  # whatever it is, the parent records it and goes on
                result = {"case": name, "verified": {OURS: False}, "error": one_line(e)}
            print(json.dumps(result), file=answers, flush=True)
            if "error" in result:
                return 1
    return 0


def measure_case(folder: Path, name: str, options: WorkerOptions) -> dict[str, Any]:
    """Check and time a case of a bundle; return its result, with times of correct kernels only."""
    manifest = read_manifest(folder)
    entry = manifest["cases"][name]
    artifact = runtime.Artifact.load(folder / f"{name}.lego")
    loaded = cuda.load(artifact)
    torch = None if options.alone else pytorch()
    result = {"case": name, **entry, "commit": manifest["commit"], "code": loaded.code}
    result |= _environment(loaded.device, torch)
    with set_up(entry, artifact.arguments[0].dtype, loaded.device, torch, options) as setup:
        data = setup.data
        result |= {"bytes": data.traffic, "sets": data.sets}
        result["checked_by"] = "NumPy" if data.torch is None else "PyTorch"
        result["resources"] = gpu_state.resources(loaded)
        shapes = [argument.shape for argument in artifact.arguments]
        arrays = [data.arrays(k, shapes) for k in range(data.sets)]
        bound = [loaded.bind(*(x.pointer for x in group)) for group in arrays]
        comparison = Comparison(setup, options.rounds)
        comparison.add(OURS, lambda k: bound[k](setup.stream))
        if comparison.verdicts[OURS].is_correct:
            comparison.add(
                BY_LAUNCH,
                lambda k: runtime.launch(artifact, *arrays[k], stream=setup.stream),
                in_graph=False,
            )
            for peer in () if options.alone else entry["peers"]:
                comparison.add_peer(peer)
            candidates = entry.get("candidates", ())
            add_candidates(comparison, folder, candidates)
            if options.rounds:
                bus = str(loaded.device.pci_bus_id)
                before = gpu_state.state(bus)
                times = (
                    time_candidates(comparison, candidates) if candidates else comparison.times()
                )
                times["card"] = {"before": before, "after": gpu_state.state(bus)}
                comparison.verdicts[OURS] = comparison.check(OURS)
                result |= times if comparison.verdicts[OURS].is_correct else {}
        return result | comparison.outcome()


@contextmanager
def set_up(
    entry: dict[str, Any], dtype: str, device: Any, torch: ModuleType | None, options: WorkerOptions
) -> Iterator[Setup]:
    """Provide device memory and a stream for a case, and free them at the end."""
    cache_bytes = CACHES * attribute("L2_CACHE_SIZE", device.device_id)
    checker = None if options.check_by_numpy else torch
    data: PermuteOperands | GemmOperands
    gemm = gemm_reference_of(entry["reference"])
    if gemm is not None:
        data = GemmOperands.allocate(gemm, cache_bytes, options.max_sets, checker)
    else:
        reference = PermuteReference.from_json(entry["reference"])
        kind = dtypes.numpy_dtype(dtype)
        data = PermuteOperands.allocate(reference, kind, cache_bytes, options.max_sets, checker)
    stream = device.create_stream()
    if torch is not None:
        torch.cuda.set_stream(torch.cuda.ExternalStream(int(stream.handle)))
    yield Setup(data, dtype, device, stream, torch, options.scratch)
    if torch is not None:  # after an error the process ends, and nothing needs to be freed
        torch.cuda.set_stream(torch.cuda.default_stream())
        torch.cuda.empty_cache()
    data.free()


def pytorch() -> ModuleType | None:
    """Return PyTorch if it is installed and sees the GPU."""
    try:
        torch = import_module("torch")
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def _environment(device: Any, torch: ModuleType | None) -> dict[str, Any]:
    """Return the device's name and the versions of Python, nvcc and the packages involved."""
    packages = ("numpy", "cuda-core", "cuda-bindings", "torch", "triton")
    versions = {"python": platform.python_version(), "nvcc": nvcc.version()}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    if torch is not None:
        versions["torch"] = str(torch.__version__)
    return {"device": str(device.name), "versions": versions}
