"""Compile time of whole processes: `legoc` and Triton, which start cold and end with a cubin."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from bench.compile.variants import ROOT, as_installed

EXAMPLES = ROOT / "docs" / "examples"

# Argument types and constants as Triton's own ahead-of-time compiler takes them: 16-byte aligned
# pointers, row-major matrices whose sizes are multiples of 16.
TRITON = """
import sys
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           GM: tl.constexpr):
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, BN)
    group = pid // (GM * tiles_n)
    rows = min(tl.cdiv(M, BM) - group * GM, GM)
    pm = group * GM + pid % (GM * tiles_n) % rows
    pn = pid % (GM * tiles_n) // rows
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * K + rk[None, :]
    pb = b + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += BK
        pb += BK * N
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(tl.float16))


bm, bn, bk, warps, stages, capability = map(int, sys.argv[1:7])
names = {"a": "*fp16", "b": "*fp16", "c": "*fp16", "M": "i32", "N": "i32", "K": "i32"}
tile = {"BM": bm, "BN": bn, "BK": bk, "GM": 8}
multiple = {(k,): [["tt.divisibility", 16]] for k in range(6)}
source = ASTSource(matmul, names | dict.fromkeys(tile, "constexpr"), tile, multiple)
kernel = triton.compile(source, GPUTarget("cuda", capability, 32),
                        {"num_warps": warps, "num_stages": stages})
assert len(kernel.asm["cubin"]) > 1000
print(triton.__version__)
"""


class ProcessCase(NamedTuple):
    """A GEMM that both compilers compile.

    Attributes:
        input: legoc's input file.
        schedule: legoc's schedule; the module's own if `None`.
        tile: Triton's m, n, k, its warps and stages.
    """

    input: Path
    schedule: str | None
    tile: Sequence[int]


CASES = (
    ProcessCase(EXAMPLES / "matmul.mlir", "cp_async", (128, 128, 64, 4, 4)),
    ProcessCase(EXAMPLES / "matmul.mlir", "persistent", (128, 128, 64, 4, 3)),
)


def time_processes(
    case: ProcessCase, target: str, triton: str | None, rounds: int
) -> dict[str, list[tuple[float, float]]]:
    """Return the times of `legoc` and, if `triton` is a Python that has it, of Triton."""
    with tempfile.TemporaryDirectory() as scratch:
        runs = {"legoc": _legoc(case, target, Path(scratch))}
        if triton:
            runs["Triton"] = _triton(case, target, triton, Path(scratch))
        return interleaved_times(runs, rounds)


def interleaved_times(
    runs: dict[str, Callable[[], None]], rounds: int
) -> dict[str, list[tuple[float, float]]]:
    """Return the wall-clock and processor seconds of each run in each round.

    One round before the others is not counted.
    """
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for k in range(rounds + 1):
        order = list(runs) if k % 2 else list(reversed(runs))
        for name in order:
            start, before = perf_counter(), _processor_seconds()
            runs[name]()
            if k:
                times[name].append((perf_counter() - start, _processor_seconds() - before))
    return times


def _processor_seconds() -> float:
    """Return the processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _legoc(case: ProcessCase, target: str, scratch: Path) -> Callable[[], None]:
    output = scratch / "matmul.cubin"
    command = [sys.executable, "-m", "lego_mlir.cli", str(case.input), f"--target={target}"]
    command += [f"--schedule={case.schedule}"] if case.schedule else []
    command += ["--emit=cubin", "-o", str(output)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))

    def run() -> None:
        output.unlink(missing_ok=True)
        _run(command, {"PYTHONPATH": path, "LEGO_MLIR_CACHE": "0"})
        assert output.stat().st_size > 1000

    return run


def _triton(case: ProcessCase, target: str, python: str, scratch: Path) -> Callable[[], None]:
    script = scratch / "with_triton.py"
    script.write_text(TRITON)
    capability = "".join(filter(str.isdigit, target))
    command = [python, str(script), *map(str, case.tile), capability]

    def run() -> None:
        with tempfile.TemporaryDirectory(dir=scratch) as cache:
            _run(command, {"TRITON_CACHE_DIR": cache})

    return run


def _run(command: list[str], environment: dict[str, str]) -> None:
    subprocess.run(
        command, env=as_installed() | environment, capture_output=True, text=True, check=True
    )
