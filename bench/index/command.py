"""`python -m bench index`: measure how fast index expressions are derived, and how short they are.

Every expression is derived in this process with all caches cleared, starting from the layout's
text; imports on the way count. It is checked at random points against the layout on plain arrays,
and has no figures if it is wrong. Operations are counted twice: as the cost model does, with common
subexpressions counted once, and as `arith` operations after MLIR's canonicalization, without
constants. With --json the results are written as JSON lines, and the table beside them as .md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bench.build import commit
from bench.index.expressions import COMPARED, NOT_COMPARED
from bench.index.measure import REPEATS, measure
from lego_mlir.files import write_whole

MIN_SPEEDUP = 20
"""The speed-up over the reference that we aim at, all expressions together."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `bench index`."""
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write JSON lines, and the table beside them as .md",
    )
    parser.add_argument("--only", default="", help="expressions whose name contains this")


def run(only: str = "", output: Path | None = None) -> int:
    """Derive, check, count and print the expressions; return how many are wrong."""
    rows = [row for row in (*COMPARED, *NOT_COMPARED) if only in row.name]
    checkout = commit()
    results = [{**measure(row), "commit": checkout} for row in rows]
    table = report(results)
    print(table, end="")
    if output is not None:
        write_whole(output, "".join(json.dumps(r) + "\n" for r in results).encode())
        write_whole(output.with_suffix(".md"), table.encode())
    return sum(not r["correct"] for r in results)


def report(results: list[dict[str, Any]]) -> str:
    """Return the Markdown table of the results, with the totals."""
    head = ["expression", "operations", "reference", "arith", "ms", "again"]
    head += ["reference, ms", "speed-up"]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    for r in results:
        if not r["correct"]:
            rows.append([r["name"], "**wrong**", *[""] * (len(head) - 2)])
            continue
        operations, seconds = r["reference"]["operations"], r["reference"]["seconds"]
        rows.append(
            [
                r["name"],
                str(r["operations"]),
                "" if operations is None else str(operations),
                str(r["arith"]),
                f"{r['seconds'] * 1e3:.2f}",
                f"{r['seconds_again'] * 1e3:.2f}",
                "" if seconds is None else f"{seconds * 1e3:.0f}",
                "" if seconds is None else f"{seconds / r['seconds']:.0f}×",
            ]
        )
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    commits = ", ".join(sorted({r["commit"] for r in results}))
    return (
        f"Commit {commits}. `operations` counts those of the derived expression, `arith` those of "
        "the MLIR code without constants. `ms` is the first derivation from the layout's text with "
        f"all caches empty, `again` the median of {REPEATS} more with empty caches.\n\n"
        f"{table}\n\n{totals(results)}\n"
    )


def totals(results: list[dict[str, Any]]) -> str:
    """Return the total speed-up over the reference, and the expressions that are longer."""
    compared = [r for r in results if r["correct"] and r["reference"]["seconds"] is not None]
    if not compared:
        return "No expression has a reference."
    ours = sum(r["seconds"] for r in compared)
    theirs = sum(r["reference"]["seconds"] for r in compared)
    longer = [
        f"{r['name']} ({r['operations']} to {r['reference']['operations']})"
        for r in compared
        if r["operations"] > r["reference"]["operations"]
    ]
    wrong = [r["name"] for r in results if not r["correct"]]
    loaded = "; ".join(f"{r['name']}: {', '.join(r['imports'])}" for r in compared if r["imports"])
    lines = [
        f"The {len(compared)} expressions of the reference take {ours * 1e3:.1f} ms, and "
        f"{theirs:.2f} s in the reference: {theirs / ours:.0f} times faster "
        f"({'at least' if theirs >= MIN_SPEEDUP * ours else '**less than**'} {MIN_SPEEDUP}).",
        f"Imported within these times: {loaded or 'nothing'}.",
        f"Every count at most the reference's: {'no, ' + ', '.join(longer) if longer else 'yes'}.",
        *([f"**Wrong**: {', '.join(wrong)}."] if wrong else []),
    ]
    return "\n".join(lines)
