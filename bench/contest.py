"""Contestants that do the same work in one process: checked, then timed in interleaved rounds."""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import Any

from bench.cases import COPIES
from bench.driver import synchronize
from bench.gemm.operands import Closeness
from bench.memory import POISONS, Verdict
from bench.peers import PEERS, Absent, Setup
from bench.peers.grouped import Grouped
from bench.results import OURS
from bench.timing import Call, Graph, call_microseconds, rounds
from lego_mlir.diagnostics import LegoError

CALLS_US, MOST_CALLS = 4000, 400
"""How long calls back to back take about, and how many they are at most; as many as a graph has
launches at least."""


class Contest:
    """Those who do the same work, from their check to their times."""

    def __init__(self, setup: Setup, count: int) -> None:
        self.setup = setup
        self.rounds = count
        self.calls: dict[str, Call] = {}
        self.graphs: dict[str, Graph] = {}
        self.verdicts: dict[str, Verdict | Closeness] = {}
        self.absent: dict[str, str] = {}
        self.seeds: list[int] = []

    def invite(self, peer: str) -> None:
        """Let a peer take part, if it is here."""
        try:
            self.admit(peer, PEERS[peer](self.setup))
        except Absent as reason:
            self.absent[peer] = str(reason)
        except Exception as e:  # a peer's failure is not ours; a broken context shows in the end
            self.absent[peer] = f"fails: {told(e)}"

    def admit(self, name: str, launch: Call, *, recorded: bool = True) -> None:
        """Check a contestant; with `recorded`, by the very graph that is timed later."""
        sets = self.setup.data.sets
        for k in range(min(sets, 3)):  # whatever is loaded or compiled at first use
            launch(k)
        synchronize()
        if recorded:
            count = sets * -(-self.setup.data.launches // sets)
            graph = Graph.record(int(self.setup.stream.handle), launch, sets, count)
            self.graphs[name] = graph
        self.calls[name] = launch
        self.verdicts[name] = self.check(name)

    def check(self, name: str) -> Verdict | Closeness:
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
        if isinstance(self.calls[name], Grouped):
            self.calls[name].deliver()
            synchronize()
        verdict: Verdict | Closeness = data.check(byte, copied=name in COPIES)
        return verdict

    def times(self) -> dict[str, Any]:
        """Both columns, of those who are right."""
        right = [name for name in self.calls if self.verdicts[name].right]
        graphs = [name for name in right if name in self.graphs]
        kernel = self.kernel_times(graphs, self.rounds)
        wanted = int(CALLS_US / statistics.median(kernel[OURS]))
        count = max(self.setup.data.launches, min(MOST_CALLS, wanted))
        sets = self.setup.data.sets
        calls = rounds(
            {name: partial(call_microseconds, self.calls[name], sets, count) for name in right},
            self.rounds,
        )
        return {"us": kernel, "call_us": calls}

    def kernel_times(self, names: Iterable[str], count: int) -> dict[str, list[float]]:
        """Microseconds of the graphs of these, in interleaved rounds."""
        return rounds({name: self.graphs[name].microseconds for name in names}, count)

    def outcome(self) -> dict[str, Any]:
        """Who was right, who was not, and who was not there."""
        return {
            "verified": {name: verdict.right for name, verdict in self.verdicts.items()},
            "verdicts": {name: asdict(verdict) for name, verdict in self.verdicts.items()},
            "seeds": self.seeds,
            "absent": self.absent,
        }


def told(error: Exception) -> str:
    """An error in one line."""
    if isinstance(error, LegoError):
        return error.message
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:1000]
