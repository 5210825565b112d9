"""The order in which blocks take a product's tiles: layouts from a block's number to its tile.

In groups of rows of tiles, down each column of a group: blocks at work at the same time then read
few tiles of A and of B, which are still in the second-level cache. Blocks of a cluster have
consecutive numbers: tiles one below the other have a tile of B in common, tiles beside each other
one of A.
"""

from __future__ import annotations

from lego_mlir.algebra import Layout, OrderBy, RegP, Row, size_symbol

_R, _G, _S, _W = (size_symbol(name) for name in "RGSW")

GROUPED = OrderBy(RegP([_R, _G, _S, _W], [0, 2, 1, 3])).GroupBy([_R * _G, _S * _W])
"""The order by groups of tiles whose numbers only the kernel knows: R groups of G rows of tiles
each, or S of W columns."""


def grouped(
    down: int,
    across: int,
    raster_group: int,
    cluster: tuple[int, int] = (1, 1),
    batch: int | None = None,
) -> Layout:
    """From the number of a block to its tile, (down, across), or with a batch (product, ...).

    Groups are as many tiles high, or where that is more wide, as divide the tiles and are at most
    `raster_group`.

    Args:
        down: tiles one below the other.
        across: tiles beside each other.
        raster_group: tiles that a group is high or wide, at most.
        cluster: tiles of a cluster, down and across; they divide the tiles.
        batch: products, one after another.
    """
    high, wide = cluster
    rows, columns = down // high, across // wide  # of clusters
    group_rows, group_columns = _group(rows, columns, raster_group, cluster)
    if group_rows * high >= group_columns * wide:
        dims = [rows // group_rows, group_rows, high, columns, wide]
        order = [0, 3, 1, 2, 4]
    else:
        dims = [rows, high, columns // group_columns, group_columns, wide]
        order = [2, 0, 3, 1, 4]
    lead = [] if batch is None else [batch]
    kept = [k for k, n in enumerate(dims) if n > 1]
    order = [kept.index(k) for k in order if k in kept]
    if order == sorted(order):
        return OrderBy(Row(*lead, down, across))
    sizes = [*lead, *(dims[k] for k in kept)]
    permuted = RegP(sizes, [*range(len(lead)), *(k + len(lead) for k in order)])
    return OrderBy(permuted).GroupBy([*lead, down, across])


def grouped_sizes(down: int, across: int, raster_group: int) -> dict[str, int]:
    """The sizes for which `GROUPED` is the same order, without clusters.

    Arguments are those of `grouped`.
    """
    high, wide = _group(down, across, raster_group, (1, 1))
    if high >= wide:
        return {"R": down // high, "G": high, "S": across, "W": 1}
    return {"R": 1, "G": down, "S": across // wide, "W": wide}


def _group(rows: int, columns: int, raster_group: int, cluster: tuple[int, int]) -> tuple[int, int]:
    """Clusters that a group is high, if groups are of rows, and wide, if of columns."""
    high, wide = cluster
    return _divisor(rows, max(1, raster_group // high)), _divisor(
        columns, max(1, raster_group // wide)
    )


def _divisor(n: int, most: int) -> int:
    """The greatest divisor of `n` that is at most `most`."""
    return next(d for d in range(min(n, most), 0, -1) if n % d == 0)
