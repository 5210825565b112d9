"""Rasterization: layouts from a CTA's id to its tile of C.

CTAs take the tiles of a raster group, a number of rows of tiles, column by column. CTAs that run at
the same time then read few tiles of A and of B, which are still in the L2 cache. The CTAs of a
cluster have consecutive ids: tiles one below the other share a tile of B, tiles beside each other
share one of A.
"""

from __future__ import annotations

from lego_mlir.algebra import GenP, Layout, OrderBy, RegP, Row, row_groups, size_symbol
from lego_mlir.index import Expr, Int, bounds
from lego_mlir.kernels.gemm.matrices import transposed

_R, _G, _S, _W = (size_symbol(name) for name in "RGSW")

RASTER_GROUPS = OrderBy(RegP([_R, _G, _S, _W], [0, 2, 1, 3])).GroupBy([_R * _G, _S * _W])
"""Raster groups of tiles whose numbers only the kernel knows: R groups of G rows of tiles each, or
S groups of W columns; see `raster_group_sizes`."""


def raster_groups(
    down: Int,
    across: Int,
    raster_group: int,
    cluster: tuple[int, int] = (1, 1),
    batch: int | None = None,
) -> Layout:
    """Return the layout from a CTA's id to its tile, (down, across) or (GEMM, down, across).

    A raster group has at most `raster_group` rows of tiles, or if these are more, columns: the
    greatest number that divides C's. If that is less than half of `raster_group`, the groups are as
    equal as they can be, the last one smaller. They are not divided along a dimension whose size
    only the launch knows; if it is so small that one group takes all of it, there is one group, and
    no kernel divides by its size.

    Args:
        down: rows of tiles.
        across: columns of tiles.
        raster_group: rows or columns of tiles of a group, at most.
        cluster: tiles of a cluster, down and across; they divide the tiles.
        batch: GEMMs of a batch, one after another.
    """
    high, wide = cluster
    rows, columns = down // high, across // wide  # of clusters
    limits = max(1, raster_group // high), max(1, raster_group // wide)
    for n, other, limit in ((rows, columns, limits[0]), (columns, rows, limits[1])):
        greatest = bounds(n)[1]
        if isinstance(n, Expr) and isinstance(other, int) and (greatest or limit + 1) <= limit:
            limits = other, other
    group_rows, group_columns = _divisor(rows, limits[0]), _divisor(columns, limits[1])
    is_by_rows = _is_by_rows(rows, columns, group_rows * high, group_columns * wide)
    lead = [] if batch is None else [batch]
    group, n, most = (
        (group_rows, rows, limits[0]) if is_by_rows else (group_columns, columns, limits[1])
    )
    if isinstance(n, int) and group < n and 2 * group < most:
        group_rows, group_columns = _group_size(rows, limits[0]), _group_size(columns, limits[1])
        if _is_by_rows(rows, columns, group_rows * high, group_columns * wide):
            return _unequal_groups([*lead, rows, columns], group_rows, cluster)
        return transposed(_unequal_groups([*lead, columns, rows], group_columns, (wide, high)))
    if is_by_rows:
        dims = [rows // group_rows, group_rows, high, columns, wide]
        order = [0, 3, 1, 2, 4]
    else:
        dims = [rows, high, columns // group_columns, group_columns, wide]
        order = [2, 0, 3, 1, 4]
    kept = [k for k, n in enumerate(dims) if n != 1]
    order = [kept.index(k) for k in order if k in kept]
    if order == sorted(order):
        return OrderBy(Row(*lead, down, across))
    sizes = [*lead, *(dims[k] for k in kept)]
    permuted = RegP(sizes, [*range(len(lead)), *(k + len(lead) for k in order)])
    return OrderBy(permuted).GroupBy([*lead, down, across])


def _is_by_rows(rows: Int, columns: Int, height: int, width: int) -> bool:
    """Return whether raster groups are rows of tiles, of this height; else columns, of this width.

    The dimension that only the launch knows is not divided.
    """
    if isinstance(rows, int) and isinstance(columns, int):
        return height >= width
    return isinstance(rows, int)


def _unequal_groups(dims: list[Int], group: int, cluster: tuple[int, int]) -> Layout:
    """Return raster groups of rows of clusters, the last one smaller than the others.

    Args:
        dims: GEMMs if there is a batch, and rows and columns of clusters.
        group: rows of clusters of a raster group.
        cluster: rows and columns of tiles of a cluster.
    """
    clusters = GenP(dims, row_groups(group))
    if cluster == (1, 1):
        return OrderBy(clusters)
    sizes = [1] * (len(dims) - 2) + list(cluster)
    whole = [n * size for n, size in zip(dims, sizes, strict=True)]
    return OrderBy(clusters, Row(*sizes)).TileBy(whole)


def raster_group_sizes(down: int, across: int, raster_group: int) -> dict[str, int]:
    """Return the sizes for which `RASTER_GROUPS` has groups of equal size, without clusters.

    Arguments are those of `raster_groups`.
    """
    high, wide = _divisor(down, raster_group), _divisor(across, raster_group)
    if high >= wide:
        return {"R": down // high, "G": high, "S": across, "W": 1}
    return {"R": 1, "G": down, "S": across // wide, "W": wide}


def _group_size(n: Int, most: int) -> int:
    """Return the rows of groups of at most `most` of `n` rows, as equal as they can be."""
    return -(-n // -(-n // most)) if isinstance(n, int) else 1


def _divisor(n: Int, most: int) -> int:
    """Return the greatest divisor of `n` that is at most `most`; 1 if only the launch knows `n`."""
    if not isinstance(n, int):
        return 1
    return next(d for d in range(min(n, most), 0, -1) if n % d == 0)
