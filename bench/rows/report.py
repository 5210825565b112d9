"""`python -m bench rows report`: the table of a file of results."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from bench.case import COPIES
from bench.measure.traffic import excess
from lego_mlir.files import write_whole

_OURS = "ours"


def report(results: Path) -> str:
    """Write the table of a file of results beside it, and return it."""
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    measured = [row for row in rows if "us" in row]
    lines = [
        f"# Kernels on rows, {measured[0]['device']}",
        "",
        "Kernel time in µs: medians of interleaved rounds, by CUDA graphs, inputs rotated past the",
        "L2 cache. `peer` and `copy` are the fastest other time, and the fastest copy of the bytes",
        "of the matrices, over ours: medians of the rounds' ratios. TB/s counts these bytes.",
        "`sectors` and `conflicts` are the sectors and the wavefronts of shared memory that some",
        "CTAs touch, over the least, by the simulator. `error` is the largest of an element: in",
        "units of the last place of outputs of 2 bytes; of f32 relative to the largest, and",
        "PyTorch's beside it.",
        "",
        "| kernel | ours | TB/s | copy | others | peer | copy | sectors | conflicts | error | how"
        " | commit |",
        "|---|--:|--:|--:|---|--:|--:|--:|--:|--:|---|---|",
    ]
    ratios = []
    for row in rows:
        if "us" not in row:
            cells = (row["case"], "", "", "", row["error"], *[""] * 6, row["commit"])
            lines.append(f"| {' | '.join(cells)} |")
            continue
        us, rounds = dict(row["us"]), row["rounds"]
        ours = us.pop(_OURS)
        copies = {name: us.pop(name) for name in COPIES if name in us}
        copy = min(copies, key=copies.__getitem__) if copies else None
        others = ", ".join(f"{name} {n:.1f}" for name, n in us.items())
        best = min(us, key=us.__getitem__) if us else None
        peer = _ratio(rounds, best) if best else None
        ratios += [peer] if peer else []
        wrong = f" wrong: {row['wrong']}" if row["wrong"] else ""
        cells = (
            f"{row['case']}{wrong}",
            f"{ours:.1f}",
            f"{row['bytes'] / ours / 1e6:.2f}",
            f"{copies[copy]:.1f}" if copy else "",
            others,
            f"{peer:.2f}" if peer else "",
            f"{_ratio(rounds, copy):.2f}" if copy else "",
            excess(row.get("traffic", {}), "sectors"),
            excess(row.get("traffic", {}), "wavefronts"),
            _error(row),
            row["how"],
            row["commit"],
        )
        lines.append(f"| {' | '.join(cells)} |")
    if ratios:
        mean = statistics.geometric_mean(ratios)
        lines += [
            "",
            f"Ratio to the fastest peer: geometric mean {mean:.3f}, least {min(ratios):.2f}.",
        ]
    text = "\n".join(lines) + "\n"
    write_whole(results.with_suffix(".md"), text.encode())
    return text


def _ratio(rounds: dict[str, list[float]], other: str) -> float:
    return statistics.median(b / a for a, b in zip(rounds[_OURS], rounds[other], strict=True))


def _error(row: dict[str, Any]) -> str:
    """Return the errors of a line of results as text; nothing if it has none."""
    if row.get("units"):
        return f"{max(row['units'].values()):.2f}"
    return " / ".join(f"{error:.0e}" for error in row.get("errors", {}).values())
