"""Attention of elements of 8 bits, in the simulator against NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attention_reference import drawn, reference
from ptx_mutants import is_caught

from lego_mlir import runtime
from lego_mlir.artifact import Artifact
from lego_mlir.compiler.driver import Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels import AttentionConfig, attention
from lego_mlir.runtime.simulator import Simulator

TYPES = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "f16": np.float16}
E4M3 = "f8E4M3FN"
TOLERANCE = 2e-3
"""The references have the rounded inputs: only exponentials are rounded besides, to f16."""

NARROW_TOLERANCE = {"f8E4M3FN": 0.05, "f8E5M2": 0.1}
"""The same, where exponentials are rounded to 3 or 2 bits of fraction."""

ROLES = AttentionConfig(64, 64, 4, schedule="attention", converters=4, operand_registers=32)
"""Values are transposed from ring to ring by warps of their own."""


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
    atol = NARROW_TOLERANCE.get(options.get("dtype_pv", "f16"), TOLERANCE)
    np.testing.assert_allclose(o, truth, atol=atol)


@pytest.mark.parametrize(
    ("dtype", "dtype_pv", "running"),
    [(E4M3, "f16", "late"), (E4M3, E4M3, "random"), ("f16", "f16", "early")],
)
def test_few_queries(dtype: str, dtype_pv: str, running: str) -> None:
    check((1, 8, 130, 4, 1, 64), dtype, E4M3, running, dtype_pv=dtype_pv)


def test_few_queries_of_sequences_of_any_lengths() -> None:
    lengths = np.array([0, 5, 150], np.int32)
    q, k, v = (
        drawn(3, n, h, 32, seed=seed).astype(TYPES[E4M3])
        for seed, (n, h) in enumerate([(1, 4), (150, 1), (150, 1)])
    )
    o = np.full(q.shape, np.nan, np.float16)
    kernel = attention(None, 1, 150, 4, 32, heads_kv=1, dtype=E4M3, lengths=True, target="sm_90a")
    kernel(q, k, v, lengths, o, device=Simulator(order=("early", 0)))
    wide = (x.astype(np.float16) for x in (q, k, v))
    truth, _ = reference(*wide, mask=lambda b, h, i, j: j < lengths[b])
    np.testing.assert_allclose(o, truth, atol=NARROW_TOLERANCE[E4M3])


@pytest.mark.parametrize("dtype", ["f8E4M3FN", "f16"])
def test_many_queries(dtype: str) -> None:
    check((1, 130, 150, 1, 1, 32), dtype, E4M3, dtype_pv="f16")


def test_the_other_type_and_mma() -> None:
    config = AttentionConfig(32, 32, 2)
    check((2, 20, 70, 2, 2, 48), "f8E5M2", "f8E5M2", config=config, target="sm_89")


@pytest.mark.parametrize(
    ("sizes", "running", "kept"),
    [
        ((1, 100, 200, 2, 1, 64), "late", {}),
        ((1, 100, 200, 1, 1, 64), "early", {"speculated": 8, "ctas": 1, "store_stages": 1}),
        (
            (1, 64, 100, 1, 1, 256),
            "random",
            {"converters": 2, "columns": 32, "operand_registers": 0},
        ),
        ((1, 192, 200, 1, 1, 64), "late", {"rows": 192, "warps": 12, "converters": 2}),
    ],
)
def test_exponentials_of_8_bits(
    sizes: tuple[int, int, int, int, int, int], running: str, kept: dict[str, int]
) -> None:
    check(sizes, E4M3, E4M3, running, dtype_pv=E4M3, config=replace(ROLES, **kept))


@pytest.mark.parametrize(
    ("dtype", "dtype_pv", "options"),
    [
        ("f8E5M2", "f8E5M2", {"config": ROLES}),
        ("f16", "f8E4M3FN", {"config": AttentionConfig(64, 64, 4, schedule="pipelined")}),
        ("f8E5M2", "f8E5M2", {"config": AttentionConfig(32, 32, 2), "target": "sm_89"}),
    ],
)
def test_exponentials_of_8_bits_of_other_types(
    dtype: str, dtype_pv: str, options: dict[str, Any]
) -> None:
    check((1, 70, 130, 1, 1, 64), dtype, dtype_pv, dtype_pv=dtype_pv, **options)


@pytest.mark.parametrize(
    ("kept", "options"),
    [
        ({"ctas": 1}, {}),
        ({"schedule": None, "converters": 0}, {"score": lambda score: score}),
    ],
)
def test_what_tensors_are_multiplied_by(kept: dict[str, Any], options: dict[str, Any]) -> None:
    q, k, v = (drawn(2, n, heads, 64, seed=n) for n, heads in ((64, 2), (100, 1), (101, 1)))
    v = v[:, :100]
    scales = [np.array([[x], [2 * x]], np.float32) for x in (0.25, 3.0, 0.5)]
    pairs = zip((q, k, v), scales, strict=True)
    given = [(x / s[..., None, None]).astype(TYPES[E4M3]) for x, s in pairs]
    o = np.full(q.shape, np.nan, np.float16)
    kernel = attention(
        2, 64, 100, 2, 64, heads_kv=1, dtype=E4M3, dtype_pv=E4M3, descales=True,
        config=replace(ROLES, **kept), target="sm_90a", **options,
    )  # fmt: skip
    kernel(*given, *scales, o, device=Simulator())
    wide = (x.astype(np.float32) * s[..., None, None] for x, s in zip(given, scales, strict=True))
    truth, _ = reference(*(x.astype(np.float16) for x in wide))
    np.testing.assert_allclose(o, truth, atol=NARROW_TOLERANCE[E4M3])


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ((2, 130, 260, 2, 1), {"config": replace(ROLES, ctas=2, speculated=8, query_stages=1)}),
        ((2, 70, 150, 2, 1), {"config": AttentionConfig(64, 64, 4, packed=True), "soft_cap": 9.0}),
        ((2, 8, 300, 4, 1), {"dtype_pv": "f16"}),  # splits of keys
        ((1, 64, 130, 1, 1), {"known": False, "config": ROLES}),
    ],
)
def test_what_blocks_of_tokens_are_multiplied_by(
    sizes: tuple[int, int, int, int, int], options: dict[str, Any]
) -> None:
    batch, queries, keys, heads, heads_kv = sizes
    shapes = (queries, heads), (keys, heads_kv), (keys, heads_kv)
    draw = np.random.default_rng(0)
    given, scales, wide = [], [], []
    for seed, (n, h) in enumerate(shapes):
        x = drawn(batch, n, h, 64, seed=seed).astype(TYPES[E4M3])
        # Values of some blocks are lost beside those of others, scores are not: from 1/4 to 4.
        most = 6 if seed == 2 else 1
        scale = np.exp2(draw.integers(-most, most + 1, (batch, h, -(-n // 64)))).astype(np.float32)
        each = scale.repeat(64, axis=2)[:, :, :n].swapaxes(1, 2)[..., None]
        given.append(x)
        scales.append(scale)
        wide.append(x.astype(np.float32) * each)
    options = {"dtype_pv": E4M3} | options
    known, cap = options.pop("known", True), options.get("soft_cap")
    o = np.full(given[0].shape, np.nan, np.float16)
    lse = np.full((batch, heads, queries), np.nan, np.float32)
    kernel = attention(
        *(sizes[:3] if known else (None, None, None)), heads, 64, heads_kv=heads_kv, dtype=E4M3,
        descales=64, lse=True, causal=True, target="sm_90a", **options,
    )  # fmt: skip
    kernel(*given, *scales, o, lse, device=Simulator(order=("random", 0)))
    truth, logs = reference(
        *wide, mask=lambda b, h, i, j: j <= i + keys - queries,
        score=None if cap is None else lambda s, *_: cap * np.tanh(s / cap),
    )  # fmt: skip
    atol = NARROW_TOLERANCE.get(options["dtype_pv"], TOLERANCE) * np.abs(truth).max()
    np.testing.assert_allclose(o, truth, atol=atol)
    np.testing.assert_allclose(lse, logs, rtol=1e-3, atol=2e-3)


def test_what_blocks_of_pages_are_multiplied_by() -> None:
    q, k, v = (drawn(1, n, 1, 64, seed=n).astype(TYPES[E4M3]) for n in (64, 256, 257))
    k, v = (x[:, :256].reshape(2, 128, 1, 64) for x in (k, v))
    scale_q = np.array([[[0.5]]], np.float32)
    scale_k, scale_v = np.array([[[[1, 2]], [[0, 4]]], [[[3, 1]], [[2, 0]]]], np.float32)
    o, pages = np.full(q.shape, np.nan, np.float16), np.array([[1, 0]], np.int32)
    kernel = attention(
        1, 64, None, 1, 64, dtype=E4M3, lengths=True, page_size=128, descales=64, target="sm_90a"
    )
    lengths = np.array([200], np.int32)
    kernel(q, k, v, lengths, pages, scale_q, scale_k, scale_v, o, device=Simulator())
    wide = (
        (x.astype(np.float32) * scale.repeat(64, axis=2)[:, 0, :, None, None])[pages[0]]
        for x, scale in ((k, scale_k), (v, scale_v))
    )
    seen = (x.reshape(1, 256, 1, 64)[:, :200] for x in wide)
    truth, _ = reference(q.astype(np.float32) * 0.5, *seen)
    np.testing.assert_allclose(o, truth, atol=NARROW_TOLERANCE[E4M3] * np.abs(truth).max())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"descales": 100}, "descales of blocks of 100 tokens; descales=128"),
        ({"descales": 0}, "descales of blocks of 0 tokens"),
        ({"descales": 128, "ragged": True}, "do not begin with blocks"),
        ({"descales": 128, "lengths": True, "page_size": 64}, "in pages of 64; page_size is"),
        ({"descales": 64, "config": AttentionConfig(64, 128)}, "by tiles of 128 keys; the config"),
    ],
)
def test_blocks_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LegoError) as caught:
        attention(1, 64, 128, 2, 64, dtype=E4M3, target="sm_90a", **options)
    assert message in f"{caught.value.message}; {caught.value.hint}"


def test_scales_of_another_number_of_blocks() -> None:
    q, k = (drawn(1, n, 1, 64).astype(TYPES[E4M3]) for n in (64, 300))
    few, many = (np.ones((1, 1, n), np.float32) for n in (1, 2))
    kernel = attention(1, 64, 300, 1, 64, dtype=E4M3, descales=128, target="sm_90a")
    with pytest.raises(LegoError, match=r"'descale_k' has shape \[1, 1, 3\]"):
        kernel(q, k, k, few, many, many, np.empty(q.shape, np.float16), device="sim")


def test_registers_of_windows() -> None:
    """Nothing spills: CTAs count their tiles with 32 bits, although windows vary the number."""
    kernel = attention(2, 8192, 8192, 8, 256, dtype=E4M3, causal=True, window=1024, target="sm_90a")
    options = Options(target=Target.parse("sm_90a"), strict=True)
    compilation = kernel.compilation(options)
    assert "lego.index_bitwidth = 32" in str(compilation.index.operation)
    assert compilation.cubin


def test_pages_of_a_cache() -> None:
    """Exponentials are packed behind the wait for the dot that reads the ones before."""
    q, k, v = (drawn(1, n, 1, 64, seed=n).astype(TYPES[E4M3]) for n in (64, 192, 193))
    k, v = (x[:, :192].reshape(3, 64, 1, 64) for x in (k, v))
    o, pages = np.full(q.shape, np.nan, np.float16), np.array([[2, 0, 1]], np.int32)
    kernel = attention(
        1, 64, 192, 1, 64, dtype=E4M3, dtype_pv=E4M3, lengths=True, page_size=64, pages=3,
        config=ROLES, target="sm_90a",
    )  # fmt: skip
    kernel(q, k, v, np.array([180], np.int32), pages, o, device=Simulator())
    seen = (x[pages[0]].reshape(1, 192, 1, 64)[:, :180].astype(np.float16) for x in (k, v))
    truth, _ = reference(q.astype(np.float16), *seen)
    np.testing.assert_allclose(o, truth, atol=NARROW_TOLERANCE[E4M3])


def test_small_exponentials_keep_their_bits() -> None:
    """Those of one large score and many small ones, which together count as much."""
    q, k, v = (np.zeros((1, 64, 1, 64), TYPES[E4M3]) for _ in range(3))
    q[..., 0], k[0, 0, 0, 0], v[0, 1:] = 1, 7, 1
    o = np.zeros(q.shape, np.float16)
    config = AttentionConfig(64, 64, 4)
    kernel = attention(
        1, 64, 64, 1, 64, dtype=E4M3, dtype_pv=E4M3, scale=1.0, config=config, target="sm_90a"
    )
    kernel(q, k, v, o, device=Simulator())
    np.testing.assert_allclose(o, 63 / (63 + np.exp(7.0)), rtol=0.07)


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    """The kernel whose mutants are made, of eight tiles of keys."""
    kernel = attention(1, 64, 512, 1, 64, dtype=E4M3, dtype_pv=E4M3, config=ROLES, target="sm_90a")
    return kernel.compile("sm_90a")


def _is_right(artifact: Artifact, order: str) -> bool:
    q, k, v = (drawn(1, n, 1, 64, seed=n).astype(TYPES[E4M3]) for n in (64, 512, 512))
    given = [q, k, v, np.zeros(q.shape, np.float16)]
    found = runtime.run(artifact, given, device=runtime.select("sim", order=order))
    truth, _ = reference(*(x.astype(np.float16) for x in (q, k, v)))
    o = np.asarray(found.outputs["o"]).view(np.float16).reshape(truth.shape)
    return bool((np.abs(o - truth) < NARROW_TOLERANCE[E4M3]).all())


_WAIT = r"@P1 bra\.uni DONE;\s*(?:\.loc[^\n]*\n\s*)?bra\.uni +LAB_WAIT;"
_ARRIVE = r"mbarrier\.arrive\.shared\.b64[^;]*;"
MUTANTS = {
    "no wait for values": (rf"\A(.*){_WAIT}(.*{_WAIT})", r"\1\2"),
    "no wait for an empty stage": (rf"\A(.*){_WAIT}", r"\1"),
    "no fence": (r"\A(.*)fence\.proxy\.async\.shared::cta;", r"\1"),
    "nothing is ever complete": (rf"\A(.*){_ARRIVE}(.*{_ARRIVE})", r"\1\2"),
    "values are not released": (rf"\A(.*){_ARRIVE}", r"\1"),
    "not transposed": (r"(ldmatrix\S*)\.trans", r"\1"),
    "all lanes store their words in order": (r"(selp\.b32\s*%r\d+), \d+, (\d+),", r"\1, \2, \2,"),
    "one warp is enough": (r"(mbarrier\.init\.shared\.b64 *\t*\[\S+\], )\S+;", r"\g<1>1;"),
}
"""The waits, the fence and the arrivals of the warps that transpose are the last ones."""


@pytest.mark.parametrize("name", MUTANTS)
def test_the_simulator_finds(artifact: Artifact, name: str) -> None:
    pattern, other = MUTANTS[name]
    assert is_caught(artifact, (f"(?s){pattern}", other), _is_right, ("late", "early", "random"))


def test_the_kernel_of_the_mutants_is_right(artifact: Artifact) -> None:
    assert _is_right(artifact, "random")


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, E4M3),
        ({"dtype": "f8E5M2"}, "f16"),
        ({"dtype": "bf16", "dtype_kv": E4M3}, "bf16"),
        ({"target": "sm_89"}, "f16"),
        ({"lengths": True, "page_size": 64, "pages": 8}, E4M3),
        ({"lengths": True, "page_size": 16, "pages": 8}, "f16"),
        ({"dtype_pv": "f16"}, "f16"),
    ],
)
def test_exponentials_have_8_bits_by_default_where_all_inputs_are_e4m3(
    options: dict[str, Any], wanted: str
) -> None:
    given = {"dtype": E4M3, "target": "sm_90a"} | options
    assert f"exponentials of {wanted} " in attention(1, 256, 128, 2, 64, **given).explain()


def test_the_heuristic_chooses_tiles_for_8_bits() -> None:
    def chosen(tokens: int, depth: int, *, causal: bool = False) -> str:
        given = {"dtype": E4M3, "target": "sm_90a", "causal": causal}
        heads = 2048 // depth
        return attention(16384 // tokens, tokens, tokens, heads, depth, **given).explain()

    assert "192 queries × 128 keys" in chosen(2048, 64)
    assert "192 queries × 128 keys" in chosen(8192, 64, causal=True)
    assert "128 queries × 128 keys" in chosen(2048, 64, causal=True)
    assert "128 queries × 128 keys" in chosen(8192, 128)
    assert "128 queries × 64 keys" in chosen(8192, 256)
    few = {"heads_kv": 8, "dtype": E4M3, "target": "sm_90a"}
    rings = "schedule 'attention', 4 stages"
    assert rings in attention(16, 1, 8192, 64, 128, **few).explain()
    cache = {"lengths": True, "page_size": 32}  # smaller than tiles of keys
    assert rings not in attention(16, 1, 8192, 64, 128, **few, **cache).explain()


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
        ({"dtype_pv": "f8E4M3FN"}, "exponentials of 'f8E4M3FN' with values of f16"),
        ({"dtype": "f8E4M3FN", "dtype_pv": "bf16"}, "dtype_pv='f16', or that of values"),
    ],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    given = {"batch": 1, "seq_q": 64, "seq_kv": 64, "heads": 2, "head_dim": 32} | options
    with pytest.raises(LegoError) as caught:
        attention(**given)
    assert message in f"{caught.value.message}; {caught.value.hint}"
