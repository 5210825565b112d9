"""The table of a file of results of the figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.contenders.case import OURS, PRINTED
from bench.figures.published import PUBLISHED
from lego_mlir.files import write_whole


def report(results: Path, *further: str) -> str:
    """Write the table of a file of results beside it, and further parts; return the text."""
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    latest = {row["case"]: row for row in rows}
    device = next((row["device"] for row in rows if "device" in row), "no GPU")
    lines = [
        f"# The papers' figures, {device}",
        "",
        "Kernel time in µs: medians of interleaved rounds, by CUDA graphs. `printed` are the",
        "templates of docs/examples, filled; `by hand` the same kernels with indices by hand. Ours",
        "over printed is the time of the fastest printed kernel over that of ours.",
        "",
        "| figure | case | ours | printed and by hand | libraries | ours over printed | reported |",
        "|---|---|--:|---|---|--:|---|",
    ]
    lines += [_row(row) for row in latest.values()]
    text = "\n".join([*lines, *(f"\n{part}" for part in further)]) + "\n"
    write_whole(results.with_suffix(".md"), text.encode())
    return text


def _row(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"| {row['figure']} | {row['case']} | | {row['error']} | | | |"
    times: dict[str, float] = row["us"]
    wrong = "".join(f", WRONG: {name}" for name in row["wrong"])
    own = {n: us for n, us in times.items() if n.startswith(OURS)}
    ours = min(own.values(), default=None)
    printed = {n: us for n, us in times.items() if n.startswith(PRINTED)}
    kernels = {n: us for n, us in times.items() if n.startswith((PRINTED, "by hand"))}
    others = {n: us for n, us in times.items() if n not in own and n not in kernels}

    def listed(some: dict[str, float]) -> str:
        return ", ".join(f"{name} {us:.1f}" for name, us in some.items())

    ratio = f"{min(printed.values()) / ours:.2f}" if ours and printed else ""
    rate = ""
    if ours and row["unit"]:
        scale = 1e6 if row["unit"] == "TFLOP/s" else 1e3
        rate = f" ({row['work'] / ours / scale:.0f} {row['unit']})"
    several = f": {listed(own)}" if len(own) > 1 else ""
    return (
        f"| {row['figure']} | {row['case']}{wrong} | "
        f"{f'{ours:.1f}{rate}{several}' if ours else ''} | "
        f"{listed(kernels)} | {listed(others)} | {ratio} | {PUBLISHED.get(row['case'], '')} |"
    )
