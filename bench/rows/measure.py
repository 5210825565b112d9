"""Check and time one kernel on rows beside its peers."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from bench.measure.comparison import one_line
from bench.rows.accuracy import error, tolerance, units_in_last_place
from bench.rows.cases import OPEN_SIZES, RowsCase
from bench.rows.peers import peer
from bench.rows.tensors import SEED, tensors
from lego_mlir.artifact import Artifact
from lego_mlir.runtime import cuda
from lego_mlir.runtime.cuda.timing import Graph, interleave

_GRAPH_US = 2000.0
"""The least duration of a graph of launches, in microseconds."""

_SET_BYTES, _LEAST_SETS, _MOST_SETS = 1 << 28, 3, 128
"""The bytes that sets of arguments have together, at least: more than every cache holds; and sets:
of one, the cache may keep a part from launch to launch where loads have eviction priorities."""

OURS = "ours"

_Turn = Callable[[bool], AbstractContextManager[Any]]
"""Returns the turn of a process that times, or that only prepares."""


def no_turns(alone: bool) -> AbstractContextManager[Any]:
    """Return the turn of the only process."""
    return nullcontext()


def measure(
    case: RowsCase,
    files: dict[str, Path],
    rounds: int,
    peers: Sequence[str],
    torch: Any,
    turn: _Turn = no_turns,
) -> dict[str, Any]:
    """Return the line of results of a case.

    Args:
        case: the kernel.
        files: artifacts by name; that of `OURS` is what the library chooses.
        rounds: of measurements.
        peers: names of `bench.rows.peers.PEERS`.
        torch: the module.
        turn: returns the turn in which the case is prepared, and that in which it is timed.
    """
    sets = max(_LEAST_SETS, min(_MOST_SETS, _SET_BYTES // case.bytes))
    found = _Contenders(case, torch, torch.cuda.Stream(), sets)
    with torch.cuda.stream(found.stream):
        with turn(False):
            found.fill()
            for name, file in files.items():
                found.add_ours(name, file)
            for name in peers:
                found.add_peer(name)
            torch.cuda.empty_cache()  # other processes prepare while this one waits
        with turn(True):
            times = found.times(rounds)
    return {
        "case": case.name,
        "kernel": case.kernel,
        "dtype": case.dtype,
        "columns": case.columns,
        "bytes": case.bytes,
        "device": torch.cuda.get_device_name(),
        "sets": sets,
        "us": {name: round(statistics.median(each), 3) for name, each in times.items()},
        "rounds": {name: [round(us, 3) for us in each] for name, each in times.items()},
        "wrong": found.wrong,
        "absent": found.absent,
        "units": found.units,
        "errors": found.errors,
    }


class _Contenders:
    """What does the work of a case, checked.

    Attributes:
        stream: of all.
        calls: enqueue the work on the set of a number, by name.
        wrong: what is wrong with kernels of ours, by name.
        absent: why contenders are missing, by name.
        units: the errors of our outputs of 2 bytes an element, in units of their last place.
        errors: the errors of outputs of 4 bytes, relative to the largest: of ours and of PyTorch.
    """

    def __init__(self, case: RowsCase, torch: Any, stream: Any, sets: int) -> None:
        self.stream = stream
        self.calls: dict[str, Callable[[int], Any]] = {}
        self.wrong: dict[str, str] = {}
        self.absent: dict[str, str] = {}
        self.units: dict[str, float] = {}
        self.errors: dict[str, float] = {}
        self._case, self._torch, self._count = case, torch, sets
        self._sets: list[dict[str, Any]] = []

    def fill(self) -> None:
        """Make the arguments."""
        generator = self._torch.Generator("cuda").manual_seed(self._case.columns)
        self._sets = [tensors(self._case, self._torch, generator) for _ in range(self._count)]

    def add_ours(self, name: str, file: Path) -> None:
        """Add a kernel of ours."""
        case, torch, first = self._case, self._torch, self._sets[0]
        loaded = cuda.load(Artifact.load(file))
        is_open = name in OPEN_SIZES  # the arrays tell the sizes
        bound = [
            loaded.bind(*(x if is_open or x is SEED else x.data_ptr() for x in t.values()))
            for t in self._sets
        ]
        for output in case.outputs:
            first[output].view(torch.uint8).fill_(0xCD)
        stream = self.stream  # without this object, which would keep itself and all tensors alive
        self.calls[name] = lambda k: bound[k](stream.cuda_stream)
        self.calls[name](0)
        torch.cuda.synchronize()
        found = error(case, first, torch)
        if not found <= tolerance(case):
            self.wrong[name] = f"error {found:.3g}"
        if name == OURS and case.dtype == "f32":
            self.errors[OURS] = found
        elif name == OURS:
            self.units = units_in_last_place(case, first, torch)

    def add_peer(self, name: str) -> None:
        """Add a peer, or say why it is absent."""
        torch, first = self._torch, self._sets[0]
        try:
            bind = peer(name, self._case, torch)
            calls = [bind(t) for t in self._sets]
            for call in calls:
                call()
            torch.cuda.synchronize()
            if name == "torch" and self.errors:
                outputs = calls[0]()
                outputs = outputs if isinstance(outputs, tuple) else (outputs,)
                results = dict(zip(self._case.outputs, outputs, strict=True))
                self.errors[name] = error(self._case, {**first, **results}, torch)
            self.calls[name] = lambda k: calls[k]()
        except Exception as e:  # a peer's failure is not ours
            self.absent[name] = one_line(e)

    def times(self, rounds: int) -> dict[str, list[float]]:
        """Return the microseconds of a call in each round, by name."""
        graphs: dict[str, Graph] = {}
        for name, call in self.calls.items():
            try:
                graphs[name] = self._graph(call)
            except Exception as e:
                self.absent[name] = one_line(e)
        found = interleave({name: graph.microseconds for name, graph in graphs.items()}, rounds)
        for graph in graphs.values():
            graph.destroy()
        return found

    def _graph(self, call: Callable[[int], Any]) -> Graph:
        stream, sets = self.stream.cuda_stream, self._count
        graph = Graph.capture(stream, call, sets, sets)
        us = max(0.5, graph.microseconds())
        launches = sets * max(1, round(_GRAPH_US / us / sets))
        if launches == sets:
            return graph
        graph.destroy()
        return Graph.capture(stream, call, sets, launches)
