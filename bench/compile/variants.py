"""Compile time of GEMM kernels by compiler stage, inside a Python process.

Each variant is a GEMM kernel of the library. As on its first call, it is built from layouts,
traced, scheduled, lowered to PTX and assembled: always a new kernel in a new MLIR context.
Three states are distinguished:

cold    the first compilation of a process, with all that it imports
warm    kernels have been compiled before, and all caches of the compiler have been cleared since
again   the same kernel has been compiled before, and the caches are kept

Times are wall-clock milliseconds. Compilation is strict: spills and serialized wgmma are errors.
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

ROOT = Path(__file__).resolve().parents[2]

VARIANTS: Mapping[str, tuple[tuple[int, int, int], str, str | None]] = {
    "f16_1024": ((1024, 1024, 1024), "f16", None),
    "f16_2048": ((2048, 2048, 2048), "f16", None),
    "f16_4096": ((4096, 4096, 4096), "f16", None),
    "f16_64x4096x4096": ((64, 4096, 4096), "f16", None),
    "f16_128x7168x16384": ((128, 7168, 16384), "f16", None),
    "e4m3_4096_nt": ((4096, 4096, 4096), "f8E4M3FN", None),
    "f16_4096_hmma": ((4096, 4096, 4096), "f16", "hmma"),
}
"""m, n, k, element type and schedule of each case; `None` if the library chooses the schedule."""

STAGES = ("layouts", "index", "nvvm", "ptx", "cubin")
"""The timed stages: kernel and module from layouts; the schedule and index expressions; the nvvm
and llvm dialects; LLVM; the assembler."""

Times = dict[str, float]
"""Milliseconds by stage; a cold compilation also has `imports`, which precedes them."""


def compile_variant(name: str, target: str) -> tuple[Times, dict[str, Any]]:
    """Compile a variant; return the times of the stages and facts about the kernel."""
    start = perf_counter()
    from lego_mlir.algebra import Col, OrderBy
    from lego_mlir.compiler.driver import Options
    from lego_mlir.hardware.targets import Target
    from lego_mlir.kernels import matmul
    from lego_mlir.mlir.context import new_context

    new_context()  # which loads MLIR
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
    facts = {
        "schedule": kernel.schedule,
        "params": dict(kernel.params),
        "ptx_lines": compilation.ptx.count("\n"),
        "registers": [kernel.registers for kernel in made.resources],
        "cubin_bytes": len(made.code),
    }
    return {stage: 1e3 * seconds for stage, seconds in times.items()}, facts


def warm(names: Sequence[str], target: str, rounds: int) -> dict[str, dict[str, Any]]:
    """Return each variant's facts and its times `warm` and `again`, in interleaved rounds."""
    from bench.index.measure import clear_caches

    found: dict[str, dict[str, Any]] = {name: {"warm": [], "again": []} for name in names}
    for k in range(rounds + 1):
        for name in names:
            clear_caches()
            for state in ("warm", "again"):
                gc.collect()
                times, facts = compile_variant(name, target)
                if k:  # the first round is cold
                    found[name] |= facts
                    found[name][state].append({stage: times[stage] for stage in STAGES})
    return found


def cold(name: str, target: str) -> Times:
    """Return the times of the first compilation in a new process.

    Raises:
        subprocess.CalledProcessError: the process fails.
    """
    code = "import sys, json; from bench.compile.variants import compile_variant; "
    code += "print(json.dumps(compile_variant(*sys.argv[1:])[0]))"
    command = [sys.executable, "-c", code, name, target]
    done = subprocess.run(
        command, cwd=ROOT, env=as_installed(), capture_output=True, text=True, check=True
    )
    times: Times = json.loads(done.stdout)
    return times


def as_installed() -> dict[str, str]:
    """Return an environment in which a child process keeps its modules' bytecode."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    return environment


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that compile."""
    found = {"python": platform.python_version()}
    for package in ("numba-cuda-mlir", "sympy", "numpy", "nvidia-nvjitlink", "nvidia-cuda-nvcc"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
