"""Interleaved rounds: their orders, and which rounds are counted."""

from __future__ import annotations

from itertools import pairwise

from lego_mlir.runtime.cuda.timing import WARM_UP_ROUNDS, interleave


def test_rounds_have_different_orders() -> None:
    order: list[str] = []

    def measure(name: str) -> float:
        order.append(name)
        return float(len(order))

    times = interleave({name: lambda name=name: measure(name) for name in "abc"}, 6)
    assert [len(times[name]) for name in "abc"] == [6, 6, 6]
    by_round = ["".join(order[k : k + 3]) for k in range(0, len(order), 3)]
    assert all(sorted(each) == ["a", "b", "c"] for each in by_round)
    before = {(a, b) for each in by_round for a, b in pairwise(each)}
    assert len(before) == 6  # each one runs behind each other one
    assert min(t for values in times.values() for t in values) > 3 * WARM_UP_ROUNDS
