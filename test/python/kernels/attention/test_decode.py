"""Attention of few queries in the simulator: packed heads, splits, lengths, pages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attention_reference import drawn, reference

from lego_mlir.kernels import AttentionConfig, attention
from lego_mlir.runtime.simulator import Simulator

TOLERANCE = 3e-3
PLAIN = AttentionConfig(16, 32, 1, packed=True)
RINGS = AttentionConfig(64, 32, 4, packed=True, schedule="pipelined")
SKEWED = AttentionConfig(64, 32, 4, packed=True, schedule="attention")
COPIED = AttentionConfig(64, 32, 4, packed=True, schedule="cp_async")


def split(config: AttentionConfig, splits: int) -> AttentionConfig:
    return AttentionConfig(
        config.rows, config.columns, config.warps, True, splits, config.schedule, config.stages
    )


@pytest.mark.parametrize("config", [PLAIN, RINGS, SKEWED], ids=["plain", "rings", "skewed"])
@pytest.mark.parametrize(("splits", "is_causal"), [(1, True), (3, False), (13, True)])
def test_splits(config: AttentionConfig, splits: int, is_causal: bool) -> None:
    """Of 13 splits of 7 tiles some have no keys, with a causal mask others too."""
    q = drawn(2, 4, 4, 32)
    k, v = (drawn(2, 200, 2, 32, seed=n) for n in (1, 2))
    o, lse = np.full_like(q, np.nan), np.full((2, 4, 4), np.nan, np.float32)
    kernel = attention(
        2, 4, 200, 4, 32, heads_kv=2, lse=True, causal=is_causal, target="sm_90a",
        config=split(config, splits),
    )  # fmt: skip
    kernel(q, k, v, o, lse, device=Simulator(order=("random", splits)))
    seen = (lambda b, h, i, j: j <= i + 196) if is_causal else None
    truth, logs = reference(q, k, v, mask=seen)
    np.testing.assert_allclose(o, truth, atol=TOLERANCE)
    np.testing.assert_allclose(lse, logs, atol=1e-3)


def test_all_heads_of_a_group_in_one_tile() -> None:
    q = drawn(1, 8, 8, 64)
    k, v = (drawn(1, 130, 1, 64, seed=n) for n in (1, 2))
    truth, _ = reference(q, k, v, mask=lambda b, h, i, j: j <= i + 122)
    kernel = attention(1, 8, 130, 8, 64, heads_kv=1, causal=True, target="sm_90a")
    for running in ("late", "early", "random"):
        o = np.full_like(q, np.nan)
        kernel(q, k, v, o, device=Simulator(order=(running, 0)))
        np.testing.assert_allclose(o, truth, atol=TOLERANCE, err_msg=running)


@pytest.mark.parametrize(
    ("config", "splits"),
    [(PLAIN, 3), (RINGS, 1), (RINGS, 3), (SKEWED, 1), (SKEWED, 3), (COPIED, 3)],
)
def test_lengths(config: AttentionConfig, splits: int) -> None:
    lengths = np.array([0, 1, 70, 128], np.int32)
    q, k, v = (drawn(4, n, h, 32, seed=h) for n, h in ((2, 2), (128, 1), (128, 1)))
    o = np.full_like(q, np.nan)
    kernel = attention(
        4, 2, 128, 2, 32, heads_kv=1, causal=True, lengths=True, target="sm_90a",
        config=split(config, splits),
    )  # fmt: skip
    kernel(q, k, v, lengths, o, device=Simulator(order=("early", 0)))
    truth, _ = reference(
        q, k, v, mask=lambda b, h, i, j: (j < lengths[b]) & (j <= i + lengths[b] - 2)
    )
    np.testing.assert_allclose(o, truth, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("config", "splits", "page"), [(PLAIN, 3, 32), (RINGS, 3, 16), (RINGS, 1, 64), (SKEWED, 1, 32)]
)
def test_pages(config: AttentionConfig, splits: int, page: int) -> None:
    """Of pages of 16 keys an iteration takes two."""
    most, lengths = 128, np.array([100, 5, 64], np.int32)
    count = 3 * most // page
    table = np.random.default_rng(0).permutation(count).astype(np.int32).reshape(3, -1)
    k, v = drawn(count, page, 2, 32, seed=1), drawn(count, page, 2, 32, seed=2)
    q = drawn(3, 1, 8, 32)
    o = np.full_like(q, np.nan)
    kernel = attention(
        3, 1, most, 8, 32, heads_kv=2, lengths=True, page_size=page, pages=count, target="sm_90a",
        config=split(config, splits),
    )  # fmt: skip
    kernel(q, k, v, lengths, table, o, device="sim")
    whole = [x[table].reshape(3, most, 2, 32) for x in (k, v)]
    truth, _ = reference(q, *whole, mask=lambda b, h, i, j: j < lengths[b])
    np.testing.assert_allclose(o, truth, atol=TOLERANCE)


@pytest.mark.parametrize(("config", "pages"), [(PLAIN, 8), (RINGS, None)])
def test_keys_of_pages_that_do_not_exist_are_zeros(
    config: AttentionConfig, pages: int | None
) -> None:
    """Numbers of pages that no sequence reaches are not looked at."""
    lengths = np.array([100, 40, 0], np.int32)
    table = np.array([[5, -1, 3, 1 << 30], [8, 4, -1, 9], [-1, -1, -1, -1]], np.int32)
    k, v = (drawn(8, 32, 1, 32, seed=n) for n in (1, 2))
    q = drawn(3, 1, 4, 32)
    o = np.full_like(q, np.nan)
    kernel = attention(
        3, 1, 128, 4, 32, heads_kv=1, lengths=True, page_size=32, pages=pages, config=config,
        target="sm_90a",
    )  # fmt: skip
    kernel(q, k, v, lengths, table, o, device="sim")
    inside = (table >= 0) & (table < 8)
    held = (np.where(inside[..., None, None, None], x[table * inside], 0) for x in (k, v))
    whole = [x.reshape(3, 128, 1, 32) for x in held]
    truth, _ = reference(q, *whole, mask=lambda b, h, i, j: j < lengths[b])
    np.testing.assert_allclose(o, truth, atol=TOLERANCE)


@pytest.mark.parametrize(("page", "batch"), [(None, 2), (32, 2), (32, None)])
def test_keys_and_values_that_are_appended(page: int | None, batch: int | None) -> None:
    """The second sequence has fewer keys than are new: what is before it is not stored."""
    lengths, new = np.array([70, 1], np.int32), 3
    table = np.array([[5, 1, 3, 0], [2, 4, 6, 7]], np.int32)
    shape = (2, 128, 1, 32) if page is None else (8, page, 1, 32)
    k, v = (drawn(*shape, seed=n) for n in (1, 2))
    fresh = [drawn(2, new, 1, 32, seed=n) for n in (3, 4)]
    q = drawn(2, new, 4, 32)
    o = np.full_like(q, np.nan)
    kernel = attention(
        batch, new, 128, 4, 32, heads_kv=1, causal=True, lengths=True, append=True,
        page_size=page, target="sm_90a",
    )  # fmt: skip
    whole = [(x if page is None else x[table].reshape(2, 128, 1, 32)).copy() for x in (k, v)]
    for old, added in zip(whole, fresh, strict=True):
        old[0, 67:70], old[1, :1] = added[0], added[1, 2:]
    kernel(q, k, v, *fresh, lengths, *([] if page is None else [table]), o, device="sim")
    held = [x if page is None else x[table].reshape(2, 128, 1, 32) for x in (k, v)]
    np.testing.assert_array_equal(held, whole)
    truth, _ = reference(
        q, *whole, mask=lambda b, h, i, j: (j < lengths[b]) & (j <= i + lengths[b] - new)
    )
    np.testing.assert_allclose(o, truth, atol=TOLERANCE)


def test_the_heuristic_divides_keys_where_sequences_are_few() -> None:
    def chosen(batch: int, queries: int, keys: int = 8192) -> Any:
        return attention(batch, queries, keys, 64, 128, heads_kv=8, target="sm_90a").explain()

    assert "keys divided among 16 CTAs" in chosen(1, 1)
    assert "keys divided" not in chosen(16, 8)
    assert "64 queries of all heads of a group" in chosen(64, 8)
    assert "128 queries of all heads of a group" in chosen(1, 16, 32768)
    assert "64 queries of all heads of a group" in chosen(1, 16, 2048)
    # Results of many queries cost more than keys that each CTA sees more of.
    assert "keys divided among 8 CTAs" in chosen(1, 8, 2048)
    assert "keys divided" not in chosen(1, 512, 512)


def test_kernels_of_few_queries_begin_while_the_launch_ahead_ends() -> None:
    def is_dependent(queries: int) -> Any:
        kernel: Any = attention(128, queries, 2048, 8, 64, heads_kv=2, target="sm_90a")
        return bool(kernel.pdl)

    assert is_dependent(1)
    assert not is_dependent(2048)


def test_kernels_of_sizes_that_the_launch_knows_are_explained() -> None:
    """The second kernel has no tensor that tells how many keys there are: the sequence's have."""
    text = attention(None, 1, None, 2, 32, target="sm_90a").explain()
    assert "keys divided among" in text
    combine = text[text.index("<kernel combine") :]
    assert "lego.load" in combine
    assert "lego.dot" not in combine
