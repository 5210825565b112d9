"""Sentences, tables and remarks that several reports share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.case import COPIES
from bench.report.results import BY_LAUNCH, OURS, Result, failure, is_verified, ratio, time
from lego_mlir.diagnostics import LegoError

_CALLS = (
    "Microseconds per call, many calls back to back on one stream, from Python. `ours` launches "
    "bound arguments; `runtime.launch` takes arrays and checks them; PyTorch's times are those of "
    "its own calls. The ratios are relative to `ours`. The peers compiled by nvcc are launched in "
    "the same way as `ours`.\n"
)


def commits_and_devices(results: Sequence[Result]) -> str:
    """Return the sentence that names the commits and devices of the results."""
    return f"Commit {', '.join(distinct(results, 'commit') + distinct(results, 'device'))}."


def method(results: Sequence[Result], inputs: str = "") -> str:
    """Return the sentences that explain how times and ratios were measured.

    Args:
        results: whose rounds and amounts of data are named; without times the text is empty.
        inputs: sentences about the inputs and the check, before those about the ratios.
    """
    rounds = sorted({len(r["us"][OURS]) for r in results if "us" in r})
    if not rounds:
        return ""
    rotated = min(r["sets"] * r["bytes"] >> 20 for r in results if "us" in r)
    sentences = [
        f"Times are medians of {' or '.join(map(str, rounds))} interleaved rounds of CUDA graphs, "
        f"whose launches rotate through at least {rotated} MiB of data.",
        inputs,
        "A ratio is the peer's time over ours, computed in each round, with its quartiles in "
        "parentheses: above 1 we are faster.",
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def call_section(results: Sequence[Result]) -> list[str]:
    """Return the section of times with launch overhead; nothing if they were not measured."""
    if not any("call_us" in r for r in results):
        return []
    return ["## With launch overhead\n", _CALLS, call_table(results)]


def call_table(results: Sequence[Result]) -> str:
    """Return the times of calls with launch overhead, and the ratios of PyTorch's to ours."""
    callers = [p for p in timed(results, "call_us") if p not in COPIES and not p.startswith("nvcc")]
    compared = [p for p in callers if p not in (OURS, BY_LAUNCH)]
    head = ["case", *callers, *(f"vs {p}" for p in compared)]
    rows = [
        [
            r["case"],
            *(number(time(r, p, "call_us")) for p in callers),
            *(ratio_cell(r, p, "call_us") for p in compared),
        ]
        for r in results
        if "call_us" in r
    ]
    return table(head, rows)


def ratio_cell(result: Result, peer: str, column: str = "us") -> str:
    """Return a ratio with its quartiles; empty if none may be computed."""
    try:
        return str(ratio(result, peer, column=column))
    except LegoError:
        return "" if is_verified(result, peer) or peer not in result["verified"] else "**wrong**"


def number(value: float | None, digits: int = 2) -> str:
    """Return the text of a number; empty for `None`."""
    return "" if value is None else f"{value:.{digits}f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a Markdown table, all columns but the first aligned to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *rows))


def remarks(results: Sequence[Result]) -> list[str]:
    """Return what the tables leave out: failures, absent peers, the state of the GPU, versions."""
    lines = [f"- **{r['case']}**: {failure(r)}" for r in results if not is_verified(r)]
    for r in results:
        wrong = [p for p in r["verified"] if p != OURS and not is_verified(r, p)]
        lines += [f"- {r['case']}: the output of {p} is wrong" for p in wrong]
    absences: dict[tuple[str, str], list[str]] = {}
    for r in results:
        for peer, reason in r.get("absent", {}).items():
            absences.setdefault((peer, reason), []).append(r["case"])
    for (peer, reason), cases in absences.items():
        where = "all cases" if len(cases) == len(results) else ", ".join(cases)
        lines.append(f"- without {peer} ({where}): {reason}")
    lines += _gpu_state(results)
    versions = {k: v for r in results for k, v in r.get("versions", {}).items() if v}
    if versions:
        lines.append(f"- versions: {', '.join(f'{k} {v}' for k, v in versions.items())}")
    return ["## Remarks\n", "".join(f"{line}\n" for line in lines)] if lines else []


def _gpu_state(results: Sequence[Result]) -> list[str]:
    """Return the ranges of the GPU's clocks and power, read before and after each case."""
    states = [s for r in results for s in r.get("card", {}).values() if s]
    if not states:
        return ["- the GPU's clocks and power were not recorded"] if timed(results, "us") else []

    def span(key: str, show: Callable[[float], str] = "{:.0f}".format) -> str:
        low, high = min(s[key] for s in states), max(s[key] for s in states)
        return show(low) if low == high else f"{show(low)} to {show(high)}"

    return [
        f"- the GPU, before and after each case: SM {span('sm_mhz')} MHz, memory "
        f"{span('memory_mhz')} MHz, {span('power_w')} W of {span('limit_w')} W, "
        f"{span('celsius')} °C"
    ]


def timed(results: Sequence[Result], column: str) -> list[str]:
    """Return all contenders that have times, in the order in which they first occur."""
    return list(dict.fromkeys(name for r in results for name in r.get(column, {})))


def distinct(results: Sequence[Result], key: str) -> list[str]:
    """Return the distinct values of a key, sorted."""
    return sorted({r[key] for r in results if key in r})
