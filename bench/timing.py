"""Time, in interleaved rounds: of kernels by CUDA graphs, and of calls as a program makes them.

In a round everybody takes a turn, and each round another one begins: what changes slowly, such as
the card's clock, meets all alike, and the ratio of two times of one round is free of it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from bench.driver import call, driver, synchronize

WARM_UP = 2
"""Rounds that come first and do not count."""

Call = Callable[[int], None]
"""Enqueues one launch on a set of data; does not wait."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A CUDA graph of `launches` launches, on a stream given by its handle."""

    stream: int
    exec: Any
    launches: int

    @staticmethod
    def record(stream: int, launch: Call, sets: int, launches: int) -> Graph:
        """Record launches that go through the sets of data in turn."""
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
        recorded = call(cuda.cuGraphInstantiate, graph, 0)
        call(cuda.cuGraphDestroy, graph)
        return Graph(stream, recorded, launches)

    def replay(self) -> None:
        """Enqueue all launches."""
        call(driver().cuGraphLaunch, self.exec, self.stream)

    def microseconds(self) -> float:
        """Time of one launch, by events around a replay.

        Another replay goes first: the device is busy with it while the host enqueues, so that what
        lies between the events is kernels alone.
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
    """Time of one call among many back to back, launch overhead included, by the host's clock."""
    synchronize()
    start = perf_counter()
    for k in range(calls):
        launch(k % sets)
    synchronize()
    return (perf_counter() - start) * 1e6 / calls


def rounds(measures: Mapping[str, Callable[[], float]], count: int) -> dict[str, list[float]]:
    """What each of the measures gave, round by round."""
    names = list(measures)
    times: dict[str, list[float]] = {name: [] for name in names}
    with _no_collection():
        for turn in range(WARM_UP + count):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                time = measures[name]()
                if turn >= WARM_UP:
                    times[name].append(round(time, 4))
    return times


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without Python's garbage collector, whose pauses would count as somebody's."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
