"""The report of data movements: bandwidth, and the ratios to the copy and to every peer."""

from __future__ import annotations

from collections.abc import Sequence

from bench.case import COPIES
from bench.report.results import OURS, Result, bandwidth, fastest_copy, is_verified, time
from bench.report.tables import (
    call_section,
    commits_and_devices,
    method,
    number,
    ratio_cell,
    remarks,
    table,
    timed,
)


def report(results: Sequence[Result]) -> str:
    """Return the Markdown of results."""
    parts = [_preamble(results), "## Kernel time\n", kernel_table(results)]
    return "\n".join([*parts, *call_section(results), *remarks(results)])


def kernel_table(results: Sequence[Result]) -> str:
    """Return time and bandwidth of our kernels, and the ratio to the copy and to every peer."""
    peers = [p for p in timed(results, "us") if p not in (OURS, *COPIES)]
    head = ["case", "correct", "µs", "TB/s", "vs copy", *(f"vs {p}" for p in peers)]
    rows = []
    for r in results:
        copy = fastest_copy(r)
        rows.append(
            [
                r["case"],
                "yes" if is_verified(r) else "**no**",
                number(time(r, OURS)),
                number(bandwidth(r)),
                "" if copy is None else ratio_cell(r, copy, "us"),
                *(ratio_cell(r, p, "us") for p in peers),
            ]
        )
    return table(head, rows)


def _preamble(results: Sequence[Result]) -> str:
    parts = [commits_and_devices(results), method(results)]
    if parts[1]:
        parts.append("The copy is the faster of the driver's and of a kernel's, of the same bytes.")
    return " ".join(part for part in parts if part) + "\n"
