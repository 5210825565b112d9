"""Programs of different lengths are dealt to CTAs as a launch of all of them would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.mlir.tile_steps.roles.program_shares import shares


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(1, 9))
def test_each_program_begins_on_the_cta_that_is_free_first(costs: list[int], ctas: int) -> None:
    dealt = shares(costs, min(ctas, len(costs)))
    assert sorted(n for share in dealt for n in share) == list(range(len(costs)))
    begins = {}
    for share in dealt:
        assert share == sorted(share)
        until = 0
        for program in share:
            begins[program] = until
            until += costs[program]
    # No program begins before one that precedes it, nor while another CTA has been idle.
    assert [begins[n] for n in range(len(costs))] == sorted(begins.values())
    ends = [sum(costs[n] for n in share) for share in dealt]
    assert min(ends) >= max(begins.values())


def test_a_triangle_is_dealt_evenly() -> None:
    costs = [n for _ in range(4) for n in range(64, 0, -1)]
    ends = [sum(costs[n] for n in share) for share in shares(costs, 12)]
    assert max(ends) <= 1.05 * sum(costs) / 12
