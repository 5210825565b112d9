"""The tuner: it times the cost model's best configs on the GPU in this machine, and remembers.

It runs where `matmul(..., tune=True)` asks for it, or the environment variable `LEGO_MLIR_TUNE` is
1. The fastest config is entered into a table of the user's (`tuned_table` has its form), in the
user's cache folder or in the folder that `LEGO_MLIR_CACHE` names; GEMMs of that table are not timed
again.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from math import prod
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from lego_mlir import cache
from lego_mlir.artifact import Artifact, known_numbers
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels.gemm import tuned_table
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.progress import track

CANDIDATES = 5
"""Configs that are timed: of 280 random GEMMs on an H200, the best of the model's first five was
0.4 % slower than the best of all that were measured, on average."""

ROUNDS = 7

MAX_SECONDS = 20.0
"""Seconds after which no further config is compiled."""

_GRAPH_US, _MAX_LAUNCHES = 300.0, 200
"""Duration of a graph of launches, at least, and how many it has at most."""

Timer = Callable[[Sequence[Artifact]], list[float]]
"""A function from artifacts with the same arguments to the microseconds of each."""


def is_wanted(tune: bool | None) -> bool:
    """Return whether to tune: what the caller says, else what the environment says."""
    return os.environ.get("LEGO_MLIR_TUNE") == "1" if tune is None else tune


def folder() -> Path | None:
    """Return the folder of the user's tables; `None` if nothing is kept between runs."""
    base = cache.folder()
    return None if base is None else base / "tuned"


def tuned_config(
    device: str,
    problem: Problem,
    configs: Sequence[GemmConfig],
    build: Callable[[GemmConfig], Artifact],
    timer: Timer | None = None,
) -> GemmConfig:
    """Return the fastest config of a GEMM on the GPU in this machine.

    A table that cannot be written is no error: the GEMM is timed again next time.

    Args:
        device: the name that the GPU's driver reports.
        problem: the GEMM, with a row-major C.
        configs: the configs, those with the best estimates first.
        build: compiles the GEMM with a config.
        timer: times artifacts; by default on the GPU in this machine.

    Raises:
        LegoError: no config compiles, or the GPU has not enough memory for the matrices.
    """
    known = remembered(device, problem)
    if known is not None:
        return known
    built: dict[GemmConfig, Artifact] = {}
    first_error: LegoError | None = None
    end = monotonic() + MAX_SECONDS
    tried = list(dict.fromkeys(configs[:CANDIDATES]))
    for config in track("compiling configs", tried):
        try:
            built[config] = build(config)
        except LegoError as e:
            first_error = first_error or e
        if built and monotonic() > end:
            break
    if not built:
        assert first_error is not None
        raise first_error
    times = (timer or time_on_gpu)(list(built.values()))
    best = min(zip(times, built, strict=True), key=lambda pair: pair[0])[1]
    tables = folder()
    if tables is not None:
        with suppress(LegoError, OSError):
            tuned_table.record(device, problem, best, tables)
    return best


def remembered(device: str, problem: Problem) -> GemmConfig | None:
    """Return the config of a GEMM from the user's table; `None` if it has none."""
    tables = folder()
    return None if tables is None else tuned_table.lookup_any(device, problem, tables)


def time_on_gpu(artifacts: Sequence[Artifact]) -> list[float]:
    """Return the microseconds of artifacts, medians of interleaved rounds on random data.

    Raises:
        LegoError: the GPU has not enough memory for the arguments.
    """
    from lego_mlir.runtime import cuda
    from lego_mlir.runtime.cuda.timing import Graph, interleave

    with ExitStack() as cleanup:
        loaded = [cuda.load(artifact) for artifact in artifacts]
        stream = loaded[0].device.create_stream()
        cleanup.callback(stream.close)
        values = _arguments(artifacts[0], cleanup)
        graphs: dict[str, Graph] = {}
        kept = []  # a graph uses the workspaces of its bound launch
        for number, kernel in enumerate(loaded):
            bound = kernel.bind(*values)
            kept.append(bound)

            def launch(_: int, bound: Any = bound) -> None:
                bound(stream)

            launch(0)
            stream.sync()
            graph = Graph.capture(int(stream.handle), launch, 1, 2)
            launches = int(_GRAPH_US / max(graph.microseconds(), 1.0))
            if launches > graph.launches:
                graph.destroy()
                launches = min(launches, _MAX_LAUNCHES)
                graph = Graph.capture(int(stream.handle), launch, 1, launches)
            graphs[str(number)] = graph
            cleanup.callback(graph.destroy)
        measures: Mapping[str, Callable[[], float]] = {n: g.microseconds for n, g in graphs.items()}
        rounds = interleave(measures, ROUNDS)
        return [statistics.median(rounds[str(number)]) for number in range(len(artifacts))]


def _arguments(artifact: Artifact, cleanup: ExitStack) -> list[Any]:
    """Return arguments: device memory of random bits for tensors, 1 for scalars."""
    from cuda.bindings import driver

    from lego_mlir.runtime import dtypes
    from lego_mlir.runtime.cuda.timing import driver_call

    values: list[Any] = []
    block = np.random.default_rng(0).integers(0, 1 << 16, 1 << 20, np.uint16)
    block &= 0x3B3B  # finite and positive as any float
    for argument in artifact.arguments:
        if argument.shape is None:
            values.append(dtypes.scalar(argument.dtype, 1))
            continue
        size = (
            max(1, prod(known_numbers(argument.shape)))
            * dtypes.numpy_dtype(argument.dtype).itemsize
        )
        try:
            pointer = int(driver_call(driver.cuMemAlloc, size))
        except RuntimeError as e:
            raise LegoError(
                f"matmul: the GPU has no {size} bytes of memory for '{argument.name}' ({e}), which "
                "tuning needs",
                hint="tune=False, or free memory",
            ) from None
        cleanup.callback(driver.cuMemFree, pointer)
        for start in range(0, size, block.nbytes):
            count = min(block.nbytes, size - start)
            driver_call(driver.cuMemcpyHtoD, pointer + start, block.ctypes.data, count)
        values.append(pointer)
    return values
