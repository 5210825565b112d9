"""Scans keep the order of elements: affine maps are composed, for random layouts, step by step."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_distributed import any_layouts
from run_conversions import registers_of, run

from lego_mlir.analysis.distributed import (
    DistributedLayout,
    Place,
    Scan,
    coalesced,
    plan_scan,
    wgmma_accumulator,
)
from lego_mlir.diagnostics import LegoError


def combine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compose affine maps, which do not commute: `a` first. A map is m * 2^32 + c."""
    m1, c1, m2, c2 = a >> 32, a & 0xFFFFFFFF, b >> 32, b & 0xFFFFFFFF
    return (m1 * m2 % 251) << 32 | ((c1 * m2 + c2) % 251)


def run_scan(plan: Scan, held: np.ndarray) -> np.ndarray:
    """Run the scan of a composition."""
    values, totals = held.copy(), held[..., list(plan.totals)]
    cta, warp, lane = np.indices(held.shape[:3])
    for step in plan.steps:
        place, weight, size = step.digit
        before = list(step.before)
        if place is Place.LANE:
            assert size == 2
            high = (lane // weight % 2 == 1)[..., None]
            other = totals[:, :, np.arange(32) ^ weight]
            values = np.where(high, combine(other[..., before], values), values)
            totals = np.where(high, combine(other, totals), combine(totals, other))
            totals = totals[..., [g for (g,) in step.groups]]
            continue
        if step.gather is None:
            new = []
            for group in step.groups:
                running = totals[..., group[0]]
                for t in group[1:]:
                    for v in (r for r, b in enumerate(before) if b == t):
                        values[..., v] = combine(running, values[..., v])
                    running = combine(running, totals[..., t])
                new.append(running)
            totals = np.stack(new, axis=-1)
            continue
        held = run(step.gather, totals)
        own = {Place.WARP: warp, Place.CTA: cta}[place] // weight % size
        for k, group in enumerate(step.groups):
            for digit in range(1, size):
                prefix = reduce(combine, [held[..., g] for g in group[:digit]])
                for v in (r for r, b in enumerate(before) if b == k):
                    values[..., v] = np.where(
                        own == digit, combine(prefix, values[..., v]), values[..., v]
                    )
        totals = np.stack(
            [reduce(combine, [held[..., g] for g in group]) for group in step.groups], axis=-1
        )
    return values


@given(any_layouts(), st.data(), st.sampled_from([4, 8]))
@settings(max_examples=200)
def test_random_layouts(layout: DistributedLayout, data: st.DataObject, size: int) -> None:
    dim = data.draw(st.integers(0, layout.rank - 1))
    plan = plan_scan(layout, dim, size)
    random = np.random.default_rng(1)
    values = random.integers(1, 251, layout.shape) << 32 | random.integers(0, 251, layout.shape)
    expected = np.moveaxis(values, dim, 0).copy()
    for k in range(1, len(expected)):
        expected[k] = combine(expected[k - 1], expected[k])
    expected = np.moveaxis(expected, 0, dim)
    found = run_scan(plan, registers_of(layout, values))
    assert np.array_equal(found, registers_of(layout, expected))
    assert "\n" not in plan.explain()


def test_rows() -> None:
    assert plan_scan(coalesced((4, 256), 4, 4), 1, 4).explain() == (
        "4 registers → 2 shuffles of 1 lanes → 2 shuffles of 2 lanes → 2 shuffles of 4 lanes → "
        "2 shuffles of 8 lanes → 2 shuffles of 16 lanes → 2 registers"
    )
    steps = plan_scan(wgmma_accumulator((64, 176)), 1, 4).steps
    assert [s.digit.size for s in steps] == [2, 2, 2, 22]


def test_there_is_no_such_dimension() -> None:
    with pytest.raises(LegoError, match="there is no dimension -3 in a tile"):
        plan_scan(wgmma_accumulator((64, 176)), -3, 4)
