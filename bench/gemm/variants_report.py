"""The report of split-K, promotion, GEMMs on tiles and grouped ones: a line for every kernel."""

from __future__ import annotations

from collections.abc import Sequence

from bench.gemm.report import preamble
from bench.report.results import OURS, Result, fastest, is_gemm, is_verified, rate, ratio, time
from bench.report.tables import number, remarks, table
from lego_mlir.diagnostics import LegoError

_SECTIONS = {
    "split": (
        "Split-K",
        "Each CTA of a cluster computes a slice of K; the cluster adds up the accumulators.",
    ),
    "promote": (
        "Promotion of fp8 accumulators",
        "With `promote N`, the tensor cores accumulate over N K-loop iterations of depth 128, and "
        "the result is added to an f32 accumulator in registers. Without it, only the tensor cores "
        "accumulate, as in cuBLAS with fast accumulation.",
    ),
    "grouped": (
        "Grouped GEMM",
        "Groups have a quarter to 1¾ of the mean number of rows. Our kernels are compiled for "
        "these group sizes, except the one marked ragged. PyTorch reads the group sizes on the "
        "device and allocates its output.",
    ),
}
"""Title and explanation of each section, by the first word of its cases' names."""


def has_variants(results: Sequence[Result]) -> bool:
    """Return whether these are results of GEMMs with alternatives, or of grouped GEMMs."""
    return any(
        ("candidates" in r and is_gemm(r)) or r.get("reference", {}).get("kind") == "grouped_gemm"
        for r in results
    )


def report(results: Sequence[Result]) -> str:
    """Return the Markdown of results."""
    parts = [preamble(results)]
    parts.append(
        "`ours` is the kernel that the library chooses; the lines below it are its alternatives. A "
        "ratio in a column is that contender's time over the time of the line: above 1 the line is "
        "faster.\n"
    )
    for word in dict.fromkeys(_first_word(r) for r in results):
        title, explanation = _SECTIONS.get(word, (word, ""))
        group = [r for r in results if _first_word(r) == word]
        parts += [f"## {title}\n", f"{explanation}\n" if explanation else "", variant_table(group)]
    return "\n".join(part for part in [*parts, *remarks(results)] if part)


def _first_word(result: Result) -> str:
    return str(result["case"]).partition("_")[0]


def variant_table(results: Sequence[Result]) -> str:
    """Return a line for each contender: error, time, rate, and the ratios to ours and the peers."""
    peers = list(dict.fromkeys(peer for r in results for peer in r.get("peers", ())))
    head = ["case", "kernel", "correct", "error", "µs", "TFLOP/s", "vs ours"]
    head += [f"vs {peer}" for peer in peers]
    rows = []
    for r in results:
        best = fastest(r, [OURS, *(c["name"] for c in r.get("candidates", ()))])
        for name in contenders(r):
            label = f"ours: {r['config']}" if name == OURS and "config" in r else name
            rows.append(
                [
                    r["case"],
                    f"**{label}**" if name == best else label,
                    "yes" if is_verified(r, name) else "**no**",
                    _error(r, name),
                    number(time(r, name)),
                    number(rate(r, name), 1),
                    *(_ratio(r, other, name) for other in (OURS, *peers)),
                ]
            )
    return table(head, rows)


def contenders(result: Result) -> list[str]:
    """Return our kernel, its alternatives and the peers, if they were timed or found wrong."""
    candidates = [c["name"] for c in result.get("candidates", ())]
    names = [OURS, *candidates, *result.get("peers", ())]
    timed = result.get("us", {})
    return [name for name in names if name in timed or result["verified"].get(name) is False]


def _ratio(result: Result, other: str, name: str) -> str:
    if other == name:
        return ""
    try:
        return str(ratio(result, other, ours=name))
    except LegoError:
        return ""


def _error(result: Result, name: str) -> str:
    """Return ‖C - AB‖ / ‖AB‖."""
    verdict = result.get("verdicts", {}).get(name)
    return "" if verdict is None else f"{verdict['deviation']:.1e}"
