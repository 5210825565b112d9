"""The benchmarks of papers/linear_layouts, section 6.1: a tile by one CTA of four warps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.tiles.case import TORCH_NAMES, TileCase

if TYPE_CHECKING:
    from lego_mlir import Kernel

_REPEATS = 256
"""Conversions, or gathers, of one tile in a kernel: as many as make its loads and stores small."""

_Context = AbstractContextManager[Any]


def conversion_case(rows: int, columns: int, dtype: str) -> TileCase:
    """Return conversions of a tile between two layouts, there and back.

    Args:
        rows: of the tile.
        columns: of the tile.
        dtype: of the elements.
    """

    def make() -> Kernel:
        import lego_mlir as lg
        from lego_mlir.analysis.distributed import DistributedLayout, Factor

        shape = (rows, columns)
        # A warp has the same rows in both; its lanes are in columns, or in rows first.
        down_lanes = min(32, rows // 4)
        across = 32 // down_lanes
        warps = [Factor(0, 4, rows // 4)]
        along = DistributedLayout.of(
            shape,
            warps=warps,
            lanes=[Factor(1, 32, 1)],
            registers=[Factor(0, rows // 4, 1), Factor(1, columns // 32, 32)],
        )
        down = DistributedLayout.of(
            shape,
            warps=warps,
            lanes=[Factor(1, across, columns // across), Factor(0, down_lanes, 1)],
            registers=[
                Factor(0, rows // 4 // down_lanes, down_lanes),
                Factor(1, columns // across, 1),
            ],
        )
        tensor = lg.Tensor[dtype, shape, 16]

        def conversion(x: Any, y: Any) -> None:
            start = lg.convert(x.tile(*shape)[0, 0], along)

            @lg.fold(_REPEATS, start)
            def end(_: Any, tile: Any) -> Any:
                there = lg.convert(tile, down) + 1
                return lg.convert(there, along) - 1

            y.tile(*shape)[0, 0] = end

        conversion.__annotations__ = {"x": tensor, "y": tensor}
        return lg.kernel(grid=132, warps=4)(conversion)

    return TileCase(
        f"convert_{dtype}_{rows}x{columns}",
        make,
        ((rows, columns),) * 2,
        (TORCH_NAMES[dtype],) * 2,
        lambda x: x,
        (),
        1e-2,
        {0: 100} if dtype == "i8" else {},
        _both_ways(_roads),
    )


def gather_case(rows: int, columns: int, dtype: str) -> TileCase:
    """Return gathers of a tile's elements along its rows.

    Args:
        rows: of the tile.
        columns: of the tile.
        dtype: of the elements.
    """

    def make() -> Kernel:
        import lego_mlir as lg

        tensor, at = lg.Tensor[dtype, (rows, columns), 16], lg.Tensor["i32", (rows, columns), 16]

        def gather(x: Any, indices: Any, y: Any) -> None:
            tile, index = x.tile(rows, columns)[0, 0], indices.tile(rows, columns)[0, 0]

            @lg.fold(_REPEATS, tile)
            def end(_: Any, values: Any) -> Any:
                return lg.take(values, index, 1)

            y.tile(rows, columns)[0, 0] = end

        gather.__annotations__ = {"x": tensor, "indices": at, "y": tensor}
        return lg.kernel(grid=132, warps=4)(gather)

    def reference(x: Any, indices: Any) -> Any:
        for _ in range(_REPEATS):
            x = x.gather(1, indices.long())
        return x

    return TileCase(
        f"gather_{dtype}_{rows}x{columns}",
        make,
        ((rows, columns),) * 3,
        (TORCH_NAMES[dtype], "int32", TORCH_NAMES[dtype]),
        reference,
        (),
        0.0,
        {1: columns},
        _both_ways(_takes),
    )


def _both_ways(context: Callable[..., _Context]) -> dict[str, Callable[[], _Context]]:
    """Return the variants of a program that a context compiles to one way."""
    return {
        "shuffles": partial(context, shuffles=True),
        "shared memory": partial(context, shuffles=False),
    }


def _roads(*, shuffles: bool) -> _Context:
    """Return a context in which conversions inside of warps take one road, whatever it costs."""
    from unittest.mock import patch

    from lego_mlir.analysis.distributed.conversions import plan
    from lego_mlir.mlir.tile_passes.lower_tiles.conversions import roads

    plain = plan.plan_conversion.__wrapped__

    def planned(*arguments: Any) -> Any:
        # The estimate of a barrier's wait decides between roads of about the same throughput.
        with patch.object(plan, "BARRIER_CLOCKS", 1 << 30 if shuffles else -(1 << 30)):
            return plain(*arguments)

    return patch.object(roads, "plan_conversion", planned)


def _takes(*, shuffles: bool) -> _Context:
    """Return a context in which takes inside of warps are made in one way, whatever it costs."""
    from unittest.mock import patch

    from lego_mlir.mlir.tile_passes.lower_tiles import takes

    return patch.object(takes, "_shuffles_pay", lambda *_: shuffles)
