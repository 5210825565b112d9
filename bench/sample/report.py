"""How the library's choice does on random GEMMs: beside cuBLAS and the best config found."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from math import exp, log
from pathlib import Path
from typing import Any

from bench.gemm.cases import CUBLAS, short_name
from bench.gemm.references import GemmReference
from bench.peers.reads import READ
from bench.sample.build import CHOICE
from bench.sample.shapes import ALIGNED, ANY, LINES
from lego_mlir.hardware.dtypes import ELEMENT_BYTES

FEW = 32
"""Rows or columns of C up to which a GEMM has few."""

TUNED = 5
"""Candidates that the tuner measures at first use."""

Result = dict[str, Any]


def report(files: Iterable[Path], *, each: bool = False) -> str:
    """Return a table of ratios to cuBLAS by class, and the worst cases.

    Args:
        files: results of `sample run`.
        each: a row for each GEMM instead of the worst ones.
    """
    results = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    failed = [r for r in results if "error" in r]
    all_wrong = [
        (r["case"], name, text) for r in results for name, text in r.get("wrong", {}).items()
    ]
    wrong = [x for x in all_wrong if x[1] != CUBLAS]
    inexact = len(all_wrong) - len(wrong)
    good = [r for r in results if CHOICE in r.get("us", {}) and CUBLAS in r.get("us", {})]
    lines = [
        f"{len(results)} GEMMs, {len(failed)} failed, {len(wrong)} wrong kernels, "
        f"{len(good)} measured beside {CUBLAS}, which rounds partial sums in {inexact} of them",
        "",
        "| class | GEMMs | choice: mean | least | < 0.90 | < 0.97 | tuned: mean | least | < 0.97 "
        "| with gaps: mean | regret: mean | worst | of top 5: mean | worst |",
        "|---|" + "--:|" * 13,
    ]
    for name, is_in in _groups(good):
        group = [r for r in good if is_in(r)]
        if group:
            lines.append(_row(name, group))
    if each:
        lines += ["", *_each(good)]
        return "\n".join(lines) + "\n"
    lines += ["", "The least:", ""]
    for r in sorted(good, key=lambda r: ratio(r, CHOICE))[:25]:
        best = min(_ours(r), key=lambda n: r["us"][n])
        chosen = next(c for c in r["candidates"] if c["name"] == CHOICE)
        lines.append(
            f"- {ratio(r, CHOICE):.2f} {r['case']} ({r['class']}): {r['us'][CHOICE]:.2f} µs, "
            f"{CUBLAS} {r['us'][CUBLAS]:.2f}, best {r['us'][best]:.2f} by {best} "
            f"[{chosen['schedule']}]"
        )
    lines += [f"- failed {r['case']}: {r['error']}" for r in failed[:10]]
    lines += [f"- wrong {case}: {name}: {text}" for case, name, text in wrong[:10]]
    return "\n".join(lines) + "\n"


def ratio(result: Result, name: str, key: str = "rounds") -> float:
    """Return the median over the rounds of cuBLAS's time over that of a contender."""
    rounds = result[key]
    return statistics.median(
        peer / ours for peer, ours in zip(rounds[CUBLAS], rounds[name], strict=True)
    )


def _groups(results: Sequence[Result]) -> list[tuple[str, Callable[[Result], bool]]]:
    """Return the groups of a report: by class if the results are those of a list."""
    classes = dict.fromkeys(r["class"] for r in results)
    if not classes.keys() <= {ALIGNED, LINES, ANY}:
        all_of = ("all", lambda r: True)
        return [all_of, *((c, lambda r, c=c: r["class"] == c) for c in classes)]

    def size(r: Result) -> GemmReference:
        return GemmReference.from_json(r["reference"])

    def has_few(r: Result) -> bool:
        return min(size(r).m, size(r).n) <= FEW

    def is_large(r: Result) -> bool:
        return size(r).flops >= 2 * 300**3

    return [
        ("all", lambda r: True),
        ("aligned, lines", lambda r: r["class"] != "any"),
        ("… of few rows or columns", lambda r: r["class"] != "any" and has_few(r)),
        ("… the others", lambda r: r["class"] != "any" and not has_few(r)),
        ("any", lambda r: r["class"] == "any"),
        ("… of few rows or columns", lambda r: r["class"] == "any" and has_few(r)),
        (
            "… the others, from 300³",
            lambda r: r["class"] == "any" and not has_few(r) and is_large(r),
        ),
    ]


def _each(results: Sequence[Result]) -> list[str]:
    """Return a table with a row for each GEMM."""
    has_reads = any(READ in r["us"] for r in results)
    columns = ["class", "GEMM", "A, B", "choice, µs", CUBLAS, "ratio", "tuned", "TFLOP/s", "TB/s"]
    columns += [f"{READ}, TB/s", "of it", "tuned, of it"] if has_reads else []
    lines = ["| " + " | ".join(columns) + " |", "|---|---|---|" + "--:|" * (len(columns) - 3)]
    for r in results:
        x = GemmReference.from_json(r["reference"])
        size, us = ELEMENT_BYTES[x.dtype], r["us"]
        read = (x.m + x.n) * x.k * size
        moved = read + x.m * x.n * ELEMENT_BYTES[x.out]
        best = min(us[n] for n in _tuned(r))
        cells = [
            r["class"],
            f"{x.m}×{x.n}×{x.k}",
            f"{short_name(x.dtype)} {x.transposes}",
            f"{us[CHOICE]:.2f}",
            f"{us[CUBLAS]:.2f}",
            f"{ratio(r, CHOICE):.2f}",
            f"{max(ratio(r, n) for n in _tuned(r)):.2f}",
            f"{x.flops / us[CHOICE] / 1e6:.0f}",
            f"{moved / us[CHOICE] / 1e6:.2f}",
        ]
        if READ in us:
            rate = read / us[READ]
            cells += [f"{rate / 1e6:.2f}"]
            cells += [f"{moved / t / rate:.2f}" for t in (us[CHOICE], best)]
        elif has_reads:
            cells += [""] * 3
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _ours(result: Result) -> list[str]:
    return [name for name in result["us"] if name not in (CUBLAS, READ)]


def _row(name: str, group: Sequence[Result]) -> str:
    chosen = [ratio(r, CHOICE) for r in group]
    tuned = [max(ratio(r, n) for n in _tuned(r)) for r in group]
    gaps = [ratio(r, CHOICE, "gap_rounds") for r in group if CHOICE in r.get("gap_rounds", {})]
    regret = [r["us"][CHOICE] / min(r["us"][n] for n in _ours(r)) for r in group]
    top = [min(r["us"][n] for n in _tuned(r)) / min(r["us"][n] for n in _ours(r)) for r in group]
    cells = [
        str(len(group)),
        f"{mean(chosen):.3f}",
        f"{min(chosen):.2f}",
        str(sum(x < 0.90 for x in chosen)),
        str(sum(x < 0.97 for x in chosen)),
        f"{mean(tuned):.3f}",
        f"{min(tuned):.2f}",
        str(sum(x < 0.97 for x in tuned)),
        f"{mean(gaps):.3f}" if gaps else "",
        f"{mean(regret):.3f}",
        f"{max(regret):.2f}",
        f"{mean(top):.3f}",
        f"{max(top):.2f}",
    ]
    return f"| {name} | " + " | ".join(cells) + " |"


def _tuned(result: Result) -> list[str]:
    """Return the candidates that the tuner would measure: the choice and the first ones."""
    return _ours(result)[: TUNED + 1]


def mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return exp(sum(map(log, values)) / len(values))
