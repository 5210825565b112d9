"""Activations, dropout, quantization, rotary embeddings, argmax and cumulative sums."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import (
    RowsConfig,
    argmax,
    cumsum,
    dropout,
    geglu,
    rmsnorm_quantized,
    rope,
    soft_cap,
    swiglu,
    topk,
)
from lego_mlir.kernels.rows.bodies.philox import philox

SHAPES = [(5, 64), (3, 1000), (7, 33), (2, 1), (1, 4100)]
BYTES = {
    "f8E4M3FN": (ml_dtypes.float8_e4m3fn, 448.0, 16.5),
    "f8E5M2": (ml_dtypes.float8_e5m2, 57344.0, 4100.0),
    "i8": (np.int8, 127.0, 0.501),
}
"""Of each type: NumPy's, its largest number, and half the distance to the next one."""

NUMBERS = lg.Tensor["u32", (3, 4, 32)]
SEED = 0x1234_5678_9ABC_DEF0


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES)
def test_gated_activations(shape: tuple[int, int]) -> None:
    gate, up, y = random(*shape), random(*shape, seed=1), np.empty(shape, np.float32)
    swiglu(*shape)(gate, up, y, device="sim")
    np.testing.assert_allclose(y, gate / (1 + np.exp(-gate)) * up, atol=1e-6)
    geglu(*shape, in_place=True)(gate, up, up, device="sim")
    assert np.isfinite(up).all()


def test_soft_cap() -> None:
    x, y = random(3, 1000) * 10, np.empty((3, 1000), np.float32)
    soft_cap(3, 1000, cap=5.0)(x, y, device="sim")
    np.testing.assert_allclose(y, 5 * np.tanh(x / 5), atol=1e-5)
    with pytest.raises(LegoError, match="positive"):
        soft_cap(3, 3, cap=0.0)


def test_philox_has_the_numbers_of_its_authors() -> None:
    """The known answers of Random123 for philox4x32-10."""
    ones = 0xFFFFFFFF
    digits = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0]
    inputs = [[0] * 6, [ones] * 6, digits]

    @lg.kernel(grid=1, warps=1)
    def known(y: NUMBERS) -> None:
        for k, numbers in enumerate(inputs):
            tiles: Any = [lg.full((32,), n, "u32") for n in numbers]
            for j, found in enumerate(philox(tuple(tiles[:4]), tuple(tiles[4:]))):
                y[k, j, :] = found

    y = np.zeros((3, 4, 32), np.uint32)
    known(y, device="sim")
    want = [
        [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8],
        [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ]
    assert (y == np.array(want, np.uint32)[:, :, None]).all()


@pytest.mark.parametrize("config", [RowsConfig(1, 4), RowsConfig(64, 1, 1, 1)])
def test_a_tile_has_columns(config: RowsConfig) -> None:
    with pytest.raises(LegoError, match="dropout: the tile of a CTA has no columns"):
        dropout(4, 64, p=0.25, config=config)


def test_an_elementwise_kernel_has_no_persistent_ctas() -> None:
    config = RowsConfig(1, 4, 1, 4, ctas=8, stages=2)
    with pytest.raises(LegoError, match="has one of; the config has ctas=8, stages=2"):
        swiglu(4, 64, config=config)


@pytest.mark.parametrize("shape", SHAPES)
def test_dropout_depends_on_seed_and_element_alone(shape: tuple[int, int]) -> None:
    x, bias, residual = abs(random(*shape)) + 1, random(shape[1]), random(*shape, seed=1)
    found = []
    for config in (None, RowsConfig(1, 2, 4, 1), RowsConfig(4, 1, 1, 4)):
        y = np.empty_like(x)
        dropout(*shape, p=0.25, config=config)(x, SEED, y, device="sim")
        found.append(y)
    assert all((y == found[0]).all() for y in found)
    kept = found[0] != 0
    np.testing.assert_allclose(found[0], np.where(kept, x / 0.75, 0), rtol=1e-6)
    if x.size > 1000:
        assert abs(kept.mean() - 0.75) < 0.05
        dropout(*shape, p=0.25)(x, SEED + 1, y, device="sim")
        assert ((y != 0) != kept).any()
    kernel = dropout(*shape, p=0.25, bias=True, residual=True)
    kernel(x, bias, residual, SEED, y, device="sim")
    np.testing.assert_allclose(y, np.where(kept, (x + bias) / 0.75, 0) + residual, atol=1e-5)


@pytest.mark.parametrize("p", [-0.1, 1.0, float("nan")])
def test_probabilities_are_below_one(p: float) -> None:
    with pytest.raises(LegoError, match="probability"):
        dropout(4, 4, p=p)


@pytest.mark.parametrize("out", BYTES)
@pytest.mark.parametrize(
    ("shape", "per"),
    [((3, 256), "row"), ((3, 1000), "row"), ((3, 1024), "group"), ((3, 640), "group")],
)
def test_norms_are_quantized(shape: tuple[int, int], per: str, out: str) -> None:
    kind, largest, half = BYTES[out]
    x, w, residual = random(*shape).astype(ml_dtypes.bfloat16), random(shape[1]), random(*shape)
    x[1], residual[1] = 0, 0
    groups = (shape[0], shape[1] // 128) if per == "group" else (shape[0], 1)
    scale, y = np.full(groups, np.nan, np.float32), np.zeros(shape, kind)
    prenorm = np.empty_like(residual)
    kernel = rmsnorm_quantized(
        *shape, "bf16", out=out, per=per, weight="f32", residual="f32", epsilon=1e-3
    )
    scales = scale if per == "group" else scale[:, 0]
    kernel(x, residual, w, y, scales, prenorm, device="sim")
    wide = x.astype(np.float64) + residual
    normal = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-3) * w
    most = abs(normal).reshape(*groups, -1).max(axis=2)
    np.testing.assert_allclose(prenorm, wide, rtol=1e-6)
    np.testing.assert_allclose(scale[[0, 2]], most[[0, 2]] / largest, rtol=1e-6)
    each = np.repeat(scale, shape[1] // groups[1], axis=1)
    assert (abs(y.astype(np.float64) * each - normal) <= half * each).all()
    assert not y[1].astype(np.float64).any()


@pytest.mark.parametrize(
    ("shape", "per", "config"),
    [
        ((3, 2048), "row", RowsConfig(4, 4)),
        ((2, 5000), "row", RowsConfig(1, 4, 1, 8, held=True, ctas_per_sm=4)),
        ((3, 4352), "row", RowsConfig(1, 8, 1, 8, ctas=2, stages=2)),
        ((2, 2048), "group", RowsConfig(1, 2, 2, 8, held=True)),
        ((2, 2176), "group", RowsConfig(1, 2, 1, 8, held=True)),
    ],
)
def test_norms_of_many_rows_are_quantized(
    shape: tuple[int, int], per: str, config: RowsConfig
) -> None:
    """By configs that the heuristic has where rows are many."""
    x, w = (random(*size).astype(ml_dtypes.bfloat16) for size in (shape, shape[1:]))
    groups = (shape[0], shape[1] // 128) if per == "group" else (shape[0], 1)
    scale, y = np.full(groups, np.nan, np.float32), np.zeros(shape, ml_dtypes.float8_e4m3fn)
    kernel = rmsnorm_quantized(*shape, "bf16", per=per, config=config)
    kernel(x, w, y, scale if per == "group" else scale[:, 0], device="sim")
    wide = x.astype(np.float64)
    normal = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-6) * w.astype(np.float64)
    most = abs(normal).reshape(*groups, -1).max(axis=2)
    np.testing.assert_allclose(scale, most / 448, rtol=1e-5)
    each = np.repeat(scale, shape[1] // groups[1], axis=1)
    assert (abs(y.astype(np.float64) * each - normal) <= 16.5 * each).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"out": "f16"}, "f8E4M3FN, f8E5M2, i8"),
        ({"per": "column"}, "'row' or a 'group'"),
        ({"per": "group", "columns": 200}, "no multiple of 128"),
    ],
)
def test_wrong_quantizations_are_errors(options: Any, message: str) -> None:
    with pytest.raises(LegoError, match=message):
        rmsnorm_quantized(**{"rows": 4, "columns": 256, **options})


@pytest.mark.parametrize(
    ("shape", "config"),
    [
        ((5, 64), None),
        ((4, 1000), None),
        ((4, 1300), RowsConfig(1, 4, 2, 4)),
        ((4, 1301), RowsConfig(1, 4, 2, 1, held=True)),
    ],
)
def test_argmax_is_the_first(shape: tuple[int, int], config: RowsConfig | None) -> None:
    x = np.random.default_rng(0).integers(-5, 5, shape).astype(np.float32)
    x[1, [7, shape[1] - 3]] = np.nan
    x[2] = -np.inf
    index, most = np.full(shape[0], -1, np.int32), np.zeros(shape[0], np.float32)
    argmax(*shape, config=config)(x, index, most, device="sim")
    np.testing.assert_array_equal(index, x.argmax(axis=1))
    np.testing.assert_array_equal(most, x.max(axis=1))


@pytest.mark.parametrize("shape", [(3, 7), (2, 1000), (2, 4096), (1, 10001)])
def test_cumulative_sums(shape: tuple[int, int]) -> None:
    x, y = random(*shape), np.empty(shape, np.float32)
    cumsum(*shape)(x, y, device="sim")
    np.testing.assert_allclose(y, x.astype(np.float64).cumsum(axis=1), atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "k"), [((5, 64), 8), ((3, 100), 100), ((2, 1000), 5), ((1, 1), 1)]
)
def test_the_greatest_elements_in_order(shape: tuple[int, int], k: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
    x[0, -1] = np.nan
    values, index = np.zeros((shape[0], k), np.float32), np.zeros((shape[0], k), np.int32)
    topk(*shape, k=k)(x, values, index, device="sim")
    want = np.argsort(-np.where(np.isnan(x), np.inf, x), axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(index, want)
    np.testing.assert_array_equal(values, np.take_along_axis(x, want, 1))


@pytest.mark.parametrize(("columns", "dtype"), [(8192, "f32"), (16384, "f32"), (16384, "bf16")])
def test_the_greatest_of_long_rows_are_found(columns: int, dtype: str) -> None:
    """Registers have room for the search, or the row is sorted."""
    x = random(2, columns).astype({"f32": np.float32, "bf16": ml_dtypes.bfloat16}[dtype])
    values, index = np.zeros((2, 5), x.dtype), np.zeros((2, 5), np.int32)
    topk(2, columns, dtype, k=5)(x, values, index, device="sim")
    want = np.argsort(-x.astype(np.float64), axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(index, want)
    np.testing.assert_array_equal(values, np.take_along_axis(x, want, 1))


def test_softmax_of_the_greatest() -> None:
    x = random(4, 64)
    values, index = np.zeros((4, 8), np.float32), np.zeros((4, 8), np.int32)
    topk(4, 64, k=8, softmax=True)(x, values, index, device="sim")
    e = np.exp(-np.sort(-x, axis=1)[:, :8])
    np.testing.assert_allclose(values, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
    with pytest.raises(LegoError, match="from 1 to the 64 columns"):
        topk(4, 64, k=65)


@pytest.mark.parametrize("norm", [None, "f32"])
@pytest.mark.parametrize(("heads", "keys", "size"), [(6, 2, 64), (3, 0, 20), (1, 1, 128)])
def test_rope(heads: int, keys: int, size: int, norm: str | None) -> None:
    tokens, positions = 5, 40
    inputs = {"q": random(tokens, heads, size)} | (
        {"k": random(tokens, keys, size, seed=1)} if keys else {}
    )
    at = np.array([3, 0, positions + 5, 7, -1], np.int32)
    angles = np.arange(positions)[:, None] * 100.0 ** -(np.arange(size // 2) / size)
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    weights = {name: random(size, seed=2) for name in inputs}
    outputs = {name: np.empty_like(x) for name, x in inputs.items()}
    arrays = []
    for name, x in inputs.items():
        arrays += [x] if norm is None else [x, weights[name]]
    kernel = rope(tokens, heads, size, "f32", positions=positions, keys=keys, norm=norm)
    kernel(*arrays, at, cos, sin, *outputs.values(), device="sim")
    rows = at.clip(0, positions - 1)
    for name, x in inputs.items():
        wide = x.astype(np.float64)
        if norm is not None:
            factor = 1 / np.sqrt((wide**2).mean(axis=-1, keepdims=True) + 1e-6)
            wide = wide * factor * weights[name]
        a, b = wide[..., : size // 2], wide[..., size // 2 :]
        c, s = cos[rows][:, None], sin[rows][:, None]
        want = np.concatenate([a * c - b * s, b * c + a * s], axis=-1)
        np.testing.assert_allclose(outputs[name], want, atol=2e-6)


@pytest.mark.parametrize(
    "sizes", [{"tokens": 0}, {"heads": 0}, {"size": 3}, {"keys": -1}, {"positions": 0}]
)
def test_wrong_sizes_of_rope_are_errors(sizes: dict[str, int]) -> None:
    good = {"tokens": 2, "heads": 2, "size": 8, "positions": 4, "keys": 1}
    with pytest.raises(LegoError, match="rope"):
        rope(**{**good, **sizes})
