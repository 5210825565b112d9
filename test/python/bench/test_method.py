"""The oracle, the rounds, and which transposes the peers take."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from bench.movement import Permute
from bench.peers import Absent
from bench.peers.nvcc import matrices
from bench.timing import WARM_UP, rounds


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 4)])
@pytest.mark.parametrize("orders", list(product(("row", "col"), repeat=2)))
def test_the_oracle_against_plain_loops(shape: tuple[int, ...], orders: Any) -> None:
    def offset(index: tuple[int, ...], extents: tuple[int, ...], order: str) -> int:
        dims = list(zip(index, extents, strict=True))
        at = 0
        for i, n in dims if order == "row" else reversed(dims):
            at = at * n + i
        return at

    for axes in permutations(range(len(shape))):
        move = Permute(shape, axes, *orders)
        memory = np.random.default_rng(0).integers(0, 1000, move.size)
        wanted = np.empty_like(memory)
        for index in np.ndindex(*shape):
            moved = tuple(index[k] for k in axes)
            to = offset(moved, move.result_shape, orders[1])
            wanted[to] = memory[offset(index, shape, orders[0])]
        assert np.array_equal(move.expected(memory), move.result(wanted))


def test_rounds_interleave_and_each_begins_one() -> None:
    order: list[str] = []

    def measure(name: str) -> float:
        order.append(name)
        return float(len(order))

    times = rounds({name: lambda name=name: measure(name) for name in "abc"}, 6)
    assert [len(times[name]) for name in "abc"] == [6, 6, 6]
    turns = ["".join(order[k : k + 3]) for k in range(0, len(order), 3)]
    assert (
        turns
        == ["abc", "bca", "cab"] * ((WARM_UP + 6) // 3) + ["abc", "bca", "cab"][: (WARM_UP + 6) % 3]
    )
    assert min(t for values in times.values() for t in values) > 3 * WARM_UP


def test_which_transposes_nvcc_takes() -> None:
    assert matrices(Permute((64, 96))) == (1, 64, 96)
    assert matrices(Permute((2, 3, 64, 96), (0, 1, 3, 2))) == (6, 64, 96)
    for other in (
        Permute((64, 96), (0, 1)),
        Permute((64, 96), target="col"),
        Permute((2, 64, 96), (2, 1, 0)),
        Permute((70000, 8, 8), (0, 2, 1)),
    ):
        with pytest.raises(Absent):
            matrices(other)
