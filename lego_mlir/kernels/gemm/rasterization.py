"""Rasterization: layouts from a CTA's id to its tile of C.

CTAs take the tiles of a raster group, a number of rows of tiles, column by column. CTAs that run at
the same time then read few tiles of A and of B, which are still in the L2 cache. The CTAs of a
cluster have consecutive ids: tiles one below the other share a tile of B, tiles beside each other
share one of A.
"""

from __future__ import annotations

from lego_mlir.algebra import Layout, OrderBy, RegP, Row, size_symbol

_R, _G, _S, _W = (size_symbol(name) for name in "RGSW")

RASTER_GROUPS = OrderBy(RegP([_R, _G, _S, _W], [0, 2, 1, 3])).GroupBy([_R * _G, _S * _W])
"""Raster groups of tiles whose numbers only the kernel knows: R groups of G rows of tiles each, or
S groups of W columns; see `raster_group_sizes`."""


def raster_groups(
    down: int,
    across: int,
    raster_group: int,
    cluster: tuple[int, int] = (1, 1),
    batch: int | None = None,
) -> Layout:
    """Return the layout from a CTA's id to its tile, (down, across) or (GEMM, down, across).

    A raster group is the largest number of rows of tiles, or if that is more of columns, that
    divides C's and is at most `raster_group`.

    Args:
        down: rows of tiles.
        across: columns of tiles.
        raster_group: rows or columns of tiles of a group, at most.
        cluster: tiles of a cluster, down and across; they divide the tiles.
        batch: GEMMs of a batch, one after another.
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


def raster_group_sizes(down: int, across: int, raster_group: int) -> dict[str, int]:
    """Return the sizes for which `RASTER_GROUPS` is `raster_groups` without clusters.

    Arguments are those of `raster_groups`.
    """
    high, wide = _group(down, across, raster_group, (1, 1))
    if high >= wide:
        return {"R": down // high, "G": high, "S": across, "W": 1}
    return {"R": 1, "G": down, "S": across // wide, "W": wide}


def _group(rows: int, columns: int, raster_group: int, cluster: tuple[int, int]) -> tuple[int, int]:
    """Return the rows of clusters of a group of rows, and the columns of a group of columns."""
    high, wide = cluster
    return _divisor(rows, max(1, raster_group // high)), _divisor(
        columns, max(1, raster_group // wide)
    )


def _divisor(n: int, most: int) -> int:
    """Return the greatest divisor of `n` that is at most `most`."""
    return next(d for d in range(min(n, most), 0, -1) if n % d == 0)
