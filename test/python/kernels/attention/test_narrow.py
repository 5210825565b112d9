"""Attention of elements of 8 bits, in the simulator against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attention_reference import drawn, reference

from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import AttentionConfig, attention
from lego_mlir.runtime.simulator import Simulator

TYPES = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "f16": np.float16}
TOLERANCE = 2e-3
"""The references have the rounded inputs: only exponentials are rounded besides, to f16."""


def check(
    sizes: tuple[int, int, int, int, int, int],
    dtype: str,
    dtype_kv: str,
    running: str = "late",
    **options: Any,
) -> None:
    batch, queries, keys, heads, heads_kv, depth = sizes
    q = drawn(batch, queries, heads, depth).astype(TYPES[dtype])
    k, v = (drawn(batch, keys, heads_kv, depth, seed=n).astype(TYPES[dtype_kv]) for n in (1, 2))
    o = np.full(q.shape, np.nan, np.float16)
    kernel = attention(
        batch, queries, keys, heads, depth, heads_kv=heads_kv, dtype=dtype, dtype_kv=dtype_kv,
        causal=True, **({"target": "sm_90a"} | options),
    )  # fmt: skip
    kernel(q, k, v, o, device=Simulator(order=(running, 0)))
    wide = (x.astype(np.float16) for x in (q, k, v))
    truth, _ = reference(*wide, mask=lambda b, h, i, j: j <= i + keys - queries)
    np.testing.assert_allclose(o, truth, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("dtype", "running"), [("f8E4M3FN", "late"), ("f8E4M3FN", "random"), ("f16", "early")]
)
def test_few_queries(dtype: str, running: str) -> None:
    check((1, 8, 130, 4, 1, 64), dtype, "f8E4M3FN", running)


@pytest.mark.parametrize("dtype", ["f8E4M3FN", "f16"])
def test_many_queries(dtype: str) -> None:
    check((1, 130, 150, 1, 1, 32), dtype, "f8E4M3FN")


def test_the_other_type_and_mma() -> None:
    config = AttentionConfig(32, 32, 2)
    check((2, 20, 70, 2, 2, 48), "f8E5M2", "f8E5M2", config=config, target="sm_89")


def test_keys_and_values_pass_through_rings() -> None:
    kernel = attention(16, 8, 8192, 8, 128, dtype_kv="f8E4M3FN", target="sm_90a")
    maps = [x for x in kernel.compile("sm_90a").launches[0].parameters if hasattr(x, "swizzle")]
    assert [x.argument for x in maps] == [1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "f8"}, "from 'f8' to 'f16'"),
        ({"dtype_kv": "bf16"}, "queries of f16 with keys of 'bf16'"),
        ({"dtype": "f8E4M3FN", "dtype_kv": "f8E5M2"}, "both of one type"),
        ({"dtype_kv": "f8E4M3FN", "head_dim": 24}, "head_dim is 24, of f8E4M3FN; a multiple of 16"),
        ({"dtype": "f8E4M3FN", "out": "f8E4M3FN"}, "to 'f8E4M3FN'"),
    ],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    given = {"batch": 1, "seq_q": 64, "seq_kv": 64, "heads": 2, "head_dim": 32} | options
    with pytest.raises(LegoError) as caught:
        attention(**given)
    assert message in f"{caught.value.message}; {caught.value.hint}"
