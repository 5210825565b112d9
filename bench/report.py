"""Step three: tables and a figure of what was measured.

A ratio stands only where both outputs were verified. Results of several commits, or of several
devices, do not stand beside each other unless one asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench import counters
from bench.cases import COPIES
from bench.gemm import report as products
from bench.gemm import variants_report as variants
from bench.results import (
    OURS,
    Result,
    bandwidth,
    is_product,
    is_verified,
    limit,
    read,
    time,
)
from bench.tables import CALLS, all_of, call_table, number, ratio_of, remarks, table, timed
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.files import write_whole


def write(file: Path, *, mixed: bool = False) -> str:
    """Write `.md` and `.svg` beside a file of JSON lines; the Markdown.

    Args:
        file: the results.
        mixed: take results of several commits or devices.

    Raises:
        LegoError: it is no file of results, or they are mixed and nobody asked for that.
    """
    from bench import plots
    from bench.gemm import plots as product_plots

    results = read(file)
    if len({is_product(r) for r in results}) > 1:
        raise LegoError(
            "these results are of products and of movements",
            location=Location(str(file)),
            hint="run them apart: --only gemm, --only transpose --only permute",
        )
    for what in ("commit", "device"):
        found = all_of(results, what)
        if len(found) > 1 and not mixed:
            raise LegoError(
                f"these results are of several {what}s: {', '.join(found)}",
                location=Location(str(file)),
                hint="measure again, or say --mixed",
            )
    figure: str | None
    if "counters" in results[0]:
        text, figure, shows = counters.report(results), None, ""
    elif variants.is_of_variants(results):
        text, figure, shows = variants.report(results), None, ""
    elif is_product(results[0]):
        text, figure = products.report(results), product_plots.drawing(results)
        shows = "Rate of each case, and the ratio to cuBLAS"
    else:
        text, figure = report(results), plots.drawing(results)
        shows = "Bandwidth of each case"
    if figure is not None:
        write_whole(file.with_suffix(".svg"), figure.encode())
        text += f"\n![{shows}]({file.with_suffix('.svg').name})\n"
    write_whole(file.with_suffix(".md"), text.encode())
    return text


def report(results: Sequence[Result]) -> str:
    """The Markdown of results."""
    parts = [_preamble(results), "## Kernel time\n", kernel_table(results)]
    if any("call_us" in r for r in results):
        parts += ["## With launch overhead\n", CALLS, call_table(results)]
    parts += remarks(results)
    return "\n".join(parts)


def kernel_table(results: Sequence[Result]) -> str:
    """Time and bandwidth of our kernels, and the ratio to the copy and to every peer."""
    peers = [p for p in timed(results, "us") if p not in (OURS, *COPIES)]
    head = ["case", "right", "µs", "TB/s", "of copy", *(f"of {p}" for p in peers)]
    rows = []
    for r in results:
        ours, speed, copy = time(r, OURS), bandwidth(r), limit(r)
        rows.append(
            [
                r["case"],
                "yes" if is_verified(r) else "**no**",
                number(ours),
                number(speed),
                "" if copy is None else ratio_of(r, copy, "us"),
                *(ratio_of(r, p, "us") for p in peers),
            ]
        )
    return table(head, rows)


def _preamble(results: Sequence[Result]) -> str:
    rounds = sorted({len(r["us"][OURS]) for r in results if "us" in r})
    rotated = [r["sets"] * r["bytes"] >> 20 for r in results if "us" in r]
    told = f"Commit {', '.join(all_of(results, 'commit') + all_of(results, 'device'))}."
    if rounds:
        told += (
            f" Medians of {' or '.join(map(str, rounds))} interleaved rounds of CUDA graphs, whose "
            f"launches rotate through data of at least {min(rotated)} MiB. A ratio is the "
            "other's time over ours, round by round, its quartiles in brackets: above 1 we are "
            "faster. The copy is the faster of the driver's and a kernel's, of the same bytes."
        )
    return f"{told}\n"
