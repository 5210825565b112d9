"""How long products take to compile in a Python process, by stage: no process is started anew.

Each variant is one of the library's ways to multiply. Its kernel is made from layouts, traced,
scheduled, lowered to PTX and assembled, as its first call does: every compilation is of a new
kernel in a new MLIR context. Three states are told apart:

cold    the first compilation of a process, with all that it imports
warm    kernels have been compiled before, and all caches of the compiler have been emptied since
again   this very kernel has been compiled before, and caches have kept what they keep

The time is the wall clock's, in milliseconds. The machine code counts only if the assembler has
nothing against it: no spills, no serialized products.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

VARIANTS: Mapping[str, tuple[tuple[int, int, int], str, str | None]] = {
    "f16_1024": ((1024, 1024, 1024), "f16", None),
    "f16_2048": ((2048, 2048, 2048), "f16", None),
    "f16_4096": ((4096, 4096, 4096), "f16", None),
    "f16_64x4096x4096": ((64, 4096, 4096), "f16", None),
    "f16_128x7168x16384": ((128, 7168, 16384), "f16", None),
    "e4m3_4096_nt": ((4096, 4096, 4096), "f8E4M3FN", None),
    "f16_4096_hmma": ((4096, 4096, 4096), "f16", "hmma"),
}
"""By name: m, n, k, element type, and the schedule where it is not left to the library."""

STAGES = ("layouts", "index", "nvvm", "ptx", "cubin")
"""What is timed: kernel and module from layouts; the schedule and index expressions; the nvvm and
llvm dialects; LLVM; the assembler."""

Times = dict[str, float]
"""Milliseconds by stage; of a first compilation `imports` too, which is before them."""


def compiled(name: str, target: str) -> tuple[Times, dict[str, Any]]:
    """The times of one compilation of a variant, and what was compiled."""
    start = perf_counter()
    from lego_mlir.algebra import Col, OrderBy
    from lego_mlir.compiler.driver import Options
    from lego_mlir.hardware.targets import Target
    from lego_mlir.kernels import matmul

    (m, n, k), dtype, schedule = VARIANTS[name]
    clock = [perf_counter()]
    b = OrderBy(Col(k, n)) if dtype.startswith("f8") else None
    kernel = matmul(m, n, k, dtype, b=b, schedule=schedule, target=target)
    compilation = kernel.compilation(Options(target=Target.parse(target), strict=True))
    clock.append(perf_counter())
    for stage in ("scheduled", "nvvm", "ptx", "cubin"):
        made = getattr(compilation, stage)
        clock.append(perf_counter())
    ends = pairwise(clock)
    times = {"imports": clock[0] - start}
    times |= {stage: end - begin for stage, (begin, end) in zip(STAGES, ends, strict=True)}
    what = {
        "schedule": kernel.schedule,
        "settings": dict(kernel.params),
        "ptx_lines": compilation.ptx.count("\n"),
        "registers": [kernel.registers for kernel in made.resources],
        "cubin_bytes": len(made.code),
    }
    return {stage: 1e3 * seconds for stage, seconds in times.items()}, what


def warm(names: Sequence[str], target: str, rounds: int) -> dict[str, dict[str, Any]]:
    """By variant, what it is, and its times `warm` and `again` in each round; all take turns."""
    from bench.index import forget

    found: dict[str, dict[str, Any]] = {name: {"warm": [], "again": []} for name in names}
    for turn in range(rounds + 1):
        for name in names:
            forget()
            for state in ("warm", "again"):
                gc.collect()
                times, what = compiled(name, target)
                if turn:  # the first round is a cold one
                    found[name] |= what
                    found[name][state].append({stage: times[stage] for stage in STAGES})
    return found


def cold(name: str, target: str) -> Times:
    """The times of the first compilation in a process of its own.

    Raises:
        subprocess.CalledProcessError: it fails.
    """
    code = "import sys, json; from bench.compile_variants import compiled; "
    code += "print(json.dumps(compiled(*sys.argv[1:])[0]))"
    command = [sys.executable, "-c", code, name, target]
    done = subprocess.run(
        command, cwd=ROOT, env=as_installed(), capture_output=True, text=True, check=True
    )
    times: Times = json.loads(done.stdout)
    return times


def as_installed() -> dict[str, str]:
    """The environment of a child process in which modules are compiled once, not in every run."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    return environment


def versions() -> dict[str, str]:
    """What takes part, as it is installed."""
    found = {"python": platform.python_version()}
    for package in ("numba-cuda-mlir", "sympy", "numpy", "nvidia-nvjitlink", "nvidia-cuda-nvcc"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.gpu()
