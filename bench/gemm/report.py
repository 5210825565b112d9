"""The report of GEMMs: rates, ratios to cuBLAS, and the machine code of the main loops."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from bench.gemm.cases import CUBLAS, CUBLAS_FAST
from bench.gemm.references import GemmReference
from bench.report.results import OURS, Result, is_verified, rate, ratio, time
from bench.report.tables import (
    call_section,
    commits_and_devices,
    method,
    number,
    ratio_cell,
    remarks,
    table,
)
from lego_mlir.diagnostics import LegoError

_OTHER_RUNS = Path(__file__).parents[1] / "peers" / "other_runs.json"

_SHOWN = (
    *("HGMMA", "IGMMA", "QGMMA", "HMMA", "IMMA", "LDSM", "LDS", "LDGSTS", "UTMALDG"),
    *("LDG", "STS", "STSM", "BAR", "SYNCS", "SHFL"),
)
"""Instructions that get a column if a main loop has them; the others are counted together."""


@cache
def other_runs() -> dict[str, dict[str, Any]]:
    """Return the peers measured in other runs: what, on which device, how, and times by case."""
    found: dict[str, dict[str, Any]] = json.loads(_OTHER_RUNS.read_text())
    return found


def report(results: Sequence[Result]) -> str:
    """Return the Markdown of results."""
    parts = [preamble(results)]
    for variant in dict.fromkeys(r["variant"] for r in results):
        group = [r for r in results if r["variant"] == variant]
        chosen = f"schedule `{variant}`" if variant else "schedule chosen by the library"
        parts += [f"## Kernel time, {chosen}\n", kernel_table(group)]
    parts += ["## Summary\n", summary_table(results)]
    code = code_table(results)
    if code:
        parts += ["## Machine code\n", _CODE, code]
    return "\n".join([*parts, *call_section(results), *remarks(results)])


# -------------------------------------------------------------------------------------- tables
def kernel_table(results: Sequence[Result]) -> str:
    """Return rates and ratios to cuBLAS, and in parentheses those of peers from other runs."""
    others = [
        (peer, run["cases"])
        for peer, run in other_runs().items()
        if any(r["case"] in run["cases"] for r in results)
    ]
    fast = any(CUBLAS_FAST in r["verified"] for r in results)
    head = ["case", "correct", "error", "µs", "TFLOP/s", "cuBLAS TFLOP/s", "vs cuBLAS"]
    head += ["fast accumulation TFLOP/s", "vs fast accumulation"] if fast else []
    head += [f"({peer} vs cuBLAS)" for peer, _ in others]
    rows = []
    for r in results:
        row = [
            r["case"],
            "yes" if is_verified(r) else "**no**",
            _error(r),
            number(time(r, OURS)),
            number(rate(r), 1),
            number(rate(r, CUBLAS), 1),
            ratio_cell(r, CUBLAS),
        ]
        row += [number(rate(r, CUBLAS_FAST), 1), ratio_cell(r, CUBLAS_FAST)] if fast else []
        row += [number(cases.get(r["case"], {}).get("of_cublas")) for _, cases in others]
        rows.append(row)
    return table(head, rows)


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """The cases that one row of the summary covers: one variant and type, square or not."""

    variant: str
    dtype: str
    square: bool

    @staticmethod
    def of(result: Result) -> SummaryRow:
        """Return the row that covers a result."""
        reference = GemmReference.from_json(result["reference"])
        square = reference.m == reference.n == reference.k
        return SummaryRow(result["variant"], reference.dtype, square)

    def __str__(self) -> str:
        shapes = "squares" if self.square else "other shapes"
        return f"{self.dtype}, {shapes}" + (f", {self.variant}" if self.variant else "")


def summary_table(results: Sequence[Result]) -> str:
    """Return per row the number of cases at least as fast as cuBLAS, the mean and the worst."""
    groups: dict[SummaryRow, list[Result]] = {}
    for r in results:
        groups.setdefault(SummaryRow.of(r), []).append(r)
    rows = []
    for group, members in groups.items():
        fast = any(CUBLAS_FAST in r["verified"] for r in members)
        for peer in (CUBLAS, CUBLAS_FAST) if fast else (CUBLAS,):
            known = {r["case"]: x for r in members if (x := _median(r, peer)) is not None}
            row = [str(group), peer, f"{len(known)} of {len(members)}"]
            if known:
                worst = min(known, key=known.__getitem__)
                row += [
                    str(sum(x >= 1 for x in known.values())),
                    number(geometric_mean(known.values()), 3),
                    f"{known[worst]:.2f} ({worst})",
                ]
            rows.append(row + [""] * (6 - len(row)))
    return table(["cases", "peer", "compared", "ratio ≥ 1", "geometric mean", "worst"], rows)


_CODE = (
    "Registers and bytes of local memory (spills included) per thread, and KiB of shared memory "
    "per CTA, as the driver reports them. The other columns count the instructions of the main "
    "loop, which is the innermost loop with the most matrix instructions. If a producer warp does "
    "the asynchronous copies, they are counted in its own loop.\n"
)


def code_table(results: Sequence[Result]) -> str:
    """Return resources and instruction counts of each kernel; empty if none are known."""
    known = [r for r in results if r.get("resources")]
    loops = {r["case"]: _loop(r) for r in known}
    shown = [name for name in _SHOWN if any(name in loop for loop in loops.values())]
    disassembled = any(loops.values())
    head = ["case", "registers", "local", "shared", *shown]
    head += ["other", "local accesses"] if disassembled else []
    rows = []
    for r in known:
        loop = loops[r["case"]]
        used = list(r["resources"].values())
        shared = max(x["static"] + x["dynamic"] for x in used)
        row = [
            r["case"],
            str(max(x["registers"] for x in used)),
            str(max(x["local"] for x in used)),
            number(shared / 1024, 1),
            *(str(loop.get(name, "")) for name in shown),
        ]
        if disassembled:
            row.append(str(sum(n for name, n in loop.items() if name not in shown) or ""))
            row.append(str(_local_accesses(r)) if "sass" in r else "")
        rows.append(row)
    return table(head, rows) if rows else ""


def _loop(result: Result) -> dict[str, int]:
    """Return the main loop's instruction counts, with the copies of the loop that copies."""
    counts: dict[str, int] = {}
    for kernel in result.get("sass", {}).values():
        if kernel["loop"]:
            counts = dict(kernel["loop"])
            copies = ("LDGSTS", "UTMALDG")
            counts |= {x: n for x, n in kernel["copies"].items() if x in copies}
    return counts


def _local_accesses(result: Result) -> int:
    """Return the number of loads and stores of local memory in the whole kernel."""
    counts = [kernel["kernel"] for kernel in result["sass"].values()]
    return sum(x.get("LDL", 0) + x.get("STL", 0) for x in counts)


def _median(result: Result, peer: str) -> float | None:
    try:
        return ratio(result, peer).median
    except LegoError:
        return None


def _error(result: Result) -> str:
    """Return ‖C - AB‖ / ‖AB‖ of our output."""
    verdict = result.get("verdicts", {}).get(OURS)
    return "" if verdict is None or not is_verified(result) else f"{verdict['deviation']:.1e}"


# ------------------------------------------------------------------------------------ preamble
_INPUTS = (
    "Inputs are standard normal (integers: the whole range). Every element of every set is "
    "compared with a GEMM in f64; `error` is ‖C - AB‖ / ‖AB‖. `NT` is A row-major and B "
    "column-major, as in BLAS."
)


def preamble(results: Sequence[Result]) -> str:
    """Return the paragraphs on commit, device, method, and peers from other runs."""
    parts = [commits_and_devices(results), method(results, _INPUTS)]
    paragraphs = [" ".join(part for part in parts if part) + "\n"]
    for peer, run in other_runs().items():
        if any(r["case"] in run["cases"] for r in results):
            paragraphs.append(
                f"In parentheses, from another run: {peer} ({run['what']}) on an "
                f"{run['device']}, {run['method']}.\n"
            )
    return "\n".join(paragraphs)
