"""The child: checks and times one case after the other, as its parent names them.

Names come in on stdin, a line each; a line of JSON goes out for each. After an error it ends: the
CUDA context may be broken. Whatever libraries print goes to stderr.
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

from bench import card
from bench.build import read_manifest
from bench.contest import Contest, told
from bench.driver import attribute
from bench.gemm.operands import Operands
from bench.gemm.references import product_of
from bench.gemm.search import admit, search
from bench.memory import Data
from bench.movement import Permute
from bench.peers import Setup, nvcc
from bench.results import BY_LAUNCH, OURS
from lego_mlir import runtime
from lego_mlir.runtime import cuda, dtypes

CACHES = 4
"""One rotation touches this many times the bytes of the L2 cache, if there may be enough sets."""

_END_WITH_PARENT = 1
"""Linux's PR_SET_PDEATHSIG: a kernel that hangs does not outlive whoever would have ended it."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the parent asks for.

    Attributes:
        rounds: how many count; 0 does not time at all.
        scratch: a folder for what peers compile.
        numpy: check by NumPy even where PyTorch is there.
        alone: without peers, and without PyTorch: nothing is launched but kernels of ours.
        sets: of data, at most.
    """

    rounds: int
    scratch: Path
    numpy: bool
    alone: bool
    sets: int


def serve(folder: Path, options: Options) -> int:
    """Answer names until stdin ends or a case fails."""
    ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            name = line.strip()
            try:
                result = measured(folder, name, options)
            except Exception as e:  # whatever it is, the parent records it and goes on
                result = {"case": name, "verified": {OURS: False}, "error": told(e)}
            print(json.dumps(result), file=answers, flush=True)
            if "error" in result:
                return 1
    return 0


def measured(folder: Path, name: str, options: Options) -> dict[str, Any]:
    """All that is to be known of a case; times only of what was found right."""
    manifest = read_manifest(folder)
    entry = manifest["cases"][name]
    artifact = runtime.Artifact.load(folder / f"{name}.lego")
    loaded = cuda.load(artifact)
    torch = None if options.alone else pytorch()
    result = {"case": name, **entry, "commit": manifest["commit"], "code": loaded.code}
    result |= _environment(loaded.device, torch)
    with prepared(entry, artifact.arguments[0].dtype, loaded.device, torch, options) as setup:
        data = setup.data
        result |= {"bytes": data.traffic, "sets": data.sets}
        result["checked_by"] = "NumPy" if data.torch is None else "PyTorch"
        result["resources"] = card.resources(loaded)
        shapes = [argument.shape for argument in artifact.arguments]
        arrays = [data.arrays(k, shapes) for k in range(data.sets)]
        bound = [loaded.bind(*(x.pointer for x in group)) for group in arrays]
        contest = Contest(setup, options.rounds)
        contest.admit(OURS, lambda k: bound[k](setup.stream))
        if contest.verdicts[OURS].right:
            contest.admit(
                BY_LAUNCH,
                lambda k: runtime.launch(artifact, *arrays[k], device="cuda", stream=setup.stream),
                recorded=False,
            )
            for peer in () if options.alone else entry["peers"]:
                contest.invite(peer)
            candidates = entry.get("candidates", ())
            admit(contest, folder, candidates)
            if options.rounds:
                bus = str(loaded.device.pci_bus_id)
                before = card.state(bus)
                times = search(contest, candidates) if candidates else contest.times()
                times["card"] = {"before": before, "after": card.state(bus)}
                contest.verdicts[OURS] = contest.check(OURS)
                result |= times if contest.verdicts[OURS].right else {}
        return result | contest.outcome()


@contextmanager
def prepared(
    entry: dict[str, Any], dtype: str, device: Any, torch: ModuleType | None, options: Options
) -> Iterator[Setup]:
    """Memory and a stream for a case, freed at the end."""
    past = CACHES * attribute("L2_CACHE_SIZE", device.device_id)
    looks = None if options.numpy else torch
    data: Data | Operands
    product = product_of(entry["reference"])
    if product is not None:
        data = Operands.allocate(product, past, options.sets, looks)
    else:
        move = Permute.from_json(entry["reference"])
        data = Data.allocate(move, dtypes.numpy_dtype(dtype), past, options.sets, looks)
    stream = device.create_stream()
    if torch is not None:
        torch.cuda.set_stream(torch.cuda.ExternalStream(int(stream.handle)))
    yield Setup(data, dtype, device, stream, torch, options.scratch)
    if torch is not None:  # after an error the process ends, and nothing is worth freeing
        torch.cuda.set_stream(torch.cuda.default_stream())
        torch.cuda.empty_cache()
    data.free()


def pytorch() -> ModuleType | None:
    """PyTorch, if it is here and sees the GPU."""
    try:
        torch = import_module("torch")
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def _environment(device: Any, torch: ModuleType | None) -> dict[str, Any]:
    """The machine and the versions of all that takes part."""
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
