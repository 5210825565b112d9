"""CUDA C++ peers, compiled by nvcc on the machine that runs them and launched by cuda-core."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.measure.timing import Call
from bench.peers.base import Absent, Setup
from bench.permute.reference import PermuteReference

_TILE, _ROWS = 32, 8  # as in transpose.cu


def naive(setup: Setup) -> Call:
    """Return the transpose whose stores are not coalesced."""
    return _transpose(setup, "naive")


def coalesced(setup: Setup) -> Call:
    """Return the transpose through a tile in shared memory."""
    return _transpose(setup, "coalesced")


def padded(setup: Setup) -> Call:
    """Return the transpose through a padded tile, without bank conflicts."""
    return _transpose(setup, "padded")


def launcher(
    setup: Setup,
    source: str,
    name: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
) -> Callable[..., None]:
    """Return a function that launches a kernel with the arguments it receives.

    Raises:
        Absent: nvcc is not installed, or it fails.
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


def matrices(reference: PermuteReference) -> tuple[int, int, int]:
    """Return the number of row-major matrices that are transposed, their rows and columns.

    Raises:
        Absent: the case is not a transpose of the last two dimensions.
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
    """Compile one of our sources once per run; return the path of the cubin."""
    file = Path(__file__).with_name(f"{source}.cu")
    return compiled(file, setup.scratch / f"{source}.cubin", setup.device.compute_capability)


def compiled(
    source: Path, cubin: Path, capability: Any, defines: Mapping[str, int] | None = None
) -> Path:
    """Compile CUDA C++ unless that was done before; return the path of the cubin.

    Args:
        source: of the text.
        cubin: where it goes.
        capability: major and minor number of the GPU.
        defines: macros, by name.

    Raises:
        Absent: nvcc is not installed, or it fails.
    """
    major, minor = capability
    if cubin.exists():
        return cubin
    compiler = shutil.which("nvcc")
    if compiler is None:
        raise Absent("nvcc is not on the PATH")
    partial_file = cubin.with_suffix(".part")
    done = subprocess.run(
        [
            *(compiler, "-std=c++17", "-O3", "-cubin", f"-arch=sm_{major}{minor}"),
            *(f"-D{name}={value}" for name, value in (defines or {}).items()),
            *("-o", str(partial_file), str(source)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Absent(f"nvcc fails: {(done.stderr or done.stdout).strip()[:300]}")
    partial_file.rename(cubin)
    return cubin


def version() -> str | None:
    """Return the release of nvcc; `None` if it is not installed."""
    compiler = shutil.which("nvcc")
    if compiler is None:
        return None
    done: Any = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if "release" in line]
    return lines[0].partition("release ")[2].partition(",")[0] if lines else None
