"""Tables and remarks that all reports share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.cases import COPIES
from bench.results import BY_LAUNCH, OURS, Result, is_verified, ratio, reason, time
from lego_mlir.diagnostics import LegoError

CALLS = (
    "Microseconds a call, many back to back on one stream, from Python: `ours` launches bound "
    "arguments, `runtime.launch` takes arrays and checks them, PyTorch's are its calls. Ratios "
    "are to `ours`. Peers by nvcc are launched as `ours` is.\n"
)


def call_table(results: Sequence[Result]) -> str:
    """Time of a call with launch overhead, and the ratio of PyTorch's to ours."""
    callers = [p for p in timed(results, "call_us") if p not in COPIES and not p.startswith("nvcc")]
    compared = [p for p in callers if p not in (OURS, BY_LAUNCH)]
    head = ["case", *callers, *(f"of {p}" for p in compared)]
    rows = [
        [
            r["case"],
            *(number(time(r, p, "call_us")) for p in callers),
            *(ratio_of(r, p, "call_us") for p in compared),
        ]
        for r in results
        if "call_us" in r
    ]
    return table(head, rows)


def ratio_of(result: Result, peer: str, column: str = "us") -> str:
    """A ratio with its quartiles; nothing where none may be drawn."""
    try:
        return str(ratio(result, peer, column=column))
    except LegoError:
        return "" if is_verified(result, peer) or peer not in result["verified"] else "**wrong**"


def number(value: float | None, digits: int = 2) -> str:
    """A figure of the table; nothing for none."""
    return "" if value is None else f"{value:.{digits}f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows as Markdown; all columns but the first are figures."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *rows))


def remarks(results: Sequence[Result]) -> list[str]:
    """What the tables do not tell: failures, who was absent, the card, the versions."""
    lines = [f"- **{r['case']}**: {reason(r)}" for r in results if not is_verified(r)]
    for r in results:
        wrong = [p for p in r["verified"] if p != OURS and not is_verified(r, p)]
        lines += [f"- {r['case']}: the output of {p} is wrong" for p in wrong]
    absences: dict[tuple[str, str], list[str]] = {}
    for r in results:
        for peer, why in r.get("absent", {}).items():
            absences.setdefault((peer, why), []).append(r["case"])
    for (peer, why), cases in absences.items():
        where = "everywhere" if len(cases) == len(results) else ", ".join(cases)
        lines.append(f"- without {peer} ({where}): {why}")
    lines += _card(results)
    versions = {k: v for r in results for k, v in r.get("versions", {}).items() if v}
    if versions:
        lines.append(f"- versions: {', '.join(f'{k} {v}' for k, v in versions.items())}")
    return ["## Remarks\n", "".join(f"{line}\n" for line in lines)] if lines else []


def _card(results: Sequence[Result]) -> list[str]:
    """The ranges of the card's clocks and power, read before and after each case."""
    states = [s for r in results for s in r.get("card", {}).values() if s]
    if not states:
        return ["- the card's clocks and power were not recorded"] if timed(results, "us") else []

    def span(key: str, show: Callable[[float], str] = "{:.0f}".format) -> str:
        low, high = min(s[key] for s in states), max(s[key] for s in states)
        return show(low) if low == high else f"{show(low)} to {show(high)}"

    return [
        f"- the card, before and after each case: SM {span('sm_mhz')} MHz, memory "
        f"{span('memory_mhz')} MHz, {span('power_w')} W of {span('limit_w')} W, "
        f"{span('celsius')} °C"
    ]


def timed(results: Sequence[Result], column: str) -> list[str]:
    """All who have times, in the order in which they first stand."""
    return list(dict.fromkeys(name for r in results for name in r.get(column, {})))


def all_of(results: Sequence[Result], key: str) -> list[str]:
    """What the results say of something, each once, in order."""
    return sorted({r[key] for r in results if key in r})
