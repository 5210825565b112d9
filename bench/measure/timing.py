"""Timing in interleaved rounds: of kernels by CUDA graphs, and of calls as a program makes them.

Each round times every contender once and starts with another one. What changes slowly, such as the
GPU's clock, affects all of them alike and cancels in the ratio of two times of a round.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from bench.measure.driver import call, driver, synchronize

WARM_UP_ROUNDS = 2
"""Rounds before the counted ones."""

Call = Callable[[int], None]
"""A function that enqueues one launch on a set of data, without waiting for it."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A CUDA graph of `launches` launches, and the handle of its stream."""

    stream: int
    exec: Any
    launches: int

    @staticmethod
    def capture(stream: int, launch: Call, sets: int, launches: int) -> Graph:
        """Capture launches that rotate through the sets of data."""
        cuda = driver()
        call(
            cuda.cuStreamBeginCapture,
            stream,
            cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED,
        )
        try:
            for k in range(launches):
                launch(k % sets)
        finally:
            graph = call(cuda.cuStreamEndCapture, stream)
        executable = call(cuda.cuGraphInstantiate, graph, 0)
        call(cuda.cuGraphDestroy, graph)
        return Graph(stream, executable, launches)

    def replay(self) -> None:
        """Enqueue all launches."""
        call(driver().cuGraphLaunch, self.exec, self.stream)

    def microseconds(self) -> float:
        """Return the time of one launch, measured by events around a replay.

        Another replay runs first. It keeps the device busy while the host enqueues, so that only
        kernels run between the events.
        """
        cuda = driver()
        start, end = (call(cuda.cuEventCreate, 0) for _ in range(2))
        self.replay()
        call(cuda.cuEventRecord, start, self.stream)
        self.replay()
        call(cuda.cuEventRecord, end, self.stream)
        call(cuda.cuEventSynchronize, end)
        milliseconds = call(cuda.cuEventElapsedTime, start, end)
        for event in (start, end):
            call(cuda.cuEventDestroy, event)
        return float(milliseconds) * 1e3 / self.launches

    def destroy(self) -> None:
        """Free the graph."""
        call(driver().cuGraphExecDestroy, self.exec)


def call_microseconds(launch: Call, sets: int, calls: int) -> float:
    """Return the host's time of one of many back-to-back calls, launch overhead included."""
    synchronize()
    start = perf_counter()
    for k in range(calls):
        launch(k % sets)
    synchronize()
    return (perf_counter() - start) * 1e6 / calls


def interleave(measures: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Call every measure once in each round; return the values of the counted rounds."""
    names = list(measures)
    times: dict[str, list[float]] = {name: [] for name in names}
    with _no_collection():
        for k in range(WARM_UP_ROUNDS + rounds):
            first = k % len(names)
            for name in names[first:] + names[:first]:
                time = measures[name]()
                if k >= WARM_UP_ROUNDS:
                    times[name].append(round(time, 4))
    return times


@contextmanager
def _no_collection() -> Iterator[None]:
    """Turn off Python's garbage collector, whose pauses would count in a contender's time."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
