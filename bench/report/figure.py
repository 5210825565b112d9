"""What the figures have in common: style, the matplotlib import, and the text of an SVG."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lego_mlir.diagnostics import LegoError

_STYLE: Any = {
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "svg.fonttype": "none",  # text as text: small, and the same on every machine
    "svg.hashsalt": "lego-mlir",
}


@contextmanager
def new_figure(width: float, height: float) -> Iterator[Any]:
    """Provide a matplotlib figure in the common style; sizes in inches.

    Raises:
        LegoError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise LegoError(
            "the figure needs matplotlib", hint="pip install 'lego-mlir[bench]'"
        ) from None
    with mpl.rc_context(_STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def svg(figure: Any) -> str:
    """Return a figure's SVG without its date, the same for the same results."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"
