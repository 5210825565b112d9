"""The order in which persistent CTAs run the programs of a grid, a layout of it.

    OrderBy(GenP([16, 32], row_groups(8)))                      8 rows at a time, column by column
    OrderBy(GenP([8, 32], row_groups(4)), Row(2, 1)).TileBy([16, 32])      in clusters of two rows
    OrderBy(RegP([Y, 4, 8], [1, 0, 2])).GroupBy([Y, 32])        as many rows as the launch has

Of a grid with a size that only the launch knows the other one is divided into groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lego_mlir.algebra import GenP, Layout, OrderBy, RegP, Row, row_groups
from lego_mlir.index import Int


def known_order(dims: Sequence[int], group: int, cluster: Sequence[int]) -> Layout:
    """Return the order of the programs of a grid of known sizes.

    Args:
        dims: the grid's sizes along z, y and x, without those of 1.
        group: rows of a raster group, at most.
        cluster: the sizes of a cluster along these dimensions, which divide them.
    """
    counts = [n // size for n, size in zip(dims, cluster, strict=True)]
    high = max(1, group // cluster[-2]) if len(counts) > 1 else 1
    order = GenP(counts, row_groups(high)) if high > 1 else Row(*counts)
    return OrderBy(order) if prod(cluster) == 1 else OrderBy(order, Row(*cluster)).TileBy([*dims])


def open_order(dims: Sequence[Int], group: int, cluster: int) -> Layout:
    """Return the order of the programs of a grid with sizes that only the launch knows.

    Args:
        dims: the grid's sizes along z, y and x, without those of 1; symbols where the launch knows.
        group: rows or columns of a raster group, at most.
        cluster: how many neighbours are a cluster; a raster group has whole clusters.
    """
    *lead, across = dims
    down: Int = 1
    if lead:
        *lead, down = lead
    before, last = list(range(len(lead))), len(lead)
    if isinstance(across, int) and not isinstance(down, int):
        wide = _group(across, group, cluster)
        sizes, order = [*lead, down, across // wide, wide], [last + 1, last, last + 2]
    elif isinstance(down, int) and down > 1:
        high = _group(down, group, cluster)
        sizes, order = [*lead, down // high, high, across], [last, last + 2, last + 1]
    else:
        return OrderBy(Row(*dims))
    kept = [k for k, n in enumerate(sizes) if n != 1]
    places = [kept.index(k) for k in (*before, *order) if k in kept]
    if places == sorted(places):
        return OrderBy(Row(*dims))
    return OrderBy(RegP([sizes[k] for k in kept], places)).GroupBy([*dims])


def _group(count: int, most: int, cluster: int) -> int:
    """Return the greatest divisor of a count that is at most so many, of whole clusters if it can.

    Args:
        count: rows or columns.
        most: of a group.
        cluster: what divides it.
    """
    whole = cluster if count % cluster == 0 else 1
    return next(n for n in range(max(whole, most), 0, -1) if count % n == 0 and n % whole == 0)
