"""The report of cases with alternatives, and of groups: everybody who took part has a line."""

from __future__ import annotations

from collections.abc import Sequence

from bench.gemm.report import preamble
from bench.results import OURS, Result, fastest, is_verified, rate, ratio, time
from bench.tables import number, remarks, table
from lego_mlir.diagnostics import LegoError

_TITLES = {
    "split": ("Blocks that share a tile", "Each takes a part of k; they add up within a cluster."),
    "promote": (
        "Sums of 8-bit floats that are promoted",
        "Tensor cores add up so many steps over k, of 128 products each; threads add those up in "
        "f32. Without that they keep the sums to themselves, as cuBLAS does with short sums.",
    ),
    "grouped": (
        "Several products in one launch",
        "Groups have a quarter to 1¾ of the mean rows. Ours are compiled for these rows, but for "
        "the line that says otherwise; PyTorch reads them from the device, and its output is a "
        "tensor of its own.",
    ),
}
"""By the first word of the cases' names: a title and what is to be known."""


def is_of_variants(results: Sequence[Result]) -> bool:
    """Whether these are results of cases with alternatives, or of groups."""
    return any("candidates" in r or r.get("reference", {}).get("kind") == "groups" for r in results)


def report(results: Sequence[Result]) -> str:
    """The Markdown of results."""
    parts = [preamble(results)]
    parts.append(
        "`ours` is what the library chooses, the lines under it what else it can do. The ratios "
        "are the other's time over that of the line, so above 1 the line is faster.\n"
    )
    for word in dict.fromkeys(_word(r) for r in results):
        title, told = _TITLES.get(word, (word, ""))
        group = [r for r in results if _word(r) == word]
        parts += [f"## {title}\n", f"{told}\n" if told else "", variant_table(group)]
    return "\n".join(part for part in [*parts, *remarks(results)] if part)


def _word(result: Result) -> str:
    return str(result["case"]).partition("_")[0]


def variant_table(results: Sequence[Result]) -> str:
    """A line for each who took part: error, time, rate, and the ratios to us and to the peers."""
    peers = list(dict.fromkeys(peer for r in results for peer in r.get("peers", ())))
    head = ["case", "who", "right", "error", "µs", "TFLOP/s", "of ours"]
    head += [f"of {peer}" for peer in peers]
    rows = []
    for r in results:
        best = fastest(r, [OURS, *(c["name"] for c in r.get("candidates", ()))])
        for name in contestants(r):
            told = f"ours: {r['division']}" if name == OURS and "division" in r else name
            rows.append(
                [
                    r["case"],
                    f"**{told}**" if name == best else told,
                    "yes" if is_verified(r, name) else "**no**",
                    _error(r, name),
                    number(time(r, name)),
                    number(rate(r, name), 1),
                    *(_ratio(r, other, name) for other in (OURS, *peers)),
                ]
            )
    return table(head, rows)


def contestants(result: Result) -> list[str]:
    """We, our alternatives, and the peers, as far as they took part in the timed rounds."""
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
    """‖C - AB‖ / ‖AB‖."""
    verdict = result.get("verdicts", {}).get(name)
    return "" if verdict is None else f"{verdict['deviation']:.1e}"
