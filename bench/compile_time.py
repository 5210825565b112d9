"""How long the compiler takes: whole processes, beside Triton's, and by stage in a Python process.

    python -m bench.compile_time [--triton PYTHON] [--rounds N] [-o FILE.jsonl] [INPUT.mlir]
    python -m bench.compile_time --variants [--only WORD] [--rounds N] [-o FILE.jsonl]

A whole process of ours is `legoc INPUT.mlir --emit=cubin` in this Python, Triton's is the
tutorial's matmul of the same tile, compiled ahead of time with an empty cache by the Python that is
named (it needs Triton, but no GPU). Both start cold and end with a cubin; they take turns, each
beginning every other round, and what the disk holds in its cache is warm for both after a first
round that does not count. Told are the medians and the quartiles of the wall-clock time and of the
processor's time, which other work on the machine disturbs less, and of the ratios.

Modules are compiled to bytecode once, as in an installation, even where PYTHONDONTWRITEBYTECODE is
set: a checkout would spend half a second on that in each process.

With --variants the library's ways to multiply are compiled in a process, see `compile_variants`.
With -o the results are written as JSON lines.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from bench.build import chosen, commit
from bench.compile_variants import (
    ROOT,
    STAGES,
    VARIANTS,
    Times,
    as_installed,
    cold,
    processor,
    versions,
    warm,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.files import write_whole

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


class Contest(NamedTuple):
    """A product that both compile.

    Attributes:
        input: of legoc.
        schedule: of it; the module's own if `None`.
        tile: Triton's m, n, k, its warps and stages.
    """

    input: Path
    schedule: str | None
    tile: Sequence[int]


CONTESTS = (
    Contest(EXAMPLES / "matmul.mlir", "hmma", (128, 128, 64, 4, 4)),
    Contest(EXAMPLES / "hopper.mlir", None, (128, 256, 64, 8, 4)),
)


def main() -> int:
    """Print the times; status 1 if a compiler fails."""
    options = _parser().parse_args()
    print(f"{processor()}, {os.cpu_count()} cores, no GPU used")
    try:
        results = _variants(options) if options.variants else _processes(options)
    except subprocess.CalledProcessError as e:
        print(f"{' '.join(map(str, e.cmd))[:200]} fails:\n{e.stderr}", file=sys.stderr)
        return 1
    except LegoError as e:
        print(e.render(), file=sys.stderr)
        return 1
    if options.output is not None:
        setting = {"commit": commit(), "device": processor(), "versions": versions()}
        lines = [json.dumps({"case": case, **setting, **r}) for case, r in results.items()]
        write_whole(options.output, "".join(line + "\n" for line in lines).encode())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("input", type=Path, nargs="?", metavar="INPUT.mlir")
    parser.add_argument("--schedule", help="of INPUT.mlir; its own by default")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--triton", metavar="PYTHON", help="a Python that has Triton")
    parser.add_argument(
        "--tile", type=int, nargs=5, default=(128, 128, 64, 4, 4), metavar="N",
        help="Triton's tile m, n, k, its warps and stages (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--variants", action="store_true", help="by stage, in a Python process")
    parser.add_argument("--only", default="", help="variants whose name contains this")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("-o", dest="output", type=Path, metavar="FILE", help="write JSON lines")
    return parser


# ----------------------------------------------------------------------------- in a Python process
def _variants(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Compile the variants in process; the results by case."""
    names = chosen(list(VARIANTS), [options.only])
    found = warm(names, options.target, options.rounds)
    cold(names[0], options.target)  # leaves the modules' bytecode behind, as an installation does
    print(f"\n{VARIANT_HEAD}")
    results = {}
    for name in names:
        states = {
            "cold": [cold(name, options.target) for _ in range(options.rounds)],
            "warm": found[name].pop("warm"),
            "again": found[name].pop("again"),
        }
        for state, rounds in states.items():
            print(variant_row(name, state, rounds), flush=True)
        milliseconds = {
            state: {stage: [round(times[stage], 2) for times in rounds] for stage in rounds[0]}
            for state, rounds in states.items()
        }
        results[f"compile_{name}"] = {**found[name], "ms": milliseconds}
    return results


VARIANT_HEAD = """\
| variant | state | imports | layouts | index | nvvm | ptx | cubin | layouts to PTX, ms | layouts to cubin, ms |
| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |"""  # noqa: E501


def variant_row(name: str, state: str, rounds: Sequence[Times]) -> str:
    """A row of the table: medians by stage, and with quartiles what they add up to."""
    medians = [
        f"{statistics.median(times[stage] for times in rounds):.0f}" if stage in rounds[0] else ""
        for stage in ("imports", *STAGES)
    ]
    sums = [
        _quartiles([sum(times[stage] for stage in stages) for times in rounds], 0)
        for stages in (STAGES[:-1], STAGES)
    ]
    return f"| {' | '.join([name, state, *medians, *sums])} |"


# ------------------------------------------------------------------------------- whole processes
def _processes(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Run the compilers as whole processes; the results by case."""
    contests: Sequence[Contest] = CONTESTS
    if options.input is not None:
        contests = (Contest(options.input, options.schedule, options.tile),)
    results = {}
    for contest in contests:
        with tempfile.TemporaryDirectory() as scratch:
            runs = {"legoc": _legoc(contest, options.target, Path(scratch))}
            if options.triton:
                runs["Triton"] = _triton(contest, options, Path(scratch))
            times = measured(runs, options.rounds)
        print(f"{contest.input.name}:")
        result: dict[str, Any] = {"input": contest.input.name, "tile": list(contest.tile)}
        for k, clock in enumerate(("wall clock", "processor")):
            seconds = {name: [pair[k] for pair in pairs] for name, pairs in times.items()}
            told = [f"{name} {_quartiles(values)} s" for name, values in seconds.items()]
            if "Triton" in seconds:
                both = zip(seconds["legoc"], seconds["Triton"], strict=True)
                told.append(f"legoc / Triton {_quartiles([a / b for a, b in both])}")
            print(f"  {clock}: {', '.join(told)}", flush=True)
            result[clock] = {
                name: [round(value, 4) for value in values] for name, values in seconds.items()
            }
        results[f"process_{contest.input.stem}"] = result
    return results


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


def _legoc(contest: Contest, target: str, scratch: Path) -> Callable[[], None]:
    output = scratch / "matmul.cubin"
    command = [sys.executable, "-m", "lego_mlir.cli", str(contest.input), f"--target={target}"]
    command += [f"--schedule={contest.schedule}"] if contest.schedule else []
    command += ["--emit=cubin", "-o", str(output)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))

    def run() -> None:
        output.unlink(missing_ok=True)
        _run(command, {"PYTHONPATH": path})
        assert output.stat().st_size > 1000

    return run


def _triton(contest: Contest, options: argparse.Namespace, scratch: Path) -> Callable[[], None]:
    script = scratch / "with_triton.py"
    script.write_text(TRITON)
    capability = "".join(filter(str.isdigit, options.target))
    command = [options.triton, str(script), *map(str, contest.tile), capability]

    def run() -> None:
        with tempfile.TemporaryDirectory(dir=scratch) as cache:
            _run(command, {"TRITON_CACHE_DIR": cache})

    return run


def _run(command: list[str], environment: dict[str, str]) -> None:
    subprocess.run(
        command, env=as_installed() | environment, capture_output=True, text=True, check=True
    )


def _quartiles(values: list[float], digits: int = 3) -> str:
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{median:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


if __name__ == "__main__":
    sys.exit(main())
