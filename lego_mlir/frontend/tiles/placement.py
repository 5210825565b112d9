"""Distributed layouts that a program gives its tiles by hand: checked, not trusted."""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend.tiles.tile import warps_of
from lego_mlir.frontend.trace import Trace


def checked_layout(
    layout: Any, held: tuple[int, ...], what: str, trace: Trace
) -> DistributedLayout:
    """Return the distributed layout of a tile that a program gives.

    Args:
        layout: a `DistributedLayout`, a layout from (warp, lane, register) to the tile's index, or
            its text.
        held: the sizes of the tile as threads hold it.
        what: the tile, for errors.
        trace: of the kernel.

    Raises:
        LegoError: it is none, or does not have the tile's sizes, or the kernel's warps.
    """
    try:
        if isinstance(layout, str):
            layout = DistributedLayout.parse(layout, held)
        elif isinstance(layout, Layout):
            layout = DistributedLayout.parse(str(layout), held)
    except LegoError as e:
        raise trace.error(f"the layout of {what}: {e.message}", e.hint) from None
    if not isinstance(layout, DistributedLayout):
        raise trace.error(f"{layout!r} is no layout of a tile")
    warps = warps_of(trace)
    if tuple(layout.shape) != held or (layout.warps, layout.ctas) != (warps, trace.cluster):
        raise trace.error(
            f"the layout is one of a tile of sizes {tuple(layout.shape)} in "
            f"{_threads(layout.warps, layout.ctas, trace)}, but {what} has the sizes "
            f"{held}, and the kernel {_threads(warps, trace.cluster, trace)}"
        )
    return layout


def _threads(warps: int, ctas: int, trace: Trace) -> str:
    """Return what holds a tile, in words."""
    return f"{warps} warps" + (f" in {ctas} CTAs" if trace.cluster > 1 or ctas > 1 else "")
