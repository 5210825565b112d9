"""Softmax and norms along rows in the simulator, compared with NumPy in f64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from lego_mlir import runtime
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import (
    cross_entropy,
    cross_entropy_backward,
    layernorm,
    layernorm_backward,
    log_softmax,
    rmsnorm,
    rmsnorm_backward,
    softmax,
    softmax_backward,
)
from lego_mlir.kernels.rows.config import RowsConfig

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
ULP = {"f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}

SHAPES = [(5, 64), (3, 1000), (2, 1), (7, 33), (1, 3), (40, 20), (3, 2050), (2, 4096)]
PIECES = [
    (1, 2, 4, 4),
    (1, 4, 2, 1),
    (1, 2, 2, 4, True),
    (1, 2, 0, 1, False, 4),
    (1, 4, 0, 1, False, 1, 1, 2),
    (1, 4, 0, 1, False, 2, 2, 1),
    (1, 2, 1, 4, True, 2),
    (1, 2, 2, 4, False, 2, 1, 0, 1, 2),
]
"""Configs of rows in pieces, of which the last is not full, of rows that a cluster divides, of rows
of persistent CTAs and clusters, and of rows in pieces in clusters: in registers, and in stages."""


def random(shape: Any, dtype: str, scale: float = 1.0) -> Any:
    """Return random numbers of an element type."""
    numbers = np.random.default_rng(7).standard_normal(shape) * scale
    return numbers.astype(DTYPES[dtype])


def exponentials(x: Any) -> Any:
    """Return the softmax of rows of f64."""
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def poisoned(shape: Any, dtype: str) -> Any:
    """Return an array of numbers that no kernel leaves."""
    return np.full(shape, 77.0).astype(DTYPES[dtype])


def config_of(pieces: tuple[int, ...] | None) -> RowsConfig | None:
    return None if pieces is None else RowsConfig(*pieces)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_softmax(shape: tuple[int, int], dtype: str) -> None:
    x, y = random(shape, dtype, 4), poisoned(shape, dtype)
    softmax(*shape, dtype)(x, y, device="sim")
    want = exponentials(x.astype(np.float64))
    # The difference from the maximum is rounded to f32 before its exponential is computed.
    error = ULP[dtype] + ULP["f32"] * (4 + np.ptp(x.astype(np.float64), axis=1, keepdims=True))
    assert (abs(y - want) <= error * want + 2.0**-24 * (dtype == "f16")).all()


@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize("columns", [256, 512, 1300, 2050])
def test_softmax_in_pieces(columns: int, pieces: tuple[int, ...]) -> None:
    x, y = random((2, columns), "f32", 4), poisoned((2, columns), "f32")
    softmax(2, columns, config=RowsConfig(*pieces))(x, y, device="sim")
    want = exponentials(x.astype(np.float64))
    assert (abs(y - want) <= ULP["f32"] * want * 40).all()


@pytest.mark.parametrize("pieces", [None, *PIECES])
def test_any_order_of_the_simulator(pieces: tuple[int, ...] | None) -> None:
    x = random((2, 1300), "f32")
    want = exponentials(x.astype(np.float64))
    kernel = softmax(2, 1300, config=config_of(pieces))
    for order in ("late", "early", "random"):
        y = poisoned((2, 1300), "f32")
        kernel(x, y, device=runtime.select("sim", order=order))
        np.testing.assert_allclose(y, want, rtol=1e-5, err_msg=order)


@pytest.mark.parametrize("pieces", [None, *PIECES])
def test_infinities_and_nan_are_as_in_torch(pieces: tuple[int, ...] | None) -> None:
    x = random((6, 1300), "f32")
    x[0, ::7] = -np.inf
    x[1, 40:] = -np.inf  # most threads have nothing else
    x[2] = -np.inf
    x[3, 700] = np.inf
    x[4, 1299] = np.nan
    want = exponentials(x.astype(np.float64))
    assert np.isnan(want[2:5]).all()
    y = poisoned(x.shape, "f32")
    softmax(*x.shape, config=config_of(pieces))(x, y, device="sim")
    np.testing.assert_allclose(y, want, rtol=2e-6)
    with np.errstate(divide="ignore"):
        logarithms = np.log(want[[0, 1, 5]])
    log_softmax(*x.shape, config=config_of(pieces))(x, y, device="sim")
    assert np.isnan(y[2:5]).all()
    np.testing.assert_allclose(y[[0, 1, 5]], logarithms, rtol=1e-5)


@pytest.mark.parametrize("pieces", [None, *PIECES])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rmsnorm(dtype: str, pieces: tuple[int, ...] | None) -> None:
    shape = (5, 1300)
    x, w, y = random(shape, dtype), random(shape[1], "f32"), poisoned(shape, dtype)
    rstd = poisoned(5, "f32")
    kernel = rmsnorm(
        *shape, dtype, weight="f32", save=True, epsilon=1e-3, offset=1.0, config=config_of(pieces)
    )
    kernel(x, w, y, rstd, device="sim")
    wide = x.astype(np.float64)
    factor = 1 / np.sqrt((wide**2).mean(axis=1) + 1e-3)
    want = wide * factor[:, None] * (1 + w.astype(np.float64))
    np.testing.assert_allclose(rstd, factor, rtol=1e-6)
    assert (abs(y - want) <= ULP[dtype] * abs(want) * 4 + 1e-7).all()


@pytest.mark.parametrize("pieces", [None, *PIECES])
@pytest.mark.parametrize("dtype", DTYPES)
def test_layernorm_of_numbers_far_from_zero(dtype: str, pieces: tuple[int, ...] | None) -> None:
    shape = (3, 1300)
    x = (random(shape, "f32") + 100).astype(DTYPES[dtype])
    w, b = random(shape[1], dtype), random(shape[1], dtype, 3)
    y, mean, rstd = poisoned(shape, "f32"), poisoned(3, "f32"), poisoned(3, "f32")
    kernel = layernorm(*shape, dtype, out="f32", save=True, config=config_of(pieces))
    kernel(x, w, b, y, mean, rstd, device="sim")
    wide = x.astype(np.float64)
    center, factor = wide.mean(axis=1), 1 / np.sqrt(wide.var(axis=1) + 1e-5)
    want = (wide - center[:, None]) * factor[:, None] * w.astype(np.float64) + b.astype(np.float64)
    np.testing.assert_allclose(mean, center, rtol=1e-6)
    np.testing.assert_allclose(rstd, factor, rtol=1e-5)
    np.testing.assert_allclose(y, want, atol=1e-4)


@pytest.mark.parametrize("pieces", [PIECES[6], PIECES[7], (1, 2, 4, 4, False, 1, 2, 0, 1, 2)])
def test_layernorm_of_threads_with_equally_many_elements(pieces: tuple[int, ...]) -> None:
    shape = (5, 2048)
    wide = random(shape, "f32") + 100 * np.sin(np.arange(2048) / 300)
    wide[1] += 1e4
    wide[2] = 7.0
    wide[3, 1000] = np.inf
    x = wide.astype(DTYPES["bf16"])
    w, b = random(shape[1], "f32"), random(shape[1], "f32", 3)
    y, mean, rstd = poisoned(shape, "f32"), poisoned(5, "f32"), poisoned(5, "f32")
    config = RowsConfig(*pieces)
    kernel = layernorm(*shape, "bf16", weight="f32", out="f32", save=True, config=config)
    kernel(x, w, b, y, mean, rstd, device="sim")
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        center, factor = wide.mean(axis=1), 1 / np.sqrt(wide.var(axis=1) + 1e-5)
        want = (wide - center[:, None]) * factor[:, None] * w + b
    finite = [0, 1, 2, 4]
    np.testing.assert_allclose(mean, center, rtol=1e-6)
    np.testing.assert_allclose(rstd[finite], factor[finite], rtol=1e-5)
    np.testing.assert_allclose(y[finite], want[finite], atol=2e-4)
    assert np.isnan(y[3]).all()


@pytest.mark.parametrize("pieces", [None, PIECES[0]])
def test_a_residual_is_added_and_kept(pieces: tuple[int, ...] | None) -> None:
    shape = (3, 1300)
    x, residual, w = (
        random(shape, "bf16"),
        random(shape[::-1], "f32").T.copy(),
        random(1300, "bf16"),
    )
    y = poisoned(shape, "bf16")
    kernel = rmsnorm(*shape, "bf16", residual="f32", config=config_of(pieces), in_place=True)
    wide = x.astype(np.float64) + residual
    kernel(x, residual, w, y, residual, device="sim")
    want = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-6) * w.astype(np.float64)
    np.testing.assert_allclose(residual, wide, rtol=1e-6)
    assert (abs(y - want) <= ULP["bf16"] * abs(want) + 1e-6).all()


@pytest.mark.parametrize("pieces", [None, PIECES[0]])
def test_in_place(pieces: tuple[int, ...] | None) -> None:
    x = random((3, 1300), "f32")
    want = exponentials(x.astype(np.float64))
    softmax(3, 1300, config=config_of(pieces), in_place=True)(x, x, device="sim")
    np.testing.assert_allclose(x, want, rtol=1e-5)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"rows": 3, "warps": 4}, "rows is a power of two"),
        ({"rows": 1, "warps": 4, "piece": 3}, "piece is 0 or a power of two"),
        ({"rows": 2, "warps": 4, "cluster": 2}, "a cluster has one row"),
        ({"rows": 1, "warps": 4, "masked": True}, "stages is 0"),
    ],
)
def test_wrong_configs_are_errors(config: Any, message: str) -> None:
    with pytest.raises(LegoError, match=message):
        RowsConfig(**config)


def test_a_piece_has_one_row() -> None:
    with pytest.raises(LegoError, match="one row in pieces"):
        softmax(4, 64, config=RowsConfig(2, 1, piece=1))


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (4, True), (4, 2.0)])
def test_sizes_are_positive_integers(shape: Any) -> None:
    with pytest.raises(LegoError, match="positive integer"):
        softmax(*shape)


def test_an_unknown_type_is_an_error() -> None:
    with pytest.raises(LegoError, match="f19"):
        softmax(4, 4, "f19")


def test_an_output_of_another_shape_is_an_error() -> None:
    with pytest.raises(LegoError, match="y"):
        softmax(4, 64)(random((4, 64), "f32"), poisoned((4, 32), "f32"), device="sim")


def test_persistent_ctas_have_whole_rows_or_stages() -> None:
    with pytest.raises(LegoError, match="has ctas=4, piece=1 and no stages"):
        softmax(4, 64, config=RowsConfig(1, 1, 1, 4, held=True, ctas=4))


def test_elements_by_themselves_have_no_cluster() -> None:
    with pytest.raises(LegoError, match="a CTA has alone; the config has cluster=2"):
        cross_entropy_backward(4, 64, config=RowsConfig(1, 1, 1, 4, cluster=2))


def test_explain_says_how_rows_are_divided() -> None:
    assert "rows a CTA, in registers" in softmax(1000, 64).explain()
    assert (
        "in 4 pieces of 1024 columns and one of 4"
        in softmax(4, 4100, config=RowsConfig(1, 4, 2, 4)).explain()
    )
    streamed = RowsConfig(1, 4, 2, 4, ctas=2, stages=2, masked=True)
    explained = softmax(4, 4096, config=streamed).explain()
    assert "2 persistent CTAs, rows past the last masked;" in explained


@pytest.mark.parametrize(("columns", "shown"), [(131072, "8 warps"), (100000, "10 warps")])
def test_clusters_have_warps_whose_vectors_fit_a_row(columns: int, shown: str) -> None:
    """Of 8 warps each vector of 16 bytes would be one of 14.7 % past the end of 100000 columns."""
    assert f"CTAs, in registers; {shown}" in softmax(64, columns, "f32").explain()


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (131072, "4 CTAs, in 2 pieces of 65536 columns, 2"),
        (151936, "8 CTAs, in 10 pieces of 14336 columns and one of 8576, 2"),
        (50257, "2 CTAs, in 12 pieces of 4096 columns and one of 1112, 2"),
    ],
)
def test_pieces_in_stages_fit_a_row(columns: int, shown: str) -> None:
    """Of 8 warps 8 % would be past the end of 151936 columns; odd rows have 7 more elements."""
    assert f"{shown} stages in shared memory" in softmax(64, columns, "bf16").explain()


@pytest.mark.parametrize(
    ("kernel", "dtype", "columns", "shown"),
    [
        (softmax, "bf16", 65536, "of 8 CTAs, in 1 piece of 65536 columns, in registers; 4 "),
        (softmax, "bf16", 50304, "of 8 CTAs, in 6 pieces of 8192 columns and one of 1152, in reg"),
        (rmsnorm, "bf16", 32768, "a cluster of 4 CTAs, in registers; 8 warps"),
        (rmsnorm, "bf16", 20000, "4 pieces of 4096 columns and one of 3616, in registers; 8 warps"),
        (rmsnorm, "bf16", 30000, "3 pieces of 8192 columns and one of 5424, in registers; 16 "),
        (rmsnorm, "bf16", 73840, "of 8 CTAs, in 4 pieces of 16384 columns and one of 8304, 3 stag"),
        (softmax, "bf16", 19416, "of 2 CTAs, in 4 pieces of 4096 columns and one of 3032, in reg"),
        (softmax, "bf16", 23912, "a cluster of 4 CTAs, in registers; 8 warps"),
        (softmax, "bf16", 100352, "of 8 CTAs, in 7 pieces of 14336 columns, 2 stages in"),
        (softmax, "bf16", 80000, "of 8 CTAs, in 9 pieces of 8192 columns and one of 6272, in reg"),
        (softmax, "bf16", 133400, "of 8 CTAs, in 10 pieces of 12288 columns and one of 10520, 2"),
        (softmax, "bf16", 240000, "of 8 CTAs, in 16 pieces of 14336 columns and one of 10624, 3"),
        (softmax_backward, "bf16", 16384, "a cluster of 4 CTAs, in registers; 8 warps"),
        (softmax_backward, "f32", 262144, "of 16 CTAs, in 4 pieces of 65536 columns, in registers"),
        (softmax_backward, "bf16", 65536, "of 16 CTAs, in 1 piece of 65536 columns, in registers"),
        (softmax_backward, "f32", 151936, "of 16 CTAs, in 4 pieces of 32768 columns and one of"),
        (softmax, "f32", 151936, "of 16 CTAs, in 14 pieces of 10240 columns and one of 8576, in r"),
        (softmax, "f32", 3000, "1 row a CTA, in 2 pieces of 1024 columns and one of 952, in reg"),
        (layernorm, "bf16", 128256, "of 8 CTAs, in 3 pieces of 32768 columns and one of 29952, 3"),
        (layernorm, "f32", 131072, "of 16 CTAs, in 2 pieces of 65536 columns, 3 stages in"),
        (cross_entropy, "f32", 32768, "8 pieces of 4096 columns, read for each pass; 8 warps"),
        (cross_entropy, "f32", 20000, "4 pieces of 4096 columns and one of 3616, read for each p"),
        (cross_entropy, "f32", 151936, "of 8192 columns and one of 4480, read for each pass; 16 "),
        (cross_entropy, "bf16", 151936, "of 8192 columns and one of 4480, read for each pass; 16 "),
        (cross_entropy, "bf16", 50257, "of 2048 columns and one of 1112, read for each pass; 8 w"),
        (cross_entropy, "bf16", 65001, "of 2 CTAs, in 15 pieces of 4096 columns and one of 3568"),
        (layernorm, "bf16", 72744, "of 4 CTAs, in 8 pieces of 8192 columns and one of 7208, 3 st"),
        (layernorm, "bf16", 175664, "of 8 CTAs, in 10 pieces of 16384 columns and one of 11824"),
        (layernorm, "f32", 44000, "of 4 CTAs, in 10 pieces of 4096 columns and one of 3040, 2 st"),
        (layernorm, "bf16", 151936, "of 8 CTAs, in 4 pieces of 32768 columns and one of 20864, 3"),
        (layernorm, "f32", 32768, "of 8 CTAs, in 4 pieces of 8192 columns, in registers; 4 warps"),
        (
            layernorm,
            "bf16",
            262144,
            "KiB, filled one by one, 7 persistent clusters; 8 warps",
        ),
        (rmsnorm, "f32", 524288, "64 pieces of 8192 columns, read for each pass"),
        (softmax, "f32", 600000, "of 16 CTAs, in 18 pieces of 32768 columns and one of 10176"),
        (cross_entropy, "f32", 16384, "8 pieces of 2048 columns, in registers; 8 warps"),
        (cross_entropy, "bf16", 16384, "2 pieces of 8192 columns, read for each pass; 8 warps"),
    ],
)
def test_ctas_that_have_long_rows(kernel: Any, dtype: str, columns: int, shown: str) -> None:
    assert shown in kernel(4096, columns, dtype).explain()


@pytest.mark.parametrize(("rows", "warps"), [(441, 16), (883, 4), (1312, 16)])
def test_long_rows_that_are_all_read_at_once(rows: int, warps: int) -> None:
    """CTAs of 4 warps read 4 to 8 rows a multiprocessor at once; more rows leave an uneven rest."""
    assert f"read for each pass; {warps} warps" in cross_entropy(rows, 50000, "f32").explain()


@pytest.mark.parametrize(
    ("kernel", "dtype", "columns", "shown"),
    [
        (rmsnorm_backward, "bf16", 3000, "396 persistent CTAs; 4 warps"),
        (rmsnorm_backward, "bf16", 4096, "2 rows a CTA, in registers, 132 persistent CTAs"),
        (rmsnorm_backward, "bf16", 5120, "264 persistent CTAs; 4 warps"),
        (rmsnorm_backward, "bf16", 11008, "132 persistent clusters; 4 warps"),
        (rmsnorm_backward, "f32", 7168, "132 persistent CTAs; 8 warps"),
        (layernorm_backward, "bf16", 3000, "396 persistent CTAs; 4 warps"),
        (
            layernorm_backward,
            "bf16",
            4096,
            "in 4 pieces of 1024 columns, 3 stages in shared memory",
        ),
        (layernorm_backward, "bf16", 65536, "8 pieces of 8192 columns, 3 stages"),
        (layernorm_backward, "f32", 8192, "of 2 CTAs, in 1 piece of 8192 columns, 3 stages"),
        (layernorm_backward, "f32", 32768, "of 4 CTAs, in 1 piece of 32768 columns, 3 stages"),
        (
            layernorm_backward,
            "f32",
            90001,
            "of 8 CTAs, in 10 pieces of 8192 columns and one of 8081",
        ),
    ],
)
def test_rows_whose_columns_are_added_up(kernel: Any, dtype: str, columns: int, shown: str) -> None:
    """Rows that are no power of two pass through stages of small CTAs, several on an SM."""
    assert shown in kernel(4096, columns, dtype).explain()


@pytest.mark.parametrize(
    ("rows", "columns", "dtype", "shown"),
    [
        (1 << 19, 256, "f32", "8 rows a CTA, in registers; 4 warps"),
        (4096, 8192, "bf16", "4 pieces of 2048 columns, in registers; 4 warps"),
        (32, 8192, "bf16", "4 pieces of 2048 columns, in registers; 8 warps"),
    ],
)
def test_few_threads_have_rows_that_are_only_read(
    rows: int, columns: int, dtype: str, shown: str
) -> None:
    """If there are few rows, more threads have one."""
    assert shown in cross_entropy(rows, columns, dtype).explain()


@pytest.mark.parametrize(
    ("kernel", "rows", "columns", "shown"),
    [
        (softmax, 32, 8192, "a cluster of 4 CTAs, in registers; 4 warps"),
        (rmsnorm, 128, 8192, "a cluster of 2 CTAs, in registers; 8 warps"),
        (layernorm, 64, 16384, "a cluster of 4 CTAs, in registers; 8 warps"),
        (rmsnorm, 20, 11008, "a cluster of 4 CTAs, in registers; 11 warps"),
        (layernorm, 4, 65536, "a cluster of 16 CTAs, in registers; 8 warps"),
        (softmax, 128, 8192, "1 row a CTA, in 2 pieces of 4096 columns, in registers; 8 warps"),
        (rmsnorm, 8, 4096, "1 row a CTA, in registers; 8 warps"),
        (rmsnorm, 8, 11001, "1 row a CTA, in 2 pieces of 4096 columns and one of 2809"),
        (rmsnorm, None, 8192, "1 row a CTA, in 2 pieces of 4096 columns, in registers; 8 warps"),
    ],
)
def test_clusters_divide_few_long_rows(kernel: Any, rows: Any, columns: int, shown: str) -> None:
    assert shown in kernel(rows, columns, "bf16").explain()


def test_ids_follow_the_rows_of_tiles_that_have_parts_of_one() -> None:
    """Only where the sizes are known, and the rows of tiles are no more than a grid has along y."""
    for rows, columns, grid in (
        (64, 16384, (64, 1, 1)),
        (64, 65536, (4, 64, 1)),
        (1 << 17, 65536, (1 << 17, 4, 1)),
    ):
        (launch,) = cross_entropy_backward(rows, columns, "bf16").compile("sm_90a").launches
        assert launch.grid == grid


@pytest.mark.parametrize(
    ("dtype", "columns", "shown"),
    [
        ("f32", 1024, "4 × 1024 a CTA; 4 warps"),
        ("f32", 8192, "1 × 8192 a CTA; 8 warps"),
        ("bf16", 8192, "1 × 8192 a CTA; 8 warps"),
        ("f32", 65536, "1 × 16384 a CTA; 16 warps"),
    ],
)
def test_tiles_of_the_gradient_of_cross_entropy_have_rows(
    dtype: str, columns: int, shown: str
) -> None:
    assert shown in cross_entropy_backward(4096, columns, dtype).explain()


@pytest.mark.parametrize(("kernel", "columns"), [(softmax, 128256), (layernorm_backward, 30001)])
def test_masks_of_rows_find_registers(kernel: Any, columns: int) -> None:
    """Threads hold less of rows that do not fill their vectors: their masks are held, too."""
    assert kernel(64, columns, "bf16").compile("sm_90a").ptx
