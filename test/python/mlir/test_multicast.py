"""Which CTAs of a cluster have a tile in common, against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.kernels.gemm.rasterization import raster_groups
from lego_mlir.mlir.warp_specialized.multicast import ClusterSharing, TileSharing, widest_sharing


@given(st.tuples(*[st.integers(1, 4)] * 3))
def test_peers_differ_in_the_middle_index(sizes: tuple[int, int, int]) -> None:
    sharing = TileSharing(sizes)
    ranks = list(product(*map(range, sizes)))
    for rank, (before, _, behind) in enumerate(ranks):
        same = {k for k, other in enumerate(ranks) if (other[0], other[2]) == (before, behind)}
        assert sharing.peers(rank) == same
        assert len(same) == sharing.ctas
    assert sharing.is_by_all == (sharing.ctas == len(ranks))


@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (1, 4), (2, 2), (2, 4), (4, 2), (8, 1)])
@pytest.mark.parametrize("tiles", [(8, 8), (40, 16), (16, 104)])
def test_a_rasterization_with_clusters_shares_rows_and_columns(
    tiles: tuple[int, int], cluster: tuple[int, int]
) -> None:
    high, wide = cluster
    layout = raster_groups(*tiles, 8, cluster)
    ctas = high * wide
    indices = [np.asarray(x).reshape(-1, ctas) for x in layout.inv(np.arange(layout.size))]
    shared = ClusterSharing(ctas, tuple(widest_sharing([x], ctas) for x in indices))
    a, b = shared.operands
    assert (a.ctas, b.ctas) == (wide, high)
    for values, sharing in zip(indices, shared.operands, strict=True):
        for rank in range(ctas):
            same = (values == values[:, rank : rank + 1]).all(axis=0)
            assert sharing.peers(rank) == set(np.flatnonzero(same).tolist())
    assert shared.ctas == high + wide - 1


@given(st.sampled_from([1, 2, 4, 8]), st.data())
def test_the_widest_sharing_of_any_tiles(cluster: int, data: st.DataObject) -> None:
    values = data.draw(
        st.lists(
            st.lists(st.integers(0, 1), min_size=cluster, max_size=cluster), min_size=1, max_size=3
        )
    )
    table = np.array(values)

    def holds(sharing: TileSharing) -> bool:
        return all(
            (table[:, rank] == table[:, peer]).all()
            for rank in range(cluster)
            for peer in sharing.peers(rank)
        )

    divisors = [n for n in range(1, cluster + 1) if cluster % n == 0]
    possible = [
        TileSharing((before, ctas, cluster // before // ctas))
        for before, ctas in product(divisors, divisors)
        if cluster % (before * ctas) == 0
    ]
    found = widest_sharing([table], cluster)
    assert holds(found)
    assert found.ctas == max(one.ctas for one in possible if holds(one))


def test_tiles_that_nobody_has_in_common() -> None:
    sharing = widest_sharing([np.arange(8).reshape(2, 4)], 4)
    assert sharing.ctas == 1
    assert ClusterSharing(4, (sharing, sharing)).ctas == 1
