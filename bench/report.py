"""Step three: a table of what was measured."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from bench.run import median_ratio


def report(file: Path) -> str:
    """The Markdown table of a file of JSON lines."""
    results = [json.loads(line) for line in file.read_text().splitlines()]
    commits = sorted({r["commit"] for r in results})
    devices = sorted({r["device"] for r in results if "device" in r})
    peers = list(dict.fromkeys(p for r in results for p in r.get("peers", {})))
    head = ["case", "right", "µs", "TB/s", *(f"of {p}" for p in peers)]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    for r in results:
        row = [r["case"], "yes" if r["correct"] else "**no**"]
        if "us" in r:
            us = statistics.median(r["us"])
            row += [f"{us:.2f}", f"{r['bytes'] / us / 1e6:.2f}"]
            row += [f"{median_ratio(r, p):.2f}" for p in peers]
        rows.append(row + [""] * (len(head) - len(row)))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return (
        f"Commit {', '.join(commits)}, {', '.join(devices)}. Kernel times by CUDA graphs, inputs "
        "rotated past the L2 cache, medians of interleaved rounds; a ratio above 1 means that we "
        f"are faster.\n\n{table}\n"
    )
