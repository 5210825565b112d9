"""The reference of permutations, and the transposes among them that nvcc's peers take."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from bench.peers import Absent
from bench.peers.nvcc import matrices
from bench.permute.reference import PermuteReference


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 4)])
@pytest.mark.parametrize("orders", list(product(("row", "col"), repeat=2)))
def test_the_reference_equals_plain_loops(shape: tuple[int, ...], orders: Any) -> None:
    def offset(index: tuple[int, ...], extents: tuple[int, ...], order: str) -> int:
        dims = list(zip(index, extents, strict=True))
        at = 0
        for i, n in dims if order == "row" else reversed(dims):
            at = at * n + i
        return at

    for axes in permutations(range(len(shape))):
        reference = PermuteReference(shape, axes, *orders)
        memory = np.random.default_rng(0).integers(0, 1000, reference.size)
        expected = np.empty_like(memory)
        for index in np.ndindex(*shape):
            moved = tuple(index[k] for k in axes)
            to = offset(moved, reference.output_shape, orders[1])
            expected[to] = memory[offset(index, shape, orders[0])]
        assert np.array_equal(reference.expected(memory), reference.output_tensor(expected))


def test_nvcc_takes_row_major_transposes_of_the_last_two_dimensions() -> None:
    assert matrices(PermuteReference((64, 96))) == (1, 64, 96)
    assert matrices(PermuteReference((2, 3, 64, 96), (0, 1, 3, 2))) == (6, 64, 96)
    for other in (
        PermuteReference((64, 96), (0, 1)),
        PermuteReference((64, 96), target="col"),
        PermuteReference((2, 64, 96), (2, 1, 0)),
        PermuteReference((70000, 8, 8), (0, 2, 1)),
    ):
        with pytest.raises(Absent):
            matrices(other)
