"""How the library's choice does on random GEMMs: beside cuBLAS and the best config found."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from math import exp, log
from pathlib import Path
from typing import Any

from bench.gemm.cases import CUBLAS
from bench.gemm.references import GemmReference
from bench.sample.build import CHOICE

FEW = 32
"""Rows or columns of C up to which a GEMM has few."""

TUNED = 5
"""Candidates that the tuner measures at first use."""

Result = dict[str, Any]


def report(files: Iterable[Path]) -> str:
    """Return a table of ratios to cuBLAS by class, and the worst cases."""
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
    for name, is_in in _groups():
        group = [r for r in good if is_in(r)]
        if group:
            lines.append(_row(name, group))
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


def _groups() -> list[tuple[str, Callable[[Result], bool]]]:
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


def _ours(result: Result) -> list[str]:
    return [name for name in result["us"] if name != CUBLAS]


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
