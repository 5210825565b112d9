"""The figure: bandwidth of the kernels that the library chooses, beside peers and the copy."""

from __future__ import annotations

import io
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from bench.results import OURS, Result, bandwidth, limit
from lego_mlir.diagnostics import LegoError

_BARS = {OURS: "#1f6feb", "torch.compile": "#8c959f", "torch eager": "#d0d7de"}
_LABELS = {OURS: "lego-mlir"}
STYLE: Any = {
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "svg.fonttype": "none",  # text as text: small, and the same wherever it was drawn
    "svg.hashsalt": "lego-mlir",
}


def drawing(results: Sequence[Result]) -> str | None:
    """The figure as SVG, the same for the same results; `None` if there is nothing to draw.

    Raises:
        LegoError: matplotlib is not installed.
    """
    panels = shown(results)
    if not panels:
        return None
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise LegoError(
            "the figure needs matplotlib", hint="pip install 'lego-mlir[bench]'"
        ) from None
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 0.5 + 2.3 * len(panels)), layout="constrained")
        axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
        for ax, (dtype, group) in zip(axes, panels.items(), strict=True):
            _panel(ax, dtype, group)
        legend = {label: mark for ax in axes for mark, label in zip(*_marks(ax), strict=True)}
        figure.legend(
            legend.values(), legend.keys(), loc="outside upper center", ncols=4, frameon=False
        )
        return svg(figure)


def svg(figure: Any) -> str:
    """A figure's text, without date and trailing space."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def shown(results: Sequence[Result]) -> dict[str, list[Result]]:
    """What the figure shows: by element type, row-major cases of no special variant, by size."""
    panels: dict[str, list[Result]] = {}
    for r in (r for r in results if bandwidth(r) is not None):
        orders = r["reference"]["source"], r["reference"]["target"]
        if orders == ("row", "row") and not r["variant"]:
            panels.setdefault(r["dtype"], []).append(r)
    return {dtype: sorted(group, key=itemgetter("bytes")) for dtype, group in panels.items()}


def _panel(ax: Any, dtype: str, group: Sequence[Result]) -> None:
    """One element type: a group of bars for each shape, and the copy as a mark over it."""
    names = [name for name in _BARS if any(bandwidth(r, name) is not None for r in group)]
    width = 0.8 / len(names)
    for k, name in enumerate(names):
        places = [x + (k - (len(names) - 1) / 2) * width for x in range(len(group))]
        heights = [bandwidth(r, name) or 0.0 for r in group]
        ax.bar(places, heights, width, color=_BARS[name], label=_LABELS.get(name, name))
    for x, r in enumerate(group):
        copy = limit(r)
        if copy is not None:
            mark = ax.hlines(bandwidth(r, copy), x - 0.42, x + 0.42, colors="#24292f")
            mark.set_label("copy")
    ax.set_xticks(range(len(group)), [_label(r["reference"]) for r in group])
    ax.set_ylabel(f"{dtype}, TB/s")
    ax.set_ylim(bottom=0)
    ax.grid(axis="y", color="#eaeef2")
    ax.tick_params(length=0)


def _label(reference: dict[str, Any]) -> str:
    """The shape; for what is more than a matrix the order of its dimensions, too."""
    shape = "×".join(map(str, reference["shape"]))
    return shape if len(reference["shape"]) == 2 else f"{shape}\n→ {tuple(reference['axes'])}"


def _marks(ax: Any) -> tuple[list[Any], list[str]]:
    """What stands in the legend, the bars before the copy."""
    handles, labels = ax.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda k: labels[k] == "copy")
    return [handles[k] for k in order], [labels[k] for k in order]
