"""`python -m bench moves report`: the table of a file of results, and what it says of all cases."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.case import COPIES
from bench.measure.traffic import excess
from bench.moves.case import COMPILED, EAGER, OURS
from lego_mlir.files import write_whole

_UNITS = "sectors", "half_lines", "wavefronts"

_GOAL = 0.8
"""Permutations below this part of a copy are listed in the summary."""


def report(results: Path) -> str:
    """Write the table of a file of results beside it, and return it."""
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    measured = [row for row in rows if "error" not in row]
    lines = [
        f"# Kernels that only move data, {measured[0]['device']}",
        "",
        "Kernel time in µs: medians of interleaved rounds, by CUDA graphs, tensors rotated past",
        "the L2 cache. A copy is the faster of the driver's and a kernel's, of the same bytes.",
        "A ratio is the median over the rounds of the other time over ours: above 1 we are faster.",
        "`sectors`, `halves` and `conflicts` are the sectors, the halves of lines that are read",
        "and the wavefronts of shared memory that some CTAs touch, over the least, by the",
        "simulator.",
        "",
        *_summary(measured),
        "",
        "| case | ours | TB/s | of a copy | torch eager | torch.compile | sectors | halves |"
        " conflicts | also ours | commit |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|---|",
        *(_line(row) for row in rows),
    ]
    text = "\n".join(lines) + "\n"
    write_whole(results.with_suffix(".md"), text.encode())
    return text


def ratio(row: dict[str, Any], peer: str) -> float | None:
    """Return the median over the rounds of a contender's time over ours; `None` without it."""
    times = row["rounds"]
    if OURS not in times or peer not in times:
        return None
    return statistics.median(
        other / own for own, other in zip(times[OURS], times[peer], strict=True)
    )


def of_a_copy(row: dict[str, Any]) -> float | None:
    """Return the time of the faster copy over ours."""
    copies = [name for name in COPIES if name in row["us"]]
    return ratio(row, min(copies, key=row["us"].__getitem__)) if copies else None


def _summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each kind of case, by the first word of its name."""
    kinds: dict[str, list[tuple[float, str]]] = {}
    for row in rows:
        found = of_a_copy(row)
        if found is not None and not row["wrong"]:
            kinds.setdefault(row["case"].partition("_")[0], []).append((found, row["case"]))
    lines = []
    for kind, found in kinds.items():
        parts = sorted(part for part, _ in found)
        low = sum(part < _GOAL for part in parts)
        lines.append(
            f"- {kind}: {len(parts)} cases, median {statistics.median(parts):.2f} of a copy, "
            f"least {parts[0]:.2f}, {low} below {_GOAL}"
        )
    return lines


def _line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"| {row['case']} | {row['error']} {'| ' * 9}| {row['commit']} |"
    times = row["us"]
    wrong = f" wrong: {row['wrong']}" if row["wrong"] else ""
    others = [n for n in times if n not in (OURS, EAGER, COMPILED, *COPIES)]
    rate = f"{row['bytes'] / times[OURS] / 1e6:.2f}" if OURS in times else ""
    cells = [
        f"{row['case']}{wrong}",
        f"{times[OURS]:.1f}" if OURS in times else "",
        rate,
        _cell(of_a_copy(row)),
        _cell(ratio(row, EAGER)),
        _cell(ratio(row, COMPILED)),
        *(excess(row.get("traffic", {}), unit) for unit in _UNITS),
        ", ".join(f"{name} {times[name]:.1f}" for name in others),
        row["commit"],
    ]
    return f"| {' | '.join(cells)} |"


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
