"""Random lengths and offsets of sequences, each through one compiled kernel."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from attention_reference import Array, drawn, reference
from hypothesis import given, settings
from hypothesis import strategies as st

from lego_mlir.kernels import AttentionConfig, attention
from lego_mlir.runtime.simulator import Simulator

BATCH, QUERIES, KEYS, DEPTH = 3, 20, 70, 16
TOLERANCE = 3e-3


SPLITS = {5: 1, 40: 3}
"""Of the keys, by the window."""


@cache
def ragged_kernel(window: int) -> Any:
    config = AttentionConfig(16, 16, 1, packed=True, splits=SPLITS[window])
    return attention(
        BATCH, QUERIES, KEYS, 2, DEPTH, heads_kv=1, causal=True, window=window, ragged=True,
        config=config, target="sm_90a",
    )  # fmt: skip


@cache
def paged_kernel(splits: int) -> Any:
    """Return a kernel whose iterations have the keys of as many pages as there are splits."""
    config = AttentionConfig(16, 16 * splits, 1, packed=True, splits=splits)
    return attention(
        None, 2, None, 4, DEPTH, heads_kv=2, causal=True, lengths=True, page_size=16,
        config=config, target="sm_90a",
    )  # fmt: skip


def causal(lead: int, window: int = 1 << 30) -> Any:
    return lambda b, h, i, j: (j <= i + lead) & (j > i + lead - window)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, QUERIES), st.integers(0, KEYS)), min_size=BATCH, max_size=BATCH
    ),
    st.sampled_from([*SPLITS]),
    st.sampled_from(["late", "random"]),
)
def test_ragged_batches(lengths: list[tuple[int, int]], window: int, running: str) -> None:
    offsets_q, offsets_kv = (
        np.cumsum([0, *(pair[k] for pair in lengths)]).astype(np.int32) for k in range(2)
    )
    q = drawn(max(1, offsets_q[-1]), 2, DEPTH)
    k, v = (drawn(max(1, offsets_kv[-1]), 1, DEPTH, seed=n) for n in (1, 2))
    o = np.full_like(q, 7)
    ragged_kernel(window)(q, k, v, offsets_q, offsets_kv, o, device=Simulator(order=(running, 1)))
    expected = np.full(q.shape, 7.0)
    for b, (queries, keys) in enumerate(lengths):
        rows, columns = slice(*offsets_q[b : b + 2]), slice(*offsets_kv[b : b + 2])
        if queries and keys:
            parts = q[None, rows], k[None, columns], v[None, columns]
            expected[rows] = reference(*parts, mask=causal(keys - queries, window))[0][0]
        else:
            expected[rows] = 0
    np.testing.assert_allclose(o, expected, atol=TOLERANCE)


@settings(max_examples=12, deadline=None)
@given(st.data(), st.integers(1, 4), st.integers(1, 5), st.sampled_from([1, 4]))
def test_pages_of_any_batch(data: Any, batch: int, each: int, splits: int) -> None:
    """Pages that a sequence does not need have no number in the cache."""
    lengths = np.array(
        data.draw(st.lists(st.integers(0, 16 * each), min_size=batch, max_size=batch)), np.int32
    )
    count = batch * each
    table = np.array(data.draw(st.permutations(range(count))), np.int32).reshape(batch, each)
    k, v = (drawn(count, 16, 2, DEPTH, seed=n) for n in (1, 2))
    whole: list[Array] = [x[table].reshape(batch, 16 * each, 2, DEPTH) for x in (k, v)]
    unused = np.arange(each) >= -(-lengths[:, None] // 16)
    q = drawn(batch, 2, 4, DEPTH)
    o = np.full_like(q, np.nan)
    given = np.where(unused, 1 << 30, table).astype(np.int32)
    paged_kernel(splits)(q, k, v, lengths, given, o, device="sim")
    truth, _ = reference(
        q, *whole, mask=lambda b, h, i, j: (j < lengths[b]) & (j <= i + lengths[b] - 2)
    )
    np.testing.assert_allclose(o, truth, atol=TOLERANCE)
