"""Step three: tables and a figure of what was measured.

A ratio stands only where both outputs were verified. Results of several commits, or of several
devices, do not stand beside each other unless one asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.cases import COPIES
from bench.results import (
    BY_LAUNCH,
    OURS,
    Result,
    bandwidth,
    is_verified,
    limit,
    ratio,
    read,
    reason,
    time,
)
from lego_mlir.diagnostics import LegoError, Place


def write(file: Path, *, mixed: bool = False) -> str:
    """Write `.md` and `.svg` beside a file of JSON lines; the Markdown.

    Args:
        file: the results.
        mixed: take results of several commits or devices.

    Raises:
        LegoError: it is no file of results, or they are mixed and nobody asked for that.
    """
    from bench.plots import drawing

    results = read(file)
    for what in ("commit", "device"):
        found = _all(results, what)
        if len(found) > 1 and not mixed:
            raise LegoError(
                f"these results are of several {what}s: {', '.join(found)}",
                place=Place(str(file)),
                hint="measure again, or say --mixed",
            )
    text = report(results)
    figure = drawing(results)
    if figure is not None:
        file.with_suffix(".svg").write_text(figure)
        text += f"\n![Bandwidth of each case]({file.with_suffix('.svg').name})\n"
    file.with_suffix(".md").write_text(text)
    return text


def report(results: Sequence[Result]) -> str:
    """The Markdown of results."""
    parts = [_preamble(results), "## Kernel time\n", kernel_table(results)]
    if any("call_us" in r for r in results):
        parts += ["## With launch overhead\n", _CALLS, call_table(results)]
    parts += _remarks(results)
    return "\n".join(parts)


# -------------------------------------------------------------------------------------- tables
def kernel_table(results: Sequence[Result]) -> str:
    """Time and bandwidth of our kernels, and the ratio to the copy and to every peer."""
    peers = [p for p in _timed(results, "us") if p not in (OURS, *COPIES)]
    head = ["case", "right", "µs", "TB/s", "of copy", *(f"of {p}" for p in peers)]
    rows = []
    for r in results:
        ours, speed, copy = time(r, OURS), bandwidth(r), limit(r)
        rows.append(
            [
                r["case"],
                "yes" if is_verified(r) else "**no**",
                _number(ours),
                _number(speed),
                "" if copy is None else _ratio(r, copy, "us"),
                *(_ratio(r, p, "us") for p in peers),
            ]
        )
    return _table(head, rows)


_CALLS = (
    "Microseconds a call, many back to back on one stream, from Python: `ours` launches bound "
    "arguments, `runtime.launch` takes arrays and checks them, PyTorch's are its calls. Ratios "
    "are to `ours`. Peers by nvcc are launched as `ours` is.\n"
)


def call_table(results: Sequence[Result]) -> str:
    """Time of a call with launch overhead, and the ratio of PyTorch's to ours."""
    callers = [
        p for p in _timed(results, "call_us") if p not in COPIES and not p.startswith("nvcc")
    ]
    compared = [p for p in callers if p not in (OURS, BY_LAUNCH)]
    head = ["case", *callers, *(f"of {p}" for p in compared)]
    rows = [
        [
            r["case"],
            *(_number(time(r, p, "call_us")) for p in callers),
            *(_ratio(r, p, "call_us") for p in compared),
        ]
        for r in results
        if "call_us" in r
    ]
    return _table(head, rows)


def _ratio(result: Result, peer: str, column: str) -> str:
    """A ratio with its quartiles; nothing where none may be drawn."""
    try:
        return str(ratio(result, peer, column=column))
    except LegoError:
        return "" if is_verified(result, peer) or peer not in result["verified"] else "**wrong**"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *rows))


# --------------------------------------------------------------------------------------- words
def _preamble(results: Sequence[Result]) -> str:
    rounds = sorted({len(r["us"][OURS]) for r in results if "us" in r})
    rotated = [r["sets"] * r["bytes"] >> 20 for r in results if "us" in r]
    told = f"Commit {', '.join(_all(results, 'commit') + _all(results, 'device'))}."
    if rounds:
        told += (
            f" Medians of {' or '.join(map(str, rounds))} interleaved rounds of CUDA graphs, whose "
            f"launches rotate through data of at least {min(rotated)} MiB. A ratio is the "
            "other's time over ours, round by round, its quartiles in brackets: above 1 we are "
            "faster. The copy is the faster of the driver's and a kernel's, of the same bytes."
        )
    return f"{told}\n"


def _remarks(results: Sequence[Result]) -> list[str]:
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
        return ["- the card's clocks and power were not recorded"] if _timed(results, "us") else []

    def span(key: str, show: Callable[[float], str] = "{:.0f}".format) -> str:
        low, high = min(s[key] for s in states), max(s[key] for s in states)
        return show(low) if low == high else f"{show(low)} to {show(high)}"

    return [
        f"- the card, before and after each case: SM {span('sm_mhz')} MHz, memory "
        f"{span('memory_mhz')} MHz, {span('power_w')} W of {span('limit_w')} W, "
        f"{span('celsius')} °C"
    ]


def _timed(results: Sequence[Result], column: str) -> list[str]:
    """All who have times, in the order in which they first stand."""
    return list(dict.fromkeys(name for r in results for name in r.get(column, {})))


def _all(results: Sequence[Result], key: str) -> list[str]:
    return sorted({r[key] for r in results if key in r})
