"""Timing of calls as a program makes them; `runtime.cuda.timing` times kernels by CUDA graphs."""

from __future__ import annotations

from time import perf_counter

from bench.measure.driver import synchronize
from lego_mlir.runtime.cuda.timing import Call, Graph, interleave

__all__ = ["Call", "Graph", "call_microseconds", "interleave"]


def call_microseconds(launch: Call, sets: int, calls: int) -> float:
    """Return the host's time of one of many back-to-back calls, launch overhead included."""
    synchronize()
    start = perf_counter()
    for k in range(calls):
        launch(k % sets)
    synchronize()
    return (perf_counter() - start) * 1e6 / calls
