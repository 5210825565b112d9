"""`python -m bench compile`: measure compile times; needs no GPU.

    python -m bench compile [--triton PYTHON] [--rounds N] [-o FILE.jsonl] [INPUT.mlir]
    python -m bench compile --variants [--only WORD] [--rounds N] [-o FILE.jsonl]

The first form times whole processes: `legoc INPUT.mlir --emit=cubin` in this Python and, beside it,
the Triton tutorial's matmul of the same tile, compiled ahead of time with an empty cache by the
Python that is named (it needs Triton, but no GPU). The two alternate, and each starts every other
round. A first round that is not counted warms the disk's cache for both. Medians and quartiles are
printed of the wall-clock time, of the processor time, which other work on the machine disturbs
less, and of the ratios.

Modules are compiled to bytecode once, as in an installation, even if PYTHONDONTWRITEBYTECODE is
set: a checkout would spend half a second on that in each process.

The second form compiles the library's kernels inside one process, see `bench.compile.variants`,
in processor time. With -o the results are written as JSON lines.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.build import commit, select
from bench.compile.processes import CASES, ProcessCase, time_processes
from bench.compile.variants import STAGES, VARIANTS, Times, cold, processor, versions, warm
from lego_mlir.files import write_whole
from lego_mlir.progress import track


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `bench compile`."""
    parser.add_argument("input", type=Path, nargs="?", metavar="INPUT.mlir")
    parser.add_argument("--schedule", help="of INPUT.mlir; default: the module's own")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--triton", metavar="PYTHON", help="a Python that has Triton")
    parser.add_argument(
        "--tile", type=int, nargs=5, default=(128, 128, 64, 4, 4), metavar="N",
        help="Triton's tile m, n, k, its warps and stages (%(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--variants", action="store_true", help="times by stage, inside one Python process"
    )
    parser.add_argument("--only", default="", help="variants whose name contains this")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("-o", dest="output", type=Path, metavar="FILE", help="write JSON lines")


def run(options: argparse.Namespace) -> int:
    """Print the times; return 1 if a compiler fails, else 0."""
    print(f"{processor()}, {os.cpu_count()} cores, no GPU used")
    try:
        results = _variants(options) if options.variants else _processes(options)
    except subprocess.CalledProcessError as e:
        print(f"{' '.join(map(str, e.cmd))[:200]} fails:\n{e.stderr}", file=sys.stderr)
        return 1
    if options.output is not None:
        origin = {"commit": commit(), "device": processor(), "versions": versions()}
        lines = [json.dumps({"case": case, **origin, **r}) for case, r in results.items()]
        write_whole(options.output, "".join(line + "\n" for line in lines).encode())
    return 0


# ----------------------------------------------------------------------------- in a Python process
def _variants(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Compile the variants inside one process; return the results by case."""
    names = select(list(VARIANTS), [options.only])
    found = warm(names, options.target, options.rounds)
    cold(names[0], options.target)  # leaves the modules' bytecode behind, as an installation does
    print(f"\n{_VARIANT_HEAD}")
    results = {}
    for name in names:
        states = {
            "cold": [cold(name, options.target) for _ in track(name, range(options.rounds))],
            "warm": found[name].pop("warm"),
            "again": found[name].pop("again"),
        }
        for state, rounds in states.items():
            print(_variant_row(name, state, rounds), flush=True)
        milliseconds = {
            state: {stage: [round(times[stage], 2) for times in rounds] for stage in rounds[0]}
            for state, rounds in states.items()
        }
        results[f"compile_{name}"] = {**found[name], "ms": milliseconds}
    return results


_VARIANT_HEAD = """\
| variant | state | imports | layouts | index | nvvm | ptx | cubin | layouts to PTX, ms | layouts to cubin, ms |
| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |"""  # noqa: E501


def _variant_row(name: str, state: str, rounds: Sequence[Times]) -> str:
    """Return a row of the table: medians by stage, and the sums of stages with quartiles."""
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
    """Run the compilers as whole processes; return the results by case."""
    cases: Sequence[ProcessCase] = CASES
    if options.input is not None:
        cases = (ProcessCase(options.input, options.schedule, options.tile),)
    results = {}
    for case in cases:
        times = time_processes(case, options.target, options.triton, options.rounds)
        print(f"{case.input.name}:")
        result: dict[str, Any] = {"input": case.input.name, "tile": list(case.tile)}
        for k, clock in enumerate(("wall clock", "processor")):
            seconds = {name: [pair[k] for pair in pairs] for name, pairs in times.items()}
            cells = [f"{name} {_quartiles(values)} s" for name, values in seconds.items()]
            if "Triton" in seconds:
                both = zip(seconds["legoc"], seconds["Triton"], strict=True)
                cells.append(f"legoc / Triton {_quartiles([a / b for a, b in both])}")
            print(f"  {clock}: {', '.join(cells)}", flush=True)
            result[clock] = {
                name: [round(value, 4) for value in values] for name, values in seconds.items()
            }
        results[f"process_{case.input.stem}"] = result
    return results


def _quartiles(values: list[float], digits: int = 3) -> str:
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{median:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"
