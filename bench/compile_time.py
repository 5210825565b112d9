"""How long a matrix product takes to compile, as a whole process: ours beside Triton's.

    python -m bench.compile_time [--triton PYTHON] [--rounds N] [INPUT.mlir]

Ours is `legoc INPUT.mlir --schedule=hmma --emit=cubin` in this Python, Triton's is the tutorial's
matmul of the same tile, compiled ahead of time with an empty cache by the Python that is named
(it needs Triton, but no GPU). Both start cold and end with a cubin; they take turns, each beginning
every other round, and what the disk holds in its cache is warm for both after a first round that
does not count. Told are the medians and the quartiles of the wall-clock time and of the processor's
time, which other work on the machine disturbs less, and of the ratios.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]
INPUT = ROOT / "docs" / "examples" / "matmul.mlir"

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


def main() -> int:
    """Print the times; status 1 if a compiler fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("input", type=Path, nargs="?", default=INPUT, metavar="INPUT.mlir")
    parser.add_argument("--schedule", default="hmma")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--triton", metavar="PYTHON", help="a Python that has Triton")
    parser.add_argument(
        "--tile", type=int, nargs=5, default=(128, 128, 64, 4, 4), metavar="N",
        help="Triton's tile m, n, k, its warps and stages (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        runs = {"legoc": _legoc(options, Path(scratch))}
        if options.triton:
            runs["Triton"] = _triton(options, Path(scratch))
        try:
            times = measured(runs, options.rounds)
        except subprocess.CalledProcessError as e:
            print(f"{' '.join(map(str, e.cmd))[:200]} fails:\n{e.stderr}", file=sys.stderr)
            return 1
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, no GPU used")
    for k, clock in enumerate(("wall clock", "processor")):
        seconds = {name: [pair[k] for pair in pairs] for name, pairs in times.items()}
        told = [f"{name} {_quartiles(values)} s" for name, values in seconds.items()]
        if "Triton" in seconds:
            both = zip(seconds["legoc"], seconds["Triton"], strict=True)
            told.append(f"legoc / Triton {_quartiles([a / b for a, b in both])}")
        print(f"{clock}: {', '.join(told)}")
    return 0


def measured(
    runs: dict[str, Callable[[], None]], rounds: int
) -> dict[str, list[tuple[float, float]]]:
    """Seconds of each run in turn, on the wall and of the processor.

    One round before the others does not count.
    """
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        order = list(runs) if turn % 2 else list(reversed(runs))
        for name in order:
            start, before = perf_counter(), _processor()
            runs[name]()
            if turn:
                times[name].append((perf_counter() - start, _processor() - before))
    return times


def _processor() -> float:
    """Processor seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _legoc(options: argparse.Namespace, scratch: Path) -> Callable[[], None]:
    output = scratch / "matmul.cubin"
    command = [sys.executable, "-m", "lego_mlir.cli", str(options.input)]
    command += [f"--schedule={options.schedule}", f"--target={options.target}"]
    command += ["--emit=cubin", "-o", str(output)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))

    def run() -> None:
        output.unlink(missing_ok=True)
        _run(command, {"PYTHONPATH": path})
        assert output.stat().st_size > 1000

    return run


def _triton(options: argparse.Namespace, scratch: Path) -> Callable[[], None]:
    script = scratch / "with_triton.py"
    script.write_text(TRITON)
    capability = "".join(filter(str.isdigit, options.target))
    command = [options.triton, str(script), *map(str, options.tile), capability]

    def run() -> None:
        with tempfile.TemporaryDirectory(dir=scratch) as cache:
            _run(command, {"TRITON_CACHE_DIR": cache})

    return run


def _run(command: list[str], environment: dict[str, str]) -> None:
    subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=True
    )


def _quartiles(values: list[float]) -> str:
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{median:.3f} ({low:.3f}–{high:.3f})"


if __name__ == "__main__":
    sys.exit(main())
