"""The child: checks and times one case after the other, as its parent names them.

Names come in on stdin, a line each; a line of JSON goes out for each. After an error it ends: the
CUDA context may be broken. Whatever libraries print goes to stderr.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import secrets
import signal
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from bench import card
from bench.build import read_manifest
from bench.cases import COPIES
from bench.driver import attribute, synchronize
from bench.memory import POISONS, Data, Verdict
from bench.movement import Permute
from bench.peers import PEERS, Absent, Setup, nvcc
from bench.results import BY_LAUNCH, OURS
from bench.timing import Call, Graph, call_microseconds, rounds
from lego_mlir import runtime
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import cuda, dtypes

MOST_SETS = 4096
CACHES = 4
"""One rotation touches this many times the bytes of the L2 cache, if `MOST_SETS` are enough."""

LAUNCHES = 8
"""Launches a graph at least, so that one gap between graphs weighs little."""

CALLS_US, CALLS = 4000, (8, 400)
"""How long calls back to back take about, and how many they are at least and at most."""


_END_WITH_PARENT = 1
"""Linux's PR_SET_PDEATHSIG: a kernel that hangs does not outlive whoever would have ended it."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the parent asks for.

    Attributes:
        rounds: how many count; 0 does not time at all.
        scratch: a folder for what peers compile.
        numpy: check by NumPy even where PyTorch is there.
    """

    rounds: int
    scratch: Path
    numpy: bool = False


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
                result = {"case": name, "verified": {OURS: False}, "error": _told(e)}
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
    torch = _torch()
    result = {"case": name, **entry, "commit": manifest["commit"], "code": loaded.code}
    result |= _environment(loaded.device, torch)
    with _setup(entry, artifact.arguments[0].dtype, loaded.device, torch, options) as setup:
        data = setup.data
        result |= {"bytes": 2 * data.size, "sets": data.sets}
        result["checked_by"] = "NumPy" if data.torch is None else "PyTorch"
        x, y = artifact.arguments
        pairs = [(data.input(k, x.shape), data.output(k, y.shape)) for k in range(data.sets)]
        bound = [loaded.bind(a.pointer, b.pointer) for a, b in pairs]
        contest = Contest(setup, options.rounds)
        contest.admit(OURS, lambda k: bound[k](setup.stream))
        if contest.verdicts[OURS].right:
            contest.admit(
                BY_LAUNCH,
                lambda k: runtime.launch(artifact, *pairs[k], device="cuda", stream=setup.stream),
                recorded=False,
            )
            for peer in entry["peers"]:
                contest.invite(peer)
            if options.rounds:
                times = contest.times()
                contest.verdicts[OURS] = contest.check(OURS)
                result |= times if contest.verdicts[OURS].right else {}
        return result | contest.outcome()


class Contest:
    """Those who do the same work, from their check to their times."""

    def __init__(self, setup: Setup, count: int) -> None:
        self.setup = setup
        self.rounds = count
        self.calls: dict[str, Call] = {}
        self.graphs: dict[str, Graph] = {}
        self.verdicts: dict[str, Verdict] = {}
        self.absent: dict[str, str] = {}
        self.seeds: list[int] = []

    def invite(self, peer: str) -> None:
        """Let a peer take part, if it is here."""
        try:
            self.admit(peer, PEERS[peer](self.setup))
        except Absent as reason:
            self.absent[peer] = str(reason)
        except Exception as e:  # a peer's failure is not ours; a broken context shows in the end
            self.absent[peer] = f"fails: {_told(e)}"

    def admit(self, name: str, launch: Call, *, recorded: bool = True) -> None:
        """Check a contestant; with `recorded`, by the very graph that is timed later."""
        sets = self.setup.data.sets
        for k in range(min(sets, 3)):  # whatever is loaded or compiled at first use
            launch(k)
        synchronize()
        if recorded:
            count = sets * -(-LAUNCHES // sets)
            graph = Graph.record(int(self.setup.stream.handle), launch, sets, count)
            self.graphs[name] = graph
        self.calls[name] = launch
        self.verdicts[name] = self.check(name)

    def check(self, name: str) -> Verdict:
        """Run a contestant on fresh data and poisoned outputs, all sets."""
        data = self.setup.data
        byte = POISONS[len(self.seeds) % len(POISONS)]
        self.seeds.append(secrets.randbits(32))
        data.draw(self.seeds[-1])
        data.poison(byte)
        synchronize()
        if name in self.graphs:
            self.graphs[name].replay()
        else:
            for k in range(data.sets):
                self.calls[name](k)
        synchronize()
        return data.check(byte, copied=name in COPIES)

    def times(self) -> dict[str, Any]:
        """Both columns, of those who are right."""
        right = [name for name in self.calls if self.verdicts[name].right]
        graphs = {name: self.graphs[name] for name in right if name in self.graphs}
        bus = str(self.setup.device.pci_bus_id)
        before = card.state(bus)
        kernel = rounds({name: g.microseconds for name, g in graphs.items()}, self.rounds)
        least, most = CALLS
        count = max(least, min(most, int(CALLS_US / statistics.median(kernel[OURS]))))
        sets = self.setup.data.sets
        calls = rounds(
            {name: partial(call_microseconds, self.calls[name], sets, count) for name in right},
            self.rounds,
        )
        after = card.state(bus)
        return {"us": kernel, "call_us": calls, "card": {"before": before, "after": after}}

    def outcome(self) -> dict[str, Any]:
        """Who was right, who was not, and who was not there."""
        return {
            "verified": {name: verdict.right for name, verdict in self.verdicts.items()},
            "verdicts": {
                name: asdict(verdict)
                for name, verdict in self.verdicts.items()
                if name == OURS or not verdict.right
            },
            "seeds": self.seeds,
            "absent": self.absent,
        }


@contextmanager
def _setup(
    entry: dict[str, Any], dtype: str, device: Any, torch: ModuleType | None, options: Options
) -> Iterator[Setup]:
    """Memory and a stream for a case, freed at the end."""
    past = CACHES * attribute("L2_CACHE_SIZE", device.device_id)
    looks = None if options.numpy else torch
    data = Data.allocate(
        Permute.from_json(entry["reference"]), dtypes.numpy_dtype(dtype), past, MOST_SETS, looks
    )
    stream = device.create_stream()
    if torch is not None:
        torch.cuda.set_stream(torch.cuda.ExternalStream(int(stream.handle)))
    yield Setup(data, dtype, device, stream, torch, options.scratch)
    if torch is not None:  # after an error the process ends, and nothing is worth freeing
        torch.cuda.set_stream(torch.cuda.default_stream())
        torch.cuda.empty_cache()
    data.free()


def _torch() -> ModuleType | None:
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


def _told(error: Exception) -> str:
    """An error in one line."""
    if isinstance(error, LegoError):
        return error.message
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:1000]
