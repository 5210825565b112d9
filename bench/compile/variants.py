"""Compile time of the library's kernels by compiler stage, inside a Python process.

Each variant is a kernel of the library. As on its first call, it is built from layouts, traced,
scheduled, lowered to PTX and assembled: always a new kernel in a new MLIR context.
Three states are distinguished:

cold    the first compilation of a process, with all that it imports
warm    kernels have been compiled before, and all caches of the compiler have been cleared since
again   the same kernel has been compiled before, and the caches are kept

Times are milliseconds of the processor, those of ptxas included, which other work on the machine
disturbs less than those of a clock. Compilation is strict: spills and serialized wgmma are errors.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

VARIANTS: Mapping[str, tuple[str, tuple[Any, ...], Mapping[str, Any]]] = {
    "f16_512": ("matmul", (512, 512, 512, "f16"), {}),
    "f16_1024": ("matmul", (1024, 1024, 1024, "f16"), {}),
    "f16_2048": ("matmul", (2048, 2048, 2048, "f16"), {}),
    "f16_4096": ("matmul", (4096, 4096, 4096, "f16"), {}),
    "f16_64x4096x4096": ("matmul", (64, 4096, 4096, "f16"), {}),
    "f16_128x7168x16384": ("matmul", (128, 7168, 16384, "f16"), {}),
    "e4m3_4096_nt": ("matmul", (4096, 4096, 4096, "f8E4M3FN"), {"b": (4096, 4096)}),
    "f16_4096_cp_async": ("matmul", (4096, 4096, 4096, "f16"), {"schedule": "cp_async"}),
    "attention_128": ("attention", (2, 8192, 8192, 16, 128), {}),
    "attention_128_causal": ("attention", (2, 8192, 8192, 16, 128), {"causal": True}),
    "attention_64_causal": ("attention", (2, 8192, 8192, 32, 64), {"causal": True}),
    "attention_decode": ("attention", (16, 1, 8192, 32, 128), {"heads_kv": 8}),
    "rmsnorm_4096x16384": ("rmsnorm", (4096, 16384, "bf16"), {}),
    "softmax_1024x131072": ("softmax", (1024, 131072, "bf16"), {}),
    "cross_entropy_4096x32000": ("cross_entropy", (4096, 32000, "bf16"), {}),
    "rmsnorm_backward_4096x4096": ("rmsnorm_backward", (4096, 4096, "bf16"), {}),
    "layernorm_backward_4096x4096": ("layernorm_backward", (4096, 4096, "bf16"), {}),
    "layernorm_backward_1024x65536": ("layernorm_backward", (1024, 65536, "f32"), {}),
    "permute_32x96x56x56_0231": ("permute", ((32, 96, 56, 56), (0, 2, 3, 1), "f32"), {}),
    "permute_6x5x64x20x33_42031": ("permute", ((6, 5, 64, 20, 33), (4, 2, 0, 3, 1), "f32"), {}),
}
"""The function of `lego_mlir.kernels`, its arguments and options; B of these sizes is by columns.
The library chooses what is not given, for the target."""

STAGES = ("layouts", "index", "nvvm", "ptx", "cubin")
"""The timed stages: kernel and module from layouts; the schedule and index expressions; the nvvm
and llvm dialects; LLVM; the assembler."""

Times = dict[str, float]
"""Milliseconds by stage; a cold compilation also has `imports`, which precedes them."""


def compile_variant(name: str, target: str) -> tuple[Times, dict[str, Any]]:
    """Compile a variant; return the times of the stages and facts about the kernel."""
    start = _seconds()
    from lego_mlir import kernels
    from lego_mlir.algebra import Col, OrderBy
    from lego_mlir.compiler.driver import Options
    from lego_mlir.hardware.targets import Target
    from lego_mlir.mlir.context import new_context

    new_context()  # which loads MLIR
    function, arguments, given = VARIANTS[name]
    clock = [_seconds()]
    options = dict(given)
    if "b" in options:
        options["b"] = OrderBy(Col(*options["b"]))
    if function in ("matmul", "attention"):
        options["target"] = target
    kernel = getattr(kernels, function)(*arguments, **options)
    compilation = kernel.compilation(Options(target=Target.parse(target), strict=True))
    clock.append(_seconds())
    for stage in ("scheduled", "nvvm", "ptx", "cubin"):
        made = getattr(compilation, stage)
        clock.append(_seconds())
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


def _seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


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
