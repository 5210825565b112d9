"""The report of matrix products: rates, ratios to cuBLAS, and what the code is made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from bench.gemm.cases import CUBLAS, FAST
from bench.gemm.product import Product
from bench.results import OURS, Result, is_verified, rate, ratio, time
from bench.tables import CALLS, all_of, call_table, number, ratio_of, remarks, table
from lego_mlir.diagnostics import LegoError

_ELSEWHERE = Path(__file__).parents[1] / "peers" / "elsewhere.json"

_SHOWN = (
    *("HGMMA", "IGMMA", "QGMMA", "HMMA", "IMMA", "LDSM", "LDS", "LDGSTS", "UTMALDG"),
    *("LDG", "STS", "STSM", "BAR", "SYNCS", "SHFL"),
)
"""Instructions that have a column where a main loop has them; the others are counted together."""


@cache
def elsewhere() -> dict[str, dict[str, Any]]:
    """Peers that were measured in other runs: what, where, how, and figures by case."""
    found: dict[str, dict[str, Any]] = json.loads(_ELSEWHERE.read_text())
    return found


def report(results: Sequence[Result]) -> str:
    """The Markdown of results."""
    parts = [preamble(results)]
    for variant in dict.fromkeys(r["variant"] for r in results):
        group = [r for r in results if r["variant"] == variant]
        chosen = f"schedule `{variant}`" if variant else "the schedule that the library chooses"
        parts += [f"## Kernel time, {chosen}\n", kernel_table(group)]
    parts += ["## Together\n", summary_table(results)]
    code = code_table(results)
    if code:
        parts += ["## Code\n", _CODE, code]
    if any("call_us" in r for r in results):
        parts += ["## With launch overhead\n", CALLS, call_table(results)]
    return "\n".join(parts + remarks(results))


# -------------------------------------------------------------------------------------- tables
def kernel_table(results: Sequence[Result]) -> str:
    """Rates, ratios to cuBLAS, and beside them those of peers from other runs."""
    others = [
        (peer, told["cases"])
        for peer, told in elsewhere().items()
        if any(r["case"] in told["cases"] for r in results)
    ]
    short = any(FAST in r["verified"] for r in results)
    head = ["case", "right", "error", "µs", "TFLOP/s", "cuBLAS", "of cuBLAS"]
    head += ["short sums", "of short sums"] if short else []
    head += [f"({peer} of cuBLAS)" for peer, _ in others]
    rows = []
    for r in results:
        row = [
            r["case"],
            "yes" if is_verified(r) else "**no**",
            _error(r),
            number(time(r, OURS)),
            number(rate(r), 1),
            number(rate(r, CUBLAS), 1),
            ratio_of(r, CUBLAS),
        ]
        row += [number(rate(r, FAST), 1), ratio_of(r, FAST)] if short else []
        row += [number(cases.get(r["case"], {}).get("of_cublas")) for _, cases in others]
        rows.append(row)
    return table(head, rows)


@dataclass(frozen=True, slots=True)
class Group:
    """Cases that are summed up together: of one variant and element type, square or not."""

    variant: str
    dtype: str
    square: bool

    @staticmethod
    def of(result: Result) -> Group:
        """The group that a result belongs to."""
        reference = Product.from_json(result["reference"])
        square = reference.m == reference.n == reference.k
        return Group(result["variant"], reference.dtype, square)

    def __str__(self) -> str:
        shapes = "squares" if self.square else "other shapes"
        return f"{self.dtype}, {shapes}" + (f", {self.variant}" if self.variant else "")


def summary_table(results: Sequence[Result]) -> str:
    """By group how many cases are at least as fast as cuBLAS, the geometric mean, and the worst."""
    groups: dict[Group, list[Result]] = {}
    for r in results:
        groups.setdefault(Group.of(r), []).append(r)
    rows = []
    for group, members in groups.items():
        peers = (CUBLAS, FAST) if any(FAST in r["verified"] for r in members) else (CUBLAS,)
        for peer in peers:
            known = {r["case"]: x for r in members if (x := _median(r, peer)) is not None}
            row = [str(group), peer, f"{len(known)} of {len(members)}"]
            if known:
                worst = min(known, key=known.__getitem__)
                row += [
                    str(sum(x >= 1 for x in known.values())),
                    number(geometric_mean(known.values()), 3),
                    f"{known[worst]:.2f} ({worst})",
                ]
            rows.append(row + [""] * (6 - len(row)))
    return table(["cases", "peer", "compared", "ratio ≥ 1", "geometric mean", "worst"], rows)


_CODE = (
    "Registers and bytes of local memory a thread, spills among it, and KiB of shared memory a "
    "block, as the driver says. Of the main loop, the innermost with the most matrix instructions, "
    "the instructions; the asynchronous copies of a warp of its own are counted in its own loop.\n"
)


def code_table(results: Sequence[Result]) -> str:
    """Resources and instructions of each case's kernel; nothing where none is known."""
    known = [r for r in results if r.get("resources")]
    loops = {r["case"]: _loop(r) for r in known}
    shown = [name for name in _SHOWN if any(name in loop for loop in loops.values())]
    disassembled = any(loops.values())
    head = ["case", "registers", "local", "shared", *shown]
    head += ["other", "local accesses"] if disassembled else []
    rows = []
    for r in known:
        loop = loops[r["case"]]
        used = list(r["resources"].values())
        shared = max(x["static"] + x["dynamic"] for x in used)
        row = [
            r["case"],
            str(max(x["registers"] for x in used)),
            str(max(x["local"] for x in used)),
            number(shared / 1024, 1),
            *(str(loop.get(name, "")) for name in shown),
        ]
        if disassembled:
            row.append(str(sum(n for name, n in loop.items() if name not in shown) or ""))
            row.append(str(_local_accesses(r)) if "sass" in r else "")
        rows.append(row)
    return table(head, rows) if rows else ""


def _loop(result: Result) -> dict[str, int]:
    """The main loop's instructions, and the copies of the loop that copies."""
    found: dict[str, int] = {}
    for kernel in result.get("sass", {}).values():
        if kernel["loop"]:
            found = dict(kernel["loop"])
            copies = ("LDGSTS", "UTMALDG")
            found |= {x: n for x, n in kernel["copies"].items() if x in copies}
    return found


def _local_accesses(result: Result) -> int:
    """Loads and stores of local memory in all of the code."""
    counts = [kernel["kernel"] for kernel in result["sass"].values()]
    return sum(x.get("LDL", 0) + x.get("STL", 0) for x in counts)


def _median(result: Result, peer: str) -> float | None:
    try:
        return ratio(result, peer).median
    except LegoError:
        return None


def _error(result: Result) -> str:
    """‖C - AB‖ / ‖AB‖ of our output."""
    verdict = result.get("verdicts", {}).get(OURS)
    return "" if verdict is None or not is_verified(result) else f"{verdict['deviation']:.1e}"


# --------------------------------------------------------------------------------------- words
def preamble(results: Sequence[Result]) -> str:
    """Commit, device and method."""
    rounds = sorted({len(r["us"][OURS]) for r in results if "us" in r})
    told = f"Commit {', '.join(all_of(results, 'commit') + all_of(results, 'device'))}."
    if rounds:
        rotated = min(r["sets"] * r["bytes"] >> 20 for r in results if "us" in r)
        told += (
            f" Medians of {' or '.join(map(str, rounds))} interleaved rounds of CUDA graphs, whose "
            f"launches rotate through data of at least {rotated} MiB. Inputs are standard normal "
            "(integers of the whole range). Every element of every set is compared with a product "
            "in f64; `error` is ‖C - AB‖ / ‖AB‖. A ratio is the other's time over ours, round by "
            "round, its quartiles in brackets: above 1 we are faster. `NT` is A row-major and B "
            "column-major, as in BLAS."
        )
    lines = [f"{told}\n"]
    for peer, source in elsewhere().items():
        if any(r["case"] in source["cases"] for r in results):
            lines.append(
                f"In brackets, not of this run: {peer} ({source['what']}) on an "
                f"{source['device']}, {source['method']}.\n"
            )
    return "\n".join(lines)
