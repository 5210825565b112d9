"""Interleaved rounds: which measure starts each, and which rounds are counted."""

from __future__ import annotations

from lego_mlir.runtime.cuda.timing import WARM_UP_ROUNDS, interleave


def test_rounds_interleave_and_start_with_different_measures() -> None:
    order: list[str] = []

    def measure(name: str) -> float:
        order.append(name)
        return float(len(order))

    times = interleave({name: lambda name=name: measure(name) for name in "abc"}, 6)
    assert [len(times[name]) for name in "abc"] == [6, 6, 6]
    by_round = ["".join(order[k : k + 3]) for k in range(0, len(order), 3)]
    assert (
        by_round
        == ["abc", "bca", "cab"] * ((WARM_UP_ROUNDS + 6) // 3)
        + ["abc", "bca", "cab"][: (WARM_UP_ROUNDS + 6) % 3]
    )
    assert min(t for values in times.values() for t in values) > 3 * WARM_UP_ROUNDS
