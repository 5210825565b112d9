"""Tiles of CTAs that run programs of their own in a cluster, and add up what they hold.

@lg.kernel(grid=8, warps=4, cluster=4, own_programs=True)
def total(x: lg.Tensor["f32", "8, 64"], y: lg.Tensor["f32", "2, 64"]):
row = lg.reduce_scatter(x[lg.block_id(), :])          # 16 of the 64 sums of four rows
y.tile(1, 16)[lg.block_id() // 4, lg.cta_rank()] = row[None, :]
"""

from __future__ import annotations

from lego_mlir.frontend.operations import block_id
from lego_mlir.frontend.tiles.creation import checked_axis, checked_tile
from lego_mlir.frontend.tiles.tile import Tile
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.frontend.values import Value
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.types import tile_type

_BY = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


def cta_rank() -> Value:
    """Return the rank of the CTA in its cluster, in a kernel with `own_programs`."""
    trace = current("cta_rank")
    return block_id() % _programs(trace, "cta_rank")


def reduce_scatter(tile: Tile, axis: int = -1, *, by: str = "sum") -> Tile:
    """Return the CTA's slice of the sum of the tiles that the CTAs of a cluster hold.

    Each CTA brings a tile of the same shape, and gets that slice of the sum along `axis` whose
    number is its rank. Elements are combined in an order that does not depend on which CTA comes
    first, so every launch gives the same bits. All CTAs of a cluster come equally often. The valid
    elements of their tiles are the same.

    Args:
        tile: what this CTA brings; the number of CTAs divides its size along `axis`.
        axis: the dimension that is divided; the last one by default.
        by: "sum", "prod", "max" or "min".
    """
    trace = current("reduce_scatter")
    checked_tile(tile, trace, "reduce_scatter")
    tile.check_arithmetic("reduce_scatter")
    ctas = _programs(trace, "reduce_scatter")
    if by not in _BY:
        raise trace.error(f"reduce_scatter by {by!r}", hint=f"by is one of {', '.join(_BY)}")
    dim = checked_axis(axis, tile.shape, trace, "reduce_scatter")
    size, held = tile.shape[dim], list(tile.ssa.type.shape)
    if size % ctas or held[dim] != size:
        raise trace.error(
            f"a dimension of {size} elements is not divided among the {ctas} CTAs of a cluster",
            hint=f"a multiple of {ctas} that threads hold as it is: a power of two, or a multiple "
            f"of {trace.tile_multiple}",
        )
    held[dim] = size // ctas
    shape = (*tile.shape[:dim], size // ctas, *tile.shape[dim + 1 :])
    kind = _BY[by]
    if tile.dtype.startswith("u") and kind in ("max", "min"):
        kind = f"u{kind}"
    rank = cta_rank().ssa
    return tile.shaped(
        tiles.reduce_scatter(
            tile_type(tuple(held), tile.element), tile.ssa, rank, kind, dim, trace.here()
        ),
        shape,
    )


def _programs(trace: Trace, what: str) -> int:
    """Return how many CTAs a cluster has, each of which runs a program of its own.

    Raises:
        LegoError: they do not.
    """
    if trace.programs < 2:
        raise trace.error(
            f"'{what}' in a kernel without clusters whose CTAs run programs of their own",
            hint="@lg.kernel(grid=..., warps=4, cluster=4, own_programs=True)",
        )
    return trace.programs
