"""Contenders that do the same work in one process: checked, then timed in interleaved rounds."""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import Any

from bench.case import COPIES
from bench.measure.device_memory import POISONS, Verdict
from bench.measure.driver import synchronize
from bench.measure.timing import Call, Graph, call_microseconds, interleave
from bench.peers import PEERS, Absent, Setup
from bench.peers.grouped import GroupedMm
from bench.report.results import OURS
from lego_mlir.diagnostics import LegoError

CALLS_US, MAX_CALLS = 4000, 400
"""Approximate duration of back-to-back calls, and their maximum number.

There are at least as many calls as a graph has launches.
"""


class Comparison:
    """The contenders of one case, their verdicts and their times."""

    def __init__(self, setup: Setup, rounds: int) -> None:
        self.setup = setup
        self.rounds = rounds
        self.calls: dict[str, Call] = {}
        self.graphs: dict[str, Graph] = {}
        self.verdicts: dict[str, Verdict] = {}
        self.absent: dict[str, str] = {}
        self.seeds: list[int] = []

    def add_peer(self, peer: str) -> None:
        """Add a peer, or record why it is absent."""
        try:
            self.add(peer, PEERS[peer](self.setup))
        except Absent as reason:
            self.absent[peer] = str(reason)
        except Exception as e:  # a peer's failure is not ours; a broken context shows in the end
            self.absent[peer] = f"fails: {one_line(e)}"

    def add(self, name: str, launch: Call, *, in_graph: bool = True) -> None:
        """Add a contender and check it; with `in_graph`, by the very graph that is timed later."""
        sets = self.setup.data.sets
        for k in range(min(sets, 3)):  # what is loaded or compiled on first use
            launch(k)
        synchronize()
        if in_graph:
            count = sets * -(-self.setup.data.min_launches // sets)
            graph = Graph.capture(int(self.setup.stream.handle), launch, sets, count)
            self.graphs[name] = graph
        self.calls[name] = launch
        self.verdicts[name] = self.check(name)

    def check(self, name: str) -> Verdict:
        """Run a contender on new data and poisoned outputs, and check all sets."""
        data = self.setup.data
        byte = POISONS[len(self.seeds) % len(POISONS)]
        self.seeds.append(secrets.randbits(32))
        data.fill_inputs(self.seeds[-1])
        data.poison(byte)
        synchronize()
        if name in self.graphs:
            self.graphs[name].replay()
        else:
            for k in range(data.sets):
                self.calls[name](k)
        synchronize()
        call = self.calls[name]
        if isinstance(call, GroupedMm):
            call.copy_outputs()
            synchronize()
        verdict: Verdict = data.check(byte, copied=name in COPIES)
        return verdict

    def times(self) -> dict[str, Any]:
        """Time the correct contenders: `us`, their kernels, and `call_us`, with launch overhead."""
        correct = [name for name in self.calls if self.verdicts[name].is_correct]
        kernel = self.kernel_times([x for x in correct if x in self.graphs], self.rounds)
        calls = int(CALLS_US / statistics.median(kernel[OURS]))
        count = max(self.setup.data.min_launches, min(MAX_CALLS, calls))
        sets = self.setup.data.sets
        call_us = interleave(
            {name: partial(call_microseconds, self.calls[name], sets, count) for name in correct},
            self.rounds,
        )
        return {"us": kernel, "call_us": call_us}

    def kernel_times(self, names: Iterable[str], rounds: int) -> dict[str, list[float]]:
        """Return the microseconds of contenders' graphs in interleaved rounds."""
        return interleave({name: self.graphs[name].microseconds for name in names}, rounds)

    def outcome(self) -> dict[str, Any]:
        """Return the verdicts, the seeds of the checks, and the reasons of absent peers."""
        return {
            "verified": {name: verdict.is_correct for name, verdict in self.verdicts.items()},
            "verdicts": {name: asdict(verdict) for name, verdict in self.verdicts.items()},
            "seeds": self.seeds,
            "absent": self.absent,
        }


def one_line(error: Exception) -> str:
    """Return an error's message in one line."""
    if isinstance(error, LegoError):
        return error.message
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:1000]
