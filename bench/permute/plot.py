"""The figure: bandwidth of the kernels that the library chooses, beside peers and the copy."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from bench.report.figure import new_figure, svg
from bench.report.results import OURS, Result, bandwidth, fastest_copy

_BARS = {OURS: "#1f6feb", "torch.compile": "#8c959f", "torch eager": "#d0d7de"}
_LABELS = {OURS: "lego-mlir"}


def bandwidth_figure(results: Sequence[Result]) -> str | None:
    """Return the figure as SVG, the same for the same results; `None` if there is nothing to draw.

    Raises:
        LegoError: matplotlib is not installed.
    """
    panels = plotted(results)
    if not panels:
        return None
    with new_figure(9, 0.5 + 2.3 * len(panels)) as figure:
        axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
        for ax, (dtype, group) in zip(axes, panels.items(), strict=True):
            _draw(ax, dtype, group)
        legend = {label: mark for ax in axes for mark, label in zip(*_legend(ax), strict=True)}
        figure.legend(
            legend.values(), legend.keys(), loc="outside upper center", ncols=4, frameon=False
        )
        return svg(figure)


def plotted(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Return the results that the figure shows, by element type and then by size.

    These are the row-major cases in which the library chooses the kernel.
    """
    panels: dict[str, list[Result]] = {}
    for r in (r for r in results if bandwidth(r) is not None):
        orders = r["reference"]["source"], r["reference"]["target"]
        if orders == ("row", "row") and not r["variant"]:
            panels.setdefault(r["dtype"], []).append(r)
    return {dtype: sorted(group, key=itemgetter("bytes")) for dtype, group in panels.items()}


def _draw(ax: Any, dtype: str, group: Sequence[Result]) -> None:
    """Draw one element type: bars for each shape, and the copy as a line over them."""
    names = [name for name in _BARS if any(bandwidth(r, name) is not None for r in group)]
    width = 0.8 / len(names)
    for k, name in enumerate(names):
        centers = [x + (k - (len(names) - 1) / 2) * width for x in range(len(group))]
        heights = [bandwidth(r, name) or 0.0 for r in group]
        ax.bar(centers, heights, width, color=_BARS[name], label=_LABELS.get(name, name))
    for x, r in enumerate(group):
        copy = fastest_copy(r)
        if copy is not None:
            mark = ax.hlines(bandwidth(r, copy), x - 0.42, x + 0.42, colors="#24292f")
            mark.set_label("copy")
    ax.set_xticks(range(len(group)), [_shape(r["reference"]) for r in group])
    ax.set_ylabel(f"{dtype}, TB/s")
    ax.set_ylim(bottom=0)
    ax.grid(axis="y", color="#eaeef2")
    ax.tick_params(length=0)


def _shape(reference: dict[str, Any]) -> str:
    """Return the label of a shape, with the permutation if it is more than a matrix."""
    shape = "×".join(map(str, reference["shape"]))
    return shape if len(reference["shape"]) == 2 else f"{shape}\n→ {tuple(reference['axes'])}"


def _legend(ax: Any) -> tuple[list[Any], list[str]]:
    """Return the marks and labels of the legend, the bars before the copy."""
    handles, labels = ax.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda k: labels[k] == "copy")
    return [handles[k] for k in order], [labels[k] for k in order]
