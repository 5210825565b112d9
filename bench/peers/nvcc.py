"""CUDA C++ of our own, compiled by nvcc on the machine that runs it, launched by cuda-core."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.movement import Permute
from bench.peers.base import Absent, Setup
from bench.timing import Call

_TILE, _ROWS = 32, 8  # as in transpose.cu


def naive(setup: Setup) -> Call:
    """The transpose with one side not coalesced."""
    return _transpose(setup, "naive")


def coalesced(setup: Setup) -> Call:
    """The transpose through a tile in shared memory."""
    return _transpose(setup, "coalesced")


def padded(setup: Setup) -> Call:
    """The same without bank conflicts."""
    return _transpose(setup, "padded")


def launcher(
    setup: Setup,
    source: str,
    name: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
) -> Callable[..., None]:
    """A function of the kernel's arguments that launches it.

    Raises:
        Absent: there is no nvcc, or it fails.
    """
    import cuda.core as core

    cubin = _cubin(source, setup)
    kernel = core.ObjectCode.from_cubin(cubin.read_bytes()).get_kernel(name)
    config = core.LaunchConfig(grid=grid, block=block)
    return partial(core.launch, setup.stream, config, kernel)


def _transpose(setup: Setup, algorithm: str) -> Call:
    data = setup.data
    count, m, n = matrices(data.reference)
    mask = "masked" if m % _TILE or n % _TILE else "whole"
    run = launcher(
        setup,
        "transpose",
        f"{algorithm}_{data.dtype.itemsize}_{mask}",
        (-(-n // _TILE), -(-m // _TILE), count),
        (_TILE, _ROWS, 1),
    )
    sizes = np.int32(m), np.int32(n)

    def launch(k: int) -> None:
        offset = k * data.stride
        run(data.inputs + offset, data.outputs + offset, *sizes)

    return launch


def matrices(reference: Permute) -> tuple[int, int, int]:
    """How many matrices of which sizes are transposed, seen row-major.

    Raises:
        Absent: it is no transpose of the last two dimensions.
    """
    shape, axes, last = reference.shape, reference.axes, len(reference.shape) - 1
    swap = (*range(last - 1), last, last - 1)
    if axes != swap or (reference.source, reference.target) != ("row", "row"):
        raise Absent("it transposes the last two dimensions of row-major tensors only")
    count = math.prod(shape[:-2])
    if count > 65535 or shape[-2] > 65535 * _TILE:
        raise Absent("its grid would be too large")
    return count, shape[-2], shape[-1]


def _cubin(source: str, setup: Setup) -> Path:
    """The compiled file, made once a run."""
    major, minor = setup.device.compute_capability
    goal = setup.scratch / f"{source}.cubin"
    if goal.exists():
        return goal
    compiler = shutil.which("nvcc")
    if compiler is None:
        raise Absent("nvcc is not on the PATH")
    part = goal.with_suffix(".part")
    said = subprocess.run(
        [
            *(compiler, "-std=c++17", "-O3", "-cubin", f"-arch=sm_{major}{minor}"),
            *("-o", str(part), str(Path(__file__).with_name(f"{source}.cu"))),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if said.returncode:
        raise Absent(f"nvcc does not compile it: {(said.stderr or said.stdout).strip()[:300]}")
    part.rename(goal)
    return goal


def version() -> str | None:
    """The compiler's release, `None` without one."""
    compiler = shutil.which("nvcc")
    if compiler is None:
        return None
    said: Any = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    lines = [line for line in said.stdout.splitlines() if "release" in line]
    return lines[0].partition("release ")[2].partition(",")[0] if lines else None
