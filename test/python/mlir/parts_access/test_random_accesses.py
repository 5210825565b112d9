"""Loads and stores of parts, of random tiles in random layouts, are right element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from parts_kernels import DTYPES, Case, cases, outputs, text


def arrays(case: Case) -> dict[str, Any]:
    """Return random arguments of a case's kernel."""
    rng = np.random.default_rng(0)
    rows = (case.grid * case.threads, case.count)
    high = 2 if case.element == "i1" else 100
    dtype = DTYPES[case.element]
    return {
        "x": rng.integers(0, high, int(case.parsed.size)).astype(dtype),
        "y": rng.integers(0, high, rows).astype(dtype).reshape(-1),
        "m": rng.integers(0, 2, rows).astype(np.int8).reshape(-1),
    }


@settings(max_examples=40)
@given(cases())
def test_a_load_reads_what_exists_and_is_let_through(case: Case) -> None:
    given = arrays(case)
    there = case.exists() & case.let_through(given["m"])
    other = 7 if case.element.startswith("f") else 1
    expected = np.where(there, given["x"][case.offsets()], other)
    found = outputs(text(case, store=False), given)["y"]
    np.testing.assert_array_equal(np.asarray(found).reshape(expected.shape), expected)


@settings(max_examples=40)
@given(cases())
def test_a_store_writes_what_exists_and_is_let_through_and_nothing_else(case: Case) -> None:
    given = arrays(case)
    there = (case.exists() & case.let_through(given["m"]))[:, : case.holders]
    values = given["y"].reshape(case.grid, case.threads, case.count)[:, : case.holders]
    offsets = case.offsets()[:, : case.holders]
    if case.grid > 1 and not any(case.step):
        return  # two CTAs would write the same elements
    if len(np.unique(offsets[there])) < np.count_nonzero(there):
        return  # so would two tiles that overlap
    expected = given["x"].copy()
    expected[offsets[there]] = values[there]
    found = outputs(text(case, store=True), given).get("x", given["x"])  # unless none exists
    np.testing.assert_array_equal(np.asarray(found).reshape(-1), expected)
