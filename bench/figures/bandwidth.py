"""QuACK's table: the bandwidth of kernels on rows by their length, from the results of `rows`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.case import COPIES
from bench.contenders.case import OURS

_CASE = re.compile(r"(softmax|cross_entropy|rmsnorm|layernorm)_(b?f16|f32)_(\d+)x(\d+)")

PUBLISHED = (
    "QuACK reports about 3 TB/s, 90 % of an H100's 3.35 TB/s, for softmax, RMSNorm and "
    "cross-entropy of rows longer than 4096 elements, and 3.01 TB/s for softmax in f32 of 262144."
)
"""From the post's text (papers/quack_speed_of_light.txt)."""


def lines(results: Path) -> Iterator[str]:
    """Yield the lines of the table, in TB/s of the bytes that must be read and written."""
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    latest = {row["case"]: row for row in rows if "us" in row}
    yield "## QuACK: bandwidth of kernels on rows"
    yield ""
    yield f"{PUBLISHED} TB/s here, of the lines of {results.name}:"
    yield ""
    yield "| kernel | type | rows | columns | ours | others | copy | commit |"
    yield "|---|---|--:|--:|--:|---|--:|---|"
    found = ((_CASE.fullmatch(name), row) for name, row in latest.items())
    for match, row in sorted(((m, row) for m, row in found if m), key=lambda each: _order(each[0])):
        yield f"| {' | '.join((*match.groups(), *_rates(row)))} | {row['commit']} |"


def _order(match: re.Match[str]) -> tuple[str, str, int, int]:
    kernel, dtype, rows, columns = match.groups()
    return kernel, dtype, int(columns), int(rows)


def _rates(row: dict[str, Any]) -> tuple[str, str, str]:
    """Return the rates of ours, of the others and of the faster copy."""
    rates = {name: row["bytes"] / us / 1e6 for name, us in row["us"].items()}
    copies = [rates[name] for name in COPIES if name in rates]
    others = [f"{n} {rate:.2f}" for n, rate in rates.items() if n != OURS and n not in COPIES]
    return f"{rates[OURS]:.2f}", ", ".join(others), f"{max(copies):.2f}" if copies else ""
