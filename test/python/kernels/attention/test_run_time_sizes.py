"""Attention whose sizes, offsets of sequences or strides only the launch knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attention_reference import drawn, reference

from lego_mlir.artifact import TensorMapParameter
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import AttentionConfig, attention

TOLERANCE = 3e-3


def check(kernel: Any, batch: int, queries: int, keys: int, heads: int, heads_kv: int) -> None:
    """Check a kernel of depth 32, with a causal mask, at some sizes."""
    q = drawn(batch, queries, heads, 32)
    k, v = (drawn(batch, keys, heads_kv, 32, seed=n) for n in (1, 2))
    o, lse = np.empty_like(q), np.empty((batch, heads, queries), np.float32)
    kernel(q, k, v, o, lse, device="sim")
    expected, logs = reference(q, k, v, mask=lambda b, h, i, j: j <= i + keys - queries)
    np.testing.assert_allclose(o, expected, atol=TOLERANCE)
    np.testing.assert_allclose(lse, logs, atol=1e-3)


def test_many_queries() -> None:
    kernel = attention(None, None, None, 2, 32, heads_kv=1, causal=True, lse=True, target="sm_90a")
    for sizes in ((1, 64, 64), (2, 130, 200)):
        check(kernel, *sizes, 2, 1)
    assert len(kernel.classes()) <= 4


def test_persistent_ctas_run_pairs_of_tiles() -> None:
    """Of 2 to 14 tiles of queries: what is left over by pairs is nothing, some CTAs', or more."""
    config = AttentionConfig(64, 32, 4, schedule="attention", ctas=3, query_stages=1)
    kernel = attention(
        None, None, None, 2, 32, heads_kv=1, causal=True, lse=True, target="sm_90a", config=config
    )
    for sizes in ((1, 33, 100), (3, 1, 7), (1, 300, 300), (1, 400, 100)):
        check(kernel, *sizes, 2, 1)


def test_keys_come_by_tma() -> None:
    """Sizes and strides of the tensor maps, also of queries, are what the launch computes."""
    strides = dict.fromkeys("kv", (None, None, None, 1))
    for options in ({}, {"strides": strides}):
        artifact = attention(None, None, None, 2, 32, target="sm_90a", **options).compile("sm_90a")
        maps = [p for p in artifact.launches[0].parameters if isinstance(p, TensorMapParameter)]
        assert [p.argument for p in maps] == [0, 1, 2]
        assert any(isinstance(n, str) for n in maps[1].strides)


def test_few_queries_and_splits_by_the_batch() -> None:
    kernel = attention(None, 3, None, 4, 32, heads_kv=2, causal=True, lse=True, target="sm_90a")
    for batch, keys in ((1, 300), (1, 1000), (5, 130), (70, 10)):
        check(kernel, batch, 3, keys, 4, 2)


def test_pages_of_a_batch_that_the_launch_knows() -> None:
    kernel = attention(
        None, 1, None, 8, 32, heads_kv=2, lengths=True, page_size=32, target="sm_90a"
    )
    for batch, each in ((1, 3), (3, 5)):
        lengths = np.random.default_rng(each).integers(0, 32 * each + 1, batch).astype(np.int32)
        pages = np.random.default_rng(batch).permutation(20)[: batch * each].astype(np.int32)
        table = pages.reshape(batch, each)
        k, v = (drawn(20, 32, 2, 32, seed=n) for n in (1, 2))
        q = drawn(batch, 1, 8, 32)
        o = np.empty_like(q)
        kernel(q, k, v, lengths, table, o, device="sim")
        whole = [x[table].reshape(batch, -1, 2, 32) for x in (k, v)]
        truth, _ = reference(q, *whole, mask=lambda b, h, i, j, n=lengths: j < n[b])
        np.testing.assert_allclose(o, truth, atol=TOLERANCE)


RAGGED = np.array([0, 40, 40, 41, 120], np.int32), np.array([0, 70, 100, 100, 150], np.int32)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("order", ["bshd", "bhsd"])
def test_sequences_that_follow_one_another(packed: bool, order: str) -> None:
    offsets_q, offsets_kv = RAGGED
    q = drawn(offsets_q[-1], 4, 32)
    k, v = (drawn(offsets_kv[-1], 2, 32, seed=n) for n in (1, 2))
    o, lse = np.full_like(q, np.nan), np.full((4, len(q)), np.nan, np.float32)
    kernel = attention(
        4, 80, 70, 4, 32, heads_kv=2, causal=True, ragged=True, order=order, lse=True,
        config=AttentionConfig(32, 32, 2, packed), target="sm_90a",
    )  # fmt: skip
    given = [x.swapaxes(0, 1).copy() if order == "bhsd" else x for x in (q, k, v, o)]
    kernel(*given[:3], offsets_q, offsets_kv, given[3], lse, device="sim")
    o = given[3].swapaxes(0, 1) if order == "bhsd" else o
    for b in range(4):
        rows, columns = (slice(*x[b : b + 2]) for x in RAGGED)
        queries, keys = rows.stop - rows.start, columns.stop - columns.start
        if queries == 0:
            continue
        truth, logs = reference(
            q[None, rows], k[None, columns], v[None, columns],
            mask=lambda b, h, i, j, n=keys - queries: j <= i + n,
        )  # fmt: skip
        np.testing.assert_allclose(o[rows], truth[0], atol=TOLERANCE)
        np.testing.assert_allclose(lse[:, rows], logs[0], atol=1e-3)


@pytest.mark.parametrize("known", [False, True])
def test_queries_keys_and_values_of_one_tensor(known: bool) -> None:
    qkv = drawn(2, 70, 3, 2, 32)
    q, k, v = (qkv[:, :, n] for n in range(3))
    o = np.full((2, 70, 2, 32), np.nan, np.float16)
    steps = (70 * 192, 192, 32, 1) if known else (None, None, None, 1)
    kernel = attention(
        2, 70, 70, 2, 32, strides=dict.fromkeys("qkv", steps), causal=True, target="sm_90a"
    )
    kernel(q, k, v, o, device="sim")
    truth, _ = reference(q, k, v, mask=lambda b, h, i, j: j <= i)
    np.testing.assert_allclose(o, truth, atol=TOLERANCE)


def test_results_in_a_larger_tensor() -> None:
    q, k, v = (drawn(1, 64, 2, 32, seed=n) for n in range(3))
    whole = np.zeros((1, 64, 2, 64), np.float16)
    kernel = attention(1, 64, 64, 2, 32, strides={"o": (None, None, 64, 1)}, target="sm_90a")
    kernel(q, k, v, whole[..., :32], device="sim")
    np.testing.assert_allclose(whole[..., :32], reference(q, k, v)[0], atol=TOLERANCE)
    assert (whole[..., 32:] == 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strides": {"lse": (1,)}}, "strides of 'lse'"),
        ({"strides": {"q": (64, 1)}}, "the strides of 'q' are (64, 1); 4 of them"),
        ({"strides": {"q": (None, 100, 32, 1)}}, "multiples of 8"),
        ({"strides": {"q": (None, 64, 32, 2)}}, "the last one is 1"),
        ({"ragged": True, "lengths": True}, "a ragged batch has offsets"),
        ({"ragged": True, "seq_q": None}, "a ragged batch has offsets"),
        (
            {"page_size": 32, "lengths": True, "config": AttentionConfig(schedule="attention")},
            "pages of 32 keys are no tiles of 64",
        ),
        ({"seq_q": "8"}, "seq_q is a positive integer, not '8'"),
    ],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    given = {"batch": 1, "seq_q": 64, "seq_kv": 64, "heads": 2, "head_dim": 32} | options
    with pytest.raises(LegoError) as caught:
        attention(**given)
    assert message in f"{caught.value.message}; {caught.value.hint}"


def test_a_launch_whose_lengths_disagree() -> None:
    kernel = attention(None, None, None, 2, 32, target="sm_90a")
    q, k = drawn(1, 8, 2, 32), drawn(1, 20, 2, 32)
    with pytest.raises(LegoError, match="'v'"):
        kernel(q, k, k[:, :16].copy(), np.empty_like(q), device="sim")
