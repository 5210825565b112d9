"""The worker process that checks and times the candidates of one GEMM after another.

As `bench.measure.worker`, names arrive on stdin and lines of JSON go to stdout. It is less
thorough, for thousands of kernels: each is checked on fresh data over one poisoned output, and
timed by CUDA graphs in interleaved rounds with cuBLAS.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import signal
import statistics
import sys
from pathlib import Path
from typing import Any

from bench.gemm.cases import CUBLAS
from bench.gemm.operands import GemmOperands
from bench.gemm.references import GemmReference
from bench.measure.comparison import one_line
from bench.measure.driver import attribute, synchronize
from bench.measure.timing import Call, Graph, interleave
from bench.measure.worker import CACHES, pytorch
from bench.peers import PEERS, Absent, Setup
from bench.peers.reads import READ
from bench.sample.build import read_manifest
from lego_mlir.artifact import Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.runtime import cuda

_PR_SET_PDEATHSIG = 1

MAX_SETS = 256

FEW_ROWS = 32
"""Rows or columns of C up to which a GEMM has few."""

_LARGE_BYTES = 100e6
"""Bytes of A and B from which such a GEMM is timed beside a kernel that reads them."""

_GRAPH_US = 300.0
"""Least duration of a graph of launches, in microseconds, so that events resolve it."""

_GAP_CYCLES = 15000
"""Clocks that the kernel between two launches spins when launches are timed with gaps."""


def serve(folder: Path, rounds: int, *, gaps: bool) -> int:
    """Measure the GEMMs named on stdin until it ends or one fails; return 1 after a failure."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    manifest = read_manifest(folder)
    torch = pytorch()
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            name = line.strip()
            try:
                result = _measure(folder, name, manifest["cases"][name], rounds, gaps, torch)
            except Exception as e:  # whatever it is, the parent records it and goes on
                result = {"case": name, "error": one_line(e)}
            print(json.dumps(result), file=answers, flush=True)
            if "error" in result:
                return 1
    return 0


def _measure(
    folder: Path, name: str, case: dict[str, Any], rounds: int, gaps: bool, torch: Any
) -> dict[str, Any]:
    reference = GemmReference.from_json(case["reference"])
    first = cuda.load(Artifact.load(folder / case["candidates"][0]["file"]))
    cache_bytes = CACHES * attribute("L2_CACHE_SIZE", first.device.device_id)
    data = GemmOperands.allocate(reference, cache_bytes, MAX_SETS, torch)
    stream = first.device.create_stream()
    torch.cuda.set_stream(torch.cuda.ExternalStream(int(stream.handle)))
    try:
        setup = Setup(data, reference.dtype, first.device, stream, torch, folder)
        data.fill_inputs(secrets.randbits(32))
        checker = _Checker(data, torch)
        calls: dict[str, Call] = {}
        absent: dict[str, str] = {}
        reads = [READ] if is_limited_by_memory(reference) else []
        for peer in (CUBLAS, *reads):
            try:
                calls[peer] = PEERS[peer](setup)
            except Absent as reason:
                absent[peer] = str(reason)
        for candidate in case["candidates"]:
            try:
                calls[candidate["name"]] = _bound(folder / candidate["file"], data, stream)
            except LegoError as e:
                absent[candidate["name"]] = e.message
        graphs, wrong = {}, {}
        for which, call in calls.items():
            try:
                call(0)
                synchronize()
            except RuntimeError as e:
                if which not in PEERS:
                    raise
                absent[which] = one_line(e)
                continue
            graphs[which] = _graph(call, data.sets, stream)
            error = "" if which == READ else checker.check(graphs[which])
            if error:
                wrong[which] = error
                if which != CUBLAS:  # a peer that rounds its partial sums is timed nevertheless
                    graphs.pop(which).destroy()
        us = interleave({which: g.microseconds for which, g in graphs.items()}, rounds)
        result = {
            **case,
            "case": name,
            "device": str(first.device.name),
            "sets": data.sets,
            "us": {which: round(statistics.median(times), 4) for which, times in us.items()},
            "rounds": us,
            "wrong": wrong,
            "absent": absent,
        }
        if gaps:
            chosen = {w: calls[w] for w in (CUBLAS, "choice") if w in graphs}
            result["gap_rounds"] = _with_gaps(chosen, data.sets, stream, rounds, torch)
        for graph in graphs.values():
            graph.destroy()
        return result
    finally:
        torch.cuda.set_stream(torch.cuda.default_stream())
        torch.cuda.empty_cache()
        data.free()


def is_limited_by_memory(reference: GemmReference) -> bool:
    """Return whether a GEMM takes as long as its matrices are read: few rows or columns of C."""
    size = ELEMENT_BYTES[reference.dtype]
    read = (reference.m + reference.n) * reference.k * size
    return min(reference.m, reference.n) <= FEW_ROWS and read >= _LARGE_BYTES


def _bound(file: Path, data: GemmOperands, stream: Any) -> Call:
    artifact = Artifact.load(file)
    loaded = cuda.load(artifact)
    shapes = [argument.shape for argument in artifact.arguments]
    calls = [loaded.bind(*(x.pointer for x in data.arrays(k, shapes))) for k in range(data.sets)]
    return lambda k: calls[k](stream)


def _graph(call: Call, sets: int, stream: Any) -> Graph:
    """Return a graph that is long enough to be timed: whole rotations through the sets."""
    graph = Graph.capture(int(stream.handle), call, sets, sets)
    us = max(0.5, graph.microseconds())
    repeats = max(1, round(_GRAPH_US / us / sets))
    if repeats == 1 and sets * us >= 2000 * 8:  # long launches: a few of them are enough
        launches = max(2, min(sets, round(8000 / us)))
    else:
        launches = sets * repeats
    if launches == sets:
        return graph
    graph.destroy()
    return Graph.capture(int(stream.handle), call, sets, launches)


def _with_gaps(
    calls: dict[str, Call], sets: int, stream: Any, rounds: int, torch: Any
) -> dict[str, list[float]]:
    """Return times of launches with another kernel before each, without that kernel's time."""
    graphs: dict[str, Graph] = {}

    def gap(k: int) -> None:
        torch.cuda._sleep(_GAP_CYCLES)

    def with_gap(call: Call) -> Call:
        def both(k: int) -> None:
            gap(k)
            call(k)

        return both

    count = min(sets, 32)
    graphs["gap"] = Graph.capture(int(stream.handle), gap, count, count)
    for name, call in calls.items():
        graphs[name] = Graph.capture(int(stream.handle), with_gap(call), count, count)
    times = interleave({name: g.microseconds for name, g in graphs.items()}, rounds)
    for graph in graphs.values():
        graph.destroy()
    gaps = times.pop("gap")
    return {
        name: [round(t - g, 4) for t, g in zip(found, gaps, strict=True)]
        for name, found in times.items()
    }


class _Checker:
    """Compares the first set's output with the product in f64, computed once."""

    def __init__(self, data: GemmOperands, torch: Any) -> None:
        self.data, self.torch = data, torch
        a, b, _ = self._matrices()
        self.expected = a.double() @ b.double()
        relative, absolute = data.reference.tolerance
        self.allowed = self.expected.abs() * relative + absolute
        if data.reference.dtype.startswith("f8"):
            # Short accumulators err in proportion to their largest terms, not to their mean.
            steps, magnitude = -(-data.reference.k // 32), a.double().abs() @ b.double().abs()
            self.allowed += magnitude * 2.0**-13 * steps**0.5
        self.count = 0

    def check(self, graph: Graph) -> str:
        """Run a graph over poisoned outputs; return what is wrong, or nothing."""
        self.count += 1
        self.data.poison((0xCD, 0x32)[self.count % 2])
        synchronize()
        graph.replay()
        synchronize()
        *_, output = self._matrices()
        error = (output.double() - self.expected).abs()
        wrong = int((~(error <= self.allowed)).sum())
        return f"{wrong} elements differ" if wrong else ""

    def _matrices(self) -> tuple[Any, Any, Any]:
        data = self.data
        flat = [data._elements(data._bytes(x)[:1], x)[0] for x in (data.a, data.b, data.c)]
        return next(iter(data.reference.gemms(*flat)))
