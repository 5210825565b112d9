"""A transpose of a matrix, by tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.tiles.case import TileCase

if TYPE_CHECKING:
    from lego_mlir import Kernel


def transpose_case(n: int, side: int) -> TileCase:
    """Return the transpose of a square matrix.

    Args:
        n: its rows.
        side: rows of a CTA's tile.
    """

    def make() -> Kernel:
        import lego_mlir as lg

        matrix = lg.Tensor["f32", (n, n), 16]

        def transpose(x: Any, y: Any) -> None:
            i, j = lg.block_id("x"), lg.block_id("y")
            y.tile(side, side)[i, j] = x.tile(side, side)[j, i].T

        transpose.__annotations__ = {"x": matrix, "y": matrix}
        return lg.kernel(grid=(n // side, n // side), warps=8)(transpose)

    return TileCase(
        f"transpose_f32_{n}",
        make,
        ((n, n), (n, n)),
        ("float32",) * 2,
        lambda x: x.T.contiguous(),
        ("torch transpose", "copy"),
        0.0,
    )
