"""Attention in the simulator, compared with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from attention_reference import drawn, reference

import lego_mlir as lg
from lego_mlir.algebra.sizes import ceildiv, size_symbol
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import AttentionConfig, attention
from lego_mlir.kernels.attention.order import WorkOrder, order_of
from lego_mlir.kernels.attention.problem import AttentionProblem
from lego_mlir.runtime.simulator import Simulator

TOLERANCE = 3e-3
ORDERS = ("late", "early", "random")


def check(
    sizes: tuple[int, int, int, int, int, int],
    *more: Any,
    seen: Any = None,
    scored: Any = None,
    running: Sequence[str] = ("late",),
    **options: Any,
) -> None:
    """Check a kernel and its logarithms.

    Args:
        sizes: batch, queries, keys, heads, heads of keys, depth.
        more: further arguments of the kernel.
        seen: the mask of NumPy.
        scored: the score function of NumPy.
        running: the orders of the simulator, in turn.
        options: of the kernel.
    """
    batch, queries, keys, heads, heads_kv, depth = sizes
    depth_v = options.get("head_dim_v", depth)
    q = drawn(batch, queries, heads, depth)
    k, v = (
        drawn(batch, keys, heads_kv, depth, seed=1),
        drawn(batch, keys, heads_kv, depth_v, seed=2),
    )
    expected, logs = reference(q, k, v, mask=seen, score=scored, scale=options.get("scale"))
    kernel = attention(
        batch, queries, keys, heads, depth, heads_kv=heads_kv, lse=True,
        **({"target": "sm_90a"} | options),
    )  # fmt: skip
    by_head = options.get("order") == "bhsd"
    for order in running:
        o = np.full((batch, queries, heads, depth_v), np.nan, np.float16)
        lse = np.full((batch, heads, queries), np.nan, np.float32)
        given = [np.ascontiguousarray(x.swapaxes(1, 2)) if by_head else x for x in (q, k, v, o)]
        kernel(*given, lse, *more, device=Simulator(order=(order, 0)))
        found = given[3].swapaxes(1, 2) if by_head else o
        np.testing.assert_allclose(found, expected, TOLERANCE, TOLERANCE, err_msg=order)
        np.testing.assert_allclose(lse, logs, atol=1e-3, rtol=1e-3, err_msg=order)


def causal(queries: int, keys: int) -> Any:
    return lambda b, h, i, j: j <= i + keys - queries


def test_tiles_that_divide() -> None:
    check((1, 128, 128, 2, 1, 64), running=["random"])


@pytest.mark.parametrize("depth", [16, 32, 40, 80, 128, 256])
def test_depths(depth: int) -> None:
    check((1, 64, 48, 1, 1, depth))


def test_values_of_another_depth() -> None:
    check((1, 64, 70, 2, 2, 96), head_dim_v=64)


@pytest.mark.parametrize(
    ("queries", "keys", "is_causal"),
    [(1, 1, True), (17, 130, False), (100, 30, False), (65, 200, True)],
)
def test_sizes_that_no_tile_divides(queries: int, keys: int, is_causal: bool) -> None:
    seen = causal(queries, keys) if is_causal else None
    check((2, queries, keys, 2, 1, 32), causal=is_causal, seen=seen)


@pytest.mark.parametrize("keys", [77, 128])
def test_keys_that_one_tile_holds(keys: int) -> None:
    """Roles work on iterations apart, and ask for one behind the only one."""
    sizes = (1, 22, keys, 8, 1, 64)
    batch, queries, _, heads, heads_kv, depth = sizes
    kernel = attention(batch, queries, keys, heads, depth, heads_kv=heads_kv, target="sm_90a")
    assert "'attention'" in kernel.explain()
    check(sizes, running=ORDERS)


@pytest.mark.parametrize("window", [1, 64, 100])
def test_a_window(window: int) -> None:
    check(
        (1, 160, 160, 1, 1, 32),
        causal=True,
        window=window,
        seen=lambda b, h, i, j: (j <= i) & (j > i - window),
    )


def test_a_mask_of_a_prefix_and_documents() -> None:
    ids = np.repeat(np.arange(4, dtype=np.int32), [30, 50, 20, 60])
    check(
        (1, 160, 160, 2, 2, 32),
        ids,
        mask=lambda i, j, ids: ((j < 40) | (j <= i)) & (ids[i] == ids[j]),
        arguments={"ids": lg.Tensor["i32", (160,)]},
        seen=lambda b, h, i, j: ((j < 40) | (j <= i)) & (ids[i] == ids[j]),
    )


def test_a_score_of_heads_and_distances() -> None:
    slopes = np.array([0.5, 0.25], np.float32)
    check(
        (1, 70, 70, 2, 2, 32),
        slopes,
        causal=True,
        score=lambda score, head, i, j, slopes: score - slopes[head] * (i - j).to("f32"),
        arguments={"slopes": lg.Tensor["f32", (2,)]},
        seen=causal(70, 70),
        scored=lambda score, b, h, i, j: score - slopes[h] * (i - j),
    )


def test_a_score_with_a_bias_of_every_pair() -> None:
    bias = drawn(2, 40, 50).astype(np.float32)
    check(
        (1, 40, 50, 2, 2, 32),
        bias,
        score=lambda score, head, i, j, bias: score + bias[head, i, j],
        arguments={"bias": lg.Tensor["f32", (2, 40, 50)]},
        scored=lambda score, b, h, i, j: score + bias[h, i, j],
    )


def test_a_soft_cap_and_a_scale() -> None:
    check(
        (1, 64, 64, 1, 1, 32),
        scale=0.7,
        soft_cap=2.0,
        scored=lambda score, *_: 2 * np.tanh(score / 2),
    )


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("order", ["bshd", "bhsd"])
def test_orders_in_memory_and_packed_heads(order: str, packed: bool) -> None:
    config = AttentionConfig(32, 32, 2, packed=packed)
    check((2, 10, 100, 6, 2, 32), order=order, config=config, causal=True, seen=causal(10, 100))


def test_rows_without_keys_are_zeros() -> None:
    """Of 100 queries and 30 keys, a causal mask leaves 70 queries without keys."""
    check((1, 100, 30, 1, 1, 32), causal=True, seen=causal(100, 30))


PIPELINED = AttentionConfig(128, 64, 8, schedule="attention")


def test_rings_and_roles() -> None:
    check((1, 128, 200, 2, 1, 64), config=PIPELINED, running=ORDERS)


@pytest.mark.parametrize(
    ("queries", "keys", "depth", "options"),
    [
        (130, 200, 32, {"causal": True}),
        (256, 256, 64, {"causal": True, "window": 70}),
        (200, 100, 80, {}),
        (128, 192, 192, {"causal": True, "head_dim_v": 128}),
        (128, 128, 256, {}),
    ],
)
def test_rings_of_other_sizes(queries: int, keys: int, depth: int, options: dict[str, Any]) -> None:
    window, is_causal = options.get("window", keys), options.get("causal", False)

    def seen(b: Any, h: Any, i: Any, j: Any) -> Any:
        own = i + keys - queries
        return (j <= own) & (j > own - window) if is_causal else j >= 0

    check((1, queries, keys, 1, 1, depth), config=PIPELINED, seen=seen, **options)


@pytest.mark.parametrize(("kept", "running"), [(0, ORDERS), (16, ["random"])])
def test_persistent_ctas(kept: int, running: Sequence[str]) -> None:
    """Two CTAs have six tiles of queries, which see one, two or three tiles of keys."""
    config = AttentionConfig(128, 64, 8, schedule="attention", ctas=2, operand_registers=kept)
    sizes = 1, 300, 180, 2, 1, 64
    check(sizes, config=config, causal=True, seen=causal(300, 180), running=running)


@pytest.mark.parametrize(("depth", "running"), [(64, "late"), (128, "random"), (256, "early")])
def test_copies_by_all_warps(depth: int, running: str) -> None:
    sizes = 1, 130, 100, 2, 1, depth
    check(sizes, causal=True, seen=causal(130, 100), running=[running], target="sm_80")


def test_the_target_decides_the_schedule() -> None:
    def schedule(queries: int, target: str, **options: Any) -> Any:
        return attention(1, queries, 4096, 16, 128, target=target, **options).schedule

    assert schedule(4096, "sm_90a") == "attention"
    assert schedule(4096, "sm_80") == "cp_async"
    assert schedule(4096, "sm_80", lengths=True, page_size=64) is None


def test_what_persistent_ctas_have_fits_shared_memory() -> None:
    def params(batch: int, tokens: int, heads: int, depth: int, **more: Any) -> dict[str, int]:
        kernel = attention(batch, tokens, tokens, heads, depth, target="sm_90a", **more)
        return {k: v for k, v in kernel.params.items() if k in ("ctas", "outer_stages")} | {
            "parts": kernel.params["store_parts"] * kernel.params["store_stages"]
        }

    assert params(2, 2048, 8, 128) == {"ctas": 132, "outer_stages": 2, "parts": 1}
    assert params(2, 2048, 8, 256, out="f32") == {"ctas": 132, "outer_stages": 1, "parts": 4}
    # Whose programs are as many as CTAs, or see too many different numbers of keys to be listed.
    assert params(1, 2048, 8, 128)["ctas"] == 0
    assert params(128, 2048, 8, 128, causal=True)["ctas"] == 0
    assert params(128, 2048, 8, 128)["ctas"] == 132


def test_splits_of_a_deep_head_fit_shared_memory() -> None:
    attention(1, 1024, 1024, 4, 256, target="sm_90a").compile("sm_90a")


@pytest.mark.parametrize(
    ("tokens", "more", "rows"),
    [
        (512, {}, 192),
        (512, {"causal": True}, 128),
        (4096, {"causal": True}, 192),
        (8192, {"causal": True, "window": 1024}, 128),
    ],
)
def test_tiles_of_more_queries_if_they_add_few_scores(
    tokens: int, more: dict[str, Any], rows: int
) -> None:
    kernel = attention(16384 // tokens, tokens, tokens, 32, 64, target="sm_90a", **more)
    assert f"{rows} queries" in str(kernel.explanation())


@pytest.mark.parametrize(("factor", "config"), [(30, None), (1000, PIPELINED)])
def test_large_scores(factor: float, config: AttentionConfig | None) -> None:
    """Of scores that are far apart one key has all the weight; none overflows."""
    q = drawn(1, 32, 1, 32) * np.float16(factor)
    k, v = drawn(1, 128, 1, 32, seed=1) * np.float16(factor), drawn(1, 128, 1, 32, seed=2)
    o = np.empty_like(q)
    attention(1, 32, 128, 1, 32, scale=4.0, config=config, target="sm_90a")(q, k, v, o)
    np.testing.assert_allclose(o, reference(q, k, v, scale=4.0)[0], atol=TOLERANCE)


KEPT = {"operand_registers": 16, "speculated": 12}


@pytest.mark.parametrize(("sign", "kept"), [(1, {}), (1, KEPT), (-1, KEPT)])
def test_scores_that_grow(sign: int, kept: dict[str, int]) -> None:
    """Behind each tile of keys the exponentials of some rows would overflow without a new base."""
    config = AttentionConfig(128, 64, 8, schedule="attention", **kept)
    q, k, v = drawn(1, 128, 1, 64), drawn(1, 256, 1, 64, seed=1), drawn(1, 256, 1, 64, seed=2)
    q[:, ::3] = 0.25  # the scores of these rows are the sums of the keys' elements
    k *= 0.1
    k += (sign * (1 + np.arange(256) // 64) * 2.0).astype(np.float16)[None, :, None, None]
    o, lse = np.full_like(q, np.nan), np.full((1, 1, 128), np.nan, np.float32)
    kernel = attention(1, 128, 256, 1, 64, scale=1.0, lse=True, config=config, target="sm_90a")
    kernel(q, k, v, o, lse, device=Simulator(order=("random", 0)))
    expected, logs = reference(q, k, v, scale=1.0)
    np.testing.assert_allclose(o, expected, atol=TOLERANCE)
    np.testing.assert_allclose(lse, logs, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("scale", [0.0, -0.2])
def test_scales_that_are_not_positive(scale: float) -> None:
    check((1, 32, 70, 1, 1, 32), scale=scale)


@pytest.mark.parametrize(
    ("rows", "columns", "warps", "depth"), [(192, 32, 12, 64), (128, 80, 8, 64), (128, 48, 8, 128)]
)
def test_tiles_that_are_no_powers_of_two(rows: int, columns: int, warps: int, depth: int) -> None:
    config = AttentionConfig(rows, columns, warps, schedule="attention")
    check((1, 192, 170, 1, 1, depth), config=config, causal=True, seen=causal(192, 170))


def order(**options: Any) -> WorkOrder:
    """Return the order of the CTAs of 4 heads of depth 64, whose keys and values have 32 MiB."""
    sizes = {"batch": 1, "queries": 512, "keys": 1 << 15, "heads": 4, "heads_kv": 4, **options}
    types = dict.fromkeys(("dtype", "dtype_kv", "out"), "f16")
    problem = AttentionProblem(**sizes, **types, depth=64, depth_v=64, scale=1.0)
    return order_of(problem, AttentionConfig(128, 64, 8))


def test_ctas_with_most_keys_begin_first() -> None:
    assert order() == WorkOrder(4, 4)
    assert order(mask=lambda i, j: j <= i) == WorkOrder(4, 4, 4, is_reversed=True)
    assert order(mask=lambda i, j: j > i) == WorkOrder(4, 4, 4)
    assert order(mask=lambda i, j: j - i == j) == WorkOrder(4, 4)
    assert order(mask=lambda i, j: (j <= i) & (j > i - 3)) == WorkOrder(4, 4, 4, is_reversed=True)


def test_ctas_of_sizes_that_the_launch_knows_begin_in_the_same_order() -> None:
    open_ = {"queries": size_symbol("queries"), "keys": size_symbol("keys")}
    tiles = ceildiv(open_["queries"], 128)
    assert order(**open_) == WorkOrder(tiles, 4)
    assert order(**open_, mask=lambda i, j: j <= i) == WorkOrder(tiles, 4, 4, is_reversed=True)


def test_heads_whose_keys_fit_the_cache_alternate() -> None:
    def together(**options: Any) -> int:
        return order(mask=lambda i, j: j <= i, **options).together

    assert together(heads=8, heads_kv=8) == 4
    assert together(heads=6, heads_kv=6) == 3
    assert together(heads=8, heads_kv=2) == 8
    assert together(keys=1 << 20) == 1


def test_every_cta_has_its_own_rows() -> None:
    """Three heads of two sequences, whose tiles alternate."""
    config = AttentionConfig(32, 32, 2)
    check((2, 96, 96, 3, 3, 16), config=config, causal=True, seen=causal(96, 96))


def test_a_kernel_explains_itself() -> None:
    text = attention(1, 1, 4096, 32, 128, heads_kv=8, target="sm_90a").explain()
    assert "queries of all heads of a group" in text
    assert "keys divided among" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seq_kv": 0}, "seq_kv is a positive integer, not 0"),
        ({"heads_kv": 3}, "do not share 3 heads"),
        ({"head_dim": 12}, "head_dim is 12"),
        ({"head_dim": 512}, "head_dim is 512"),
        ({"dtype": "f32"}, "attention: from 'f32' to"),
        ({"order": "sbhd"}, "the order 'sbhd'"),
        ({"window": 3}, "a window needs causal=True"),
        ({"window": 0, "causal": True}, "window is a positive integer, not 0"),
        ({"mask": lambda i, k: i < k}, "the function of the mask takes 'k'"),
        ({"arguments": {"lse": lg.Tensor["f32", (4,)]}}, "may not have the name 'lse'"),
        ({"pages": 64, "lengths": True}, "a cache in pages needs their size"),
        (
            {"page_size": 48, "pages": 4, "lengths": True, "config": AttentionConfig(16, 32, 1)},
            "pages of 48 keys are no tiles of 32",
        ),
        ({"page_size": 24, "lengths": True}, "page_size is 24; a multiple of 16 keys"),
        ({"page_size": 16, "pages": 0, "lengths": True}, "pages is a positive integer, not 0"),
        ({"append": True}, "append=True, lengths=True"),
        ({"soft_cap": 1.0, "score": lambda score: score}, "leave soft_cap out"),
    ],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    given = {"batch": 1, "seq_q": 64, "seq_kv": 64, "heads": 4, "head_dim": 64} | options
    with pytest.raises(LegoError) as caught:
        attention(**given)
    assert message in f"{caught.value.message}; {caught.value.hint}"
