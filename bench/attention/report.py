"""The table of a file of results of attention."""

from __future__ import annotations

import json
from math import exp, log
from pathlib import Path
from typing import Any

from bench.attention.cases import ERRORS, OPEN, READ, VARIANT
from bench.contenders.case import OURS
from lego_mlir.files import write_whole


def report(results: Path) -> str:
    """Write the table of a file of results beside it, and return it."""
    rows = list({row["case"]: row for row in map(json.loads, results.open())}.values())
    device = next((row["device"] for row in rows if "device" in row), "no GPU")
    lines = [
        f"# Attention, {device}",
        "",
        "Kernel time in µs and rates: medians of interleaved rounds, by CUDA graphs; f16 where the",
        "case says nothing else, with the logarithms of sums. `ratio` is the time of the fastest",
        "other one over that of ours, `read` that of a kernel that only reads keys and values, and",
        "`open` that of our kernel whose batch and lengths only the launch knows.",
        "",
        "| case | ours | rate | others | ratio | read | open | commit |",
        "|---|--:|--:|---|--:|--:|--:|---|",
    ]
    ratios: dict[str, list[float]] = {}
    timed = [row for row in rows if row["figure"] != ERRORS]
    lines += [*(_row(row, ratios) for row in timed), ""]
    for kind, each in ratios.items():
        mean = exp(sum(map(log, each)) / len(each))
        lines.append(f"{kind}: {len(each)} cases, mean {mean:.3f}, least {min(each):.3f}")
    found = [row for row in timed if any(x.startswith(VARIANT) for x in row.get("errors", {}))]
    lines += _errors("The largest errors, of f32:", found)
    hostile = [row for row in rows if row["figure"] == ERRORS]
    lines += _errors("The largest errors for hostile inputs, of f64:", hostile)
    text = "\n".join(lines) + "\n"
    write_whole(results.with_suffix(".md"), text.encode())
    return text


def _errors(title: str, rows: list[dict[str, Any]]) -> list[str]:
    """Return the table of errors of some rows."""
    if not rows:
        return []
    names = list(dict.fromkeys([OURS, *(name for row in rows for name in row["errors"])]))
    lines = ["", title, ""]
    lines += [f"| case | {' | '.join(names)} |", f"|---{'|--:' * len(names)}|"]
    for row in rows:
        found = [f"{row['errors'][n]:.2e}" if n in row["errors"] else "" for n in names]
        lines.append(f"| {' | '.join([row['case'], *found])} |")
    return lines


def _row(row: dict[str, Any], ratios: dict[str, list[float]]) -> str:
    if "error" in row:
        return f"| {row['case']} | | | {row['error']} | | | | {row['commit']} |"
    times = dict(row["us"])
    ours = times.pop(OURS, None)
    reading, opened = times.pop(READ, None), times.pop(OPEN, None)
    wrong = "".join(f", WRONG: {name} {what}" for name, what in row["wrong"].items())
    others = ", ".join(f"{name} {us:.1f}" for name, us in times.items())
    times = {name: us for name, us in times.items() if not name.startswith(VARIANT)}
    if ours is None:
        return f"| {row['case']} | | | {others} | | {row['commit']} |"
    scale = 1e6 if row["unit"] == "TFLOP/s" else 1e3
    rate = f"{row['work'] / ours / scale:.0f} {row['unit']}"
    ratio = ""
    if times:
        value = min(times.values()) / ours
        ratios.setdefault(row["figure"], []).append(value)
        ratio = f"{value:.2f}"
    read, open_ = ("" if us is None else f"{us / ours:.2f}" for us in (reading, opened))
    cells = f"{row['case']}{wrong}", f"{ours:.1f}", rate, others, ratio, read, open_, row["commit"]
    return f"| {' | '.join(cells)} |"
