"""Timing of launches in interleaved rounds, by CUDA graphs.

Each round times every contender once and starts with another one. What changes slowly, such as the
GPU's clock, affects all of them alike and cancels in the ratio of two times of a round.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

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
        from cuda.bindings import driver

        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        driver_call(driver.cuStreamBeginCapture, stream, mode)
        try:
            for k in range(launches):
                launch(k % sets)
        finally:
            graph = driver_call(driver.cuStreamEndCapture, stream)
        executable = driver_call(driver.cuGraphInstantiate, graph, 0)
        driver_call(driver.cuGraphDestroy, graph)
        return Graph(stream, executable, launches)

    def replay(self) -> None:
        """Enqueue all launches."""
        from cuda.bindings import driver

        driver_call(driver.cuGraphLaunch, self.exec, self.stream)

    def microseconds(self) -> float:
        """Return the time of one launch, measured by events around a replay.

        Another replay runs first. It keeps the device busy while the host enqueues, so that only
        kernels run between the events.
        """
        from cuda.bindings import driver

        start, end = (driver_call(driver.cuEventCreate, 0) for _ in range(2))
        self.replay()
        driver_call(driver.cuEventRecord, start, self.stream)
        self.replay()
        driver_call(driver.cuEventRecord, end, self.stream)
        driver_call(driver.cuEventSynchronize, end)
        milliseconds = driver_call(driver.cuEventElapsedTime, start, end)
        for event in (start, end):
            driver_call(driver.cuEventDestroy, event)
        return float(milliseconds) * 1e3 / self.launches

    def destroy(self) -> None:
        """Free the graph."""
        from cuda.bindings import driver

        driver_call(driver.cuGraphExecDestroy, self.exec)


def driver_call(function: Callable[..., tuple[Any, ...]], *arguments: Any) -> Any:
    """Call a driver function and return its value without the status.

    Raises:
        RuntimeError: the status is an error; the message names the function and the status.
    """
    status, *values = function(*arguments)
    if int(status):
        name = getattr(function, "__name__", "the driver")
        raise RuntimeError(f"{name}: {getattr(status, 'name', status)}")
    return values[0] if values else None


def interleave(measures: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Call every measure once in each round; return the values of the counted rounds.

    Each round has an order of its own: what draws much power slows what comes next.
    """
    names = list(measures)
    times: dict[str, list[float]] = {name: [] for name in names}
    orders = Random(0)
    with _no_collection():
        for k in range(WARM_UP_ROUNDS + rounds):
            for name in orders.sample(names, len(names)):
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
