"""`python -m bench tiles report`: the table of a file of results."""

from __future__ import annotations

import json
from pathlib import Path

from lego_mlir.files import write_whole

_OURS = "ours"


def report(results: Path) -> str:
    """Write the table of a file of results beside it, and return it."""
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    lines = [
        f"# Programs on tiles, {rows[0]['device']}",
        "",
        "Kernel time in µs: medians of interleaved rounds, by CUDA graphs, inputs rotated past the",
        "L2 cache where memory matters. `ratio` is the fastest other time over ours. A conversion",
        "or gather is 256 times one tile of 132 CTAs of four warps each; `shuffles` and `shared",
        "memory` are the same program compiled to that road, ours is the compiler's own choice.",
        "",
        "| program | ours | others | ratio | commit |",
        "|---|--:|---|--:|---|",
    ]
    for row in rows:
        if "error" in row:
            lines.append(f"| {row['case']} | | {row['error']} | | {row['commit']} |")
            continue
        times = dict(row["us"])
        ours = times.pop(_OURS)
        others = ", ".join(f"{name} {us:.1f}" for name, us in times.items())
        ratio = f"{min(times.values()) / ours:.2f}" if times else ""
        wrong = f" wrong: {row['wrong']}" if row["wrong"] else ""
        lines.append(
            f"| {row['case']}{wrong} | {ours:.1f} | {others} | {ratio} | {row['commit']} |"
        )
    text = "\n".join(lines) + "\n"
    write_whole(results.with_suffix(".md"), text.encode())
    return text
