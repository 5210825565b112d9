"""The order in which blocks take a product's tiles: layouts from a block's number to its tile.

In groups of rows of tiles, down each column of a group: blocks at work at the same time then read
few tiles of A and of B, which are still in the second-level cache. Blocks of a cluster have
consecutive numbers: tiles one below the other have a tile of B in common, tiles beside each other
one of A.
"""

from __future__ import annotations

from lego_mlir.algebra import Layout, OrderBy, RegP, Row


def grouped(
    down: int,
    across: int,
    group: int,
    cluster: tuple[int, int] = (1, 1),
    batch: int | None = None,
) -> Layout:
    """From the number of a block to its tile, (down, across), or with a batch (product, ...).

    Groups are as many tiles high, or where that is more wide, as divide the tiles and are at most
    `group`.

    Args:
        down: tiles one below the other.
        across: tiles beside each other.
        group: tiles that a group is high or wide, at most.
        cluster: tiles of a cluster, down and across; they divide the tiles.
        batch: products, one after another.
    """
    high, wide = cluster
    rows, columns = down // high, across // wide  # of clusters
    group_rows = _divisor(rows, max(1, group // high))
    group_columns = _divisor(columns, max(1, group // wide))
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


def _divisor(n: int, most: int) -> int:
    """The greatest divisor of `n` that is at most `most`."""
    return next(d for d in range(min(n, most), 0, -1) if n % d == 0)
