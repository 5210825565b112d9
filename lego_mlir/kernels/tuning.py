"""What tuners have in common: they time configs on the GPU in this machine, and remember the best.

A tuner runs where a caller says `tune=True`, or the environment variable `LEGO_MLIR_TUNE` is 1. It
compiles a few configs, in the order of a cost model, and times them in interleaved rounds. Its
table is in the user's cache folder, or in the folder that `LEGO_MLIR_CACHE` names.
"""

from __future__ import annotations

import json
import os
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from math import prod
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import numpy as np

from lego_mlir import cache
from lego_mlir.artifact import Argument, Artifact, known_numbers
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.files import write_whole
from lego_mlir.progress import track

ROUNDS = 7

MAX_SECONDS = 20.0
"""Seconds after which no further config is compiled."""

_GRAPH_US, _MAX_LAUNCHES = 300.0, 200
"""Duration of a graph of launches, at least, and how many it has at most."""

_COLD_BYTES, _MOST_SETS = 256 << 20, 64
"""What the sets of arguments have together if each launch shall find nothing in the L2 cache, and
how many there are at most."""

Timer = Callable[[Sequence[Artifact]], list[float]]
"""A function from artifacts with the same arguments to the microseconds of each."""

_Config = TypeVar("_Config")
_Key = TypeVar("_Key")


def is_wanted(tune: bool | None) -> bool:
    """Return whether to tune: what the caller says, else what the environment says."""
    return os.environ.get("LEGO_MLIR_TUNE") == "1" if tune is None else tune


def folder() -> Path | None:
    """Return the folder of the user's tables; `None` if nothing is kept between runs."""
    base = cache.folder()
    return None if base is None else base / "tuned"


def file_name(device: str) -> str:
    """Return the name of a device's table, such as `nvidia-h200.json`."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-") + ".json"


def read_table(file: Path, parse: Callable[[Any], tuple[_Key, _Config]]) -> dict[_Key, _Config]:
    """Return the entries of a table, a file of JSON; none if there is no file.

    Args:
        file: the table.
        parse: returns what an entry is for and its config, or raises one of Python's errors.

    Raises:
        LegoError: the file cannot be read, or an entry is wrong.
    """
    try:
        return dict(map(parse, json.loads(file.read_text())))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise LegoError(
            f"the tuned table cannot be read: {e!r}",
            location=Location(str(file)),
            hint="restore it, or remove it: configs are then chosen or timed anew",
        ) from None


def write_table(file: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write a table, an entry a line, and the folder around it.

    Raises:
        LegoError: the file cannot be written.
        OSError: the folder cannot be made.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(f"  {json.dumps(entry)}" for entry in entries)
    write_whole(file, f"[\n{lines}\n]\n".encode())


def fastest(
    configs: Sequence[_Config], build: Callable[[_Config], Artifact], timer: Timer
) -> _Config:
    """Return the fastest of configs; those that do not compile are left out.

    Args:
        configs: those with the best estimates first; the others are left out once it takes long.
        build: compiles a config.
        timer: times artifacts.

    Raises:
        LegoError: no config compiles, or the timer raises it.
    """
    built: dict[_Config, Artifact] = {}
    first_error: LegoError | None = None
    end = monotonic() + MAX_SECONDS
    for config in track("compiling configs", list(dict.fromkeys(configs))):
        try:
            built[config] = build(config)
        except LegoError as e:
            first_error = first_error or e
        if built and monotonic() > end:
            break
    if not built:
        assert first_error is not None
        raise first_error
    times = timer(list(built.values()))
    return min(zip(times, built, strict=True), key=lambda pair: pair[0])[1]


def time_on_gpu(name: str, artifacts: Sequence[Artifact], *, is_cold: bool = False) -> list[float]:
    """Return the microseconds of artifacts, medians of interleaved rounds on random data.

    Args:
        name: of the function that the caller has called, for errors.
        artifacts: with the same arguments.
        is_cold: launches take turns with sets of arguments that are larger than an L2 cache.

    Raises:
        LegoError: the GPU has not enough memory for the arguments.
    """
    from lego_mlir.runtime import cuda
    from lego_mlir.runtime.cuda.timing import Graph, interleave

    with ExitStack() as cleanup:
        loaded = [cuda.load(artifact) for artifact in artifacts]
        stream = loaded[0].device.create_stream()
        cleanup.callback(stream.close)
        sets = _sets(artifacts[0].arguments) if is_cold else 1
        values = [_arguments(name, artifacts[0].arguments, cleanup) for _ in range(sets)]
        graphs: dict[str, Graph] = {}
        kept = []  # a graph uses the workspaces of its bound launches
        for number, kernel in enumerate(loaded):
            bound = [kernel.bind(*each) for each in values]
            kept.append(bound)

            def launch(k: int, bound: Sequence[Any] = bound) -> None:
                bound[k](stream)

            launch(0)
            stream.sync()
            graph = Graph.capture(int(stream.handle), launch, sets, 2)
            launches = max(sets, int(_GRAPH_US / max(graph.microseconds(), 1.0)))
            if launches > graph.launches:
                graph.destroy()
                launches = min(launches, _MAX_LAUNCHES)
                graph = Graph.capture(int(stream.handle), launch, sets, launches)
            graphs[str(number)] = graph
            cleanup.callback(graph.destroy)
        measures: Mapping[str, Callable[[], float]] = {n: g.microseconds for n, g in graphs.items()}
        rounds = interleave(measures, ROUNDS)
        return [statistics.median(rounds[str(number)]) for number in range(len(artifacts))]


def _bytes_of(argument: Argument) -> int:
    """Return the bytes of a tensor of known sizes, at least an element's."""
    from lego_mlir.runtime import dtypes

    assert argument.shape is not None
    count = max(1, prod(known_numbers(argument.shape)))
    return int(count * dtypes.numpy_dtype(argument.dtype).itemsize)


def _sets(arguments: Sequence[Argument]) -> int:
    """Return how many sets of arguments no L2 cache holds."""
    size = sum(_bytes_of(argument) for argument in arguments if argument.shape is not None)
    return min(_MOST_SETS, -(-_COLD_BYTES // max(1, size)))


def _arguments(name: str, arguments: Sequence[Argument], cleanup: ExitStack) -> list[Any]:
    """Return arguments: device memory of random bits for tensors, 1 for scalars."""
    from cuda.bindings import driver

    from lego_mlir.runtime import dtypes
    from lego_mlir.runtime.cuda.timing import driver_call

    values: list[Any] = []
    block = np.random.default_rng(0).integers(0, 1 << 16, 1 << 20, np.uint16)
    block &= 0x3B3B  # finite and positive as any float
    for argument in arguments:
        if argument.shape is None:
            values.append(dtypes.scalar(argument.dtype, 1))
            continue
        size = _bytes_of(argument)
        try:
            pointer = int(driver_call(driver.cuMemAlloc, size))
        except RuntimeError as e:
            raise LegoError(
                f"{name}: the GPU has no {size} bytes of memory for '{argument.name}' ({e}), which "
                "tuning needs",
                hint="tune=False, or free memory",
            ) from None
        cleanup.callback(driver.cuMemFree, pointer)
        for start in range(0, size, block.nbytes):
            count = min(block.nbytes, size - start)
            driver_call(driver.cuMemcpyHtoD, pointer + start, block.ctypes.data, count)
        values.append(pointer)
    return values
