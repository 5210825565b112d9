"""The figure of GEMMs: rates of square ones by size, and below them the ratio to cuBLAS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.gemm.cases import CUBLAS, TRANSPOSES
from bench.gemm.references import GemmReference
from bench.report.figure import new_figure, svg
from bench.report.results import OURS, Result, rate

_COLORS = dict(zip(TRANSPOSES, ("#1f6feb", "#8250df", "#1a7f37", "#bc4c00"), strict=True))


def rate_figure(results: Sequence[Result]) -> str | None:
    """Return the figure as SVG, the same for the same results; `None` if there is nothing to draw.

    Raises:
        LegoError: matplotlib is not installed.
    """
    panels = plotted(results)
    if not panels:
        return None
    with new_figure(3.4 * len(panels) + 1, 5) as figure:
        axes = figure.subplots(2, len(panels), squeeze=False, sharex="col", height_ratios=(3, 2))
        for column, (title, lines) in enumerate(panels.items()):
            _draw(axes[0][column], axes[1][column], title, lines)
        axes[0][0].set_ylabel("TFLOP/s")
        axes[1][0].set_ylabel("cuBLAS's time over ours")
        legend = {x.get_label(): x for column in axes[0] for x in column.get_lines()}
        figure.legend(
            legend.values(), legend.keys(), loc="outside upper center", ncols=5, frameon=False
        )
        return svg(figure)


def plotted(results: Sequence[Result]) -> dict[str, dict[str, list[Result]]]:
    """Return the square GEMMs by element type and schedule, then by transposes, sorted by size."""
    panels: dict[str, dict[str, list[Result]]] = {}
    for r in results:
        reference = GemmReference.from_json(r["reference"])
        if rate(r) is None or not reference.m == reference.n == reference.k:
            continue
        if reference.c == "row":
            title = f"{reference.dtype}, {r['variant']}" if r["variant"] else reference.dtype
            lines = panels.setdefault(title, {})
            lines.setdefault(reference.transposes, []).append(r)
    return {
        title: {t: sorted(lines[t], key=_size) for t in TRANSPOSES if t in lines}
        for title, lines in panels.items()
        if any(len(line) > 1 for line in lines.values())
    }


def _size(result: Result) -> int:
    return int(result["reference"]["m"])


def _draw(rates: Any, ratios: Any, title: str, lines: dict[str, list[Result]]) -> None:
    """Draw one element type: its rates, ours in color and cuBLAS's in gray, and the ratios."""
    sizes = sorted({_size(r) for line in lines.values() for r in line})
    for transposes, line in lines.items():
        color = _COLORS[transposes]
        x = [sizes.index(_size(r)) for r in line]
        ours = [rate(r, OURS) for r in line]
        theirs = [rate(r, CUBLAS) for r in line]
        rates.plot(x, theirs, color="#8c959f", marker="o", markersize=3, linewidth=1, label=CUBLAS)
        rates.plot(x, ours, color=color, marker="o", markersize=3, label=transposes)
        known = [(at, a / b) for at, a, b in zip(x, ours, theirs, strict=True) if a and b]
        ratios.plot(
            *zip(*known, strict=True) if known else ([], []), color=color, marker="o", markersize=3
        )
    rates.set_title(title, fontsize=9)
    rates.set_ylim(bottom=0)
    ratios.axhline(1, color="#24292f", linewidth=1)
    ratios.set_xticks(range(len(sizes)), [str(n) for n in sizes], rotation=45)
    for ax in (rates, ratios):
        ax.grid(axis="y", color="#eaeef2")
        ax.tick_params(length=0)
