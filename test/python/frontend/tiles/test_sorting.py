"""Sorts of tiles against NumPy, of any size, in all orders."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import runtime

DTYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f64": np.float64,
    "i8": np.int8,
    "u8": np.uint8,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
}


def run(kernel: lg.Kernel, *arrays: Any) -> list[Any]:
    artifact = kernel.compile(check=True)
    found = []
    for order in ("late", "random:1"):
        copies = [np.copy(a) for a in arrays]
        runtime.launch(artifact, *copies, device=runtime.select("sim", order=order))
        found.append(copies)
    for copies in found[1:]:
        for one, other in zip(found[0], copies, strict=True):
            assert one.tobytes() == other.tobytes()
    return found[0]


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    """Return numbers with many equal ones, and NaN among floats."""
    found = np.random.default_rng(3).integers(-20, 20, shape)
    if dtype[0] == "u":
        found = np.abs(found)
    found = found.astype(DTYPES[dtype])
    if "f" in dtype:
        found.reshape(-1)[:: max(7, found.size // 5)] = np.nan
    return found


def row_sort(shape: tuple[int, int], dtype: str, warps: int, *, descending: bool) -> lg.Kernel:
    kind = lg.Tensor[dtype, shape]

    @lg.kernel(grid=shape[0], warps=warps)
    def kernel(x: kind, y: kind):  # type: ignore[valid-type]
        y[lg.block_id(), :] = lg.sort(x[lg.block_id(), :], descending=descending)

    return kernel


def expected_of(x: Any, *, descending: bool) -> Any:
    wide = x.astype(np.float64) if x.dtype == DTYPES["bf16"] else x
    found = np.sort(wide, axis=-1)
    return found[..., ::-1] if descending else found


@pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
@pytest.mark.parametrize(
    ("columns", "warps"), [(1, 1), (2, 1), (48, 1), (64, 1), (96, 2), (200, 2), (256, 4), (1000, 4)]
)
def test_rows_of_any_size(columns: int, warps: int, descending: bool) -> None:
    x = numbers((2, columns), "f32")
    _, y = run(row_sort((2, columns), "f32", warps, descending=descending), x, np.zeros_like(x))
    np.testing.assert_array_equal(y, expected_of(x, descending=descending))


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_type(dtype: str) -> None:
    x = numbers((2, 100), dtype)
    _, y = run(row_sort((2, 100), dtype, 2, descending=True), x, np.zeros_like(x))
    y = y.astype(np.float64) if dtype == "bf16" else y
    np.testing.assert_array_equal(y, expected_of(x, descending=True))


@pytest.mark.parametrize("axis", [0, 1])
def test_dimensions_of_a_tile(axis: int) -> None:
    kind = lg.Tensor["f32", (24, 40)]

    @lg.kernel(grid=1, warps=4)
    def kernel(x: kind, y: kind):  # type: ignore[valid-type]
        y[:, :] = lg.sort(x[:, :], axis)

    x = numbers((24, 40), "f32")
    _, y = run(kernel, x, np.zeros_like(x))
    np.testing.assert_array_equal(y, np.sort(x, axis))


def test_several_tiles_are_sorted_together() -> None:
    keys, values = lg.Tensor["i8", (300,)], lg.Tensor["f32", (300,)]

    @lg.kernel(grid=1, warps=2)
    def kernel(k: keys, v: values, ks: keys, vs: values):  # type: ignore[valid-type]
        ks[:], vs[:] = lg.sort((k[:], v[:]))

    k, v = numbers((300,), "i8"), np.random.default_rng(0).random(300, np.float32)
    *_, ks, vs = run(kernel, k, v, np.zeros_like(k), np.zeros_like(v))
    order = np.lexsort((v, k))
    np.testing.assert_array_equal(ks, k[order])
    np.testing.assert_array_equal(vs, v[order])


@pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
def test_equal_elements_keep_their_order(descending: bool) -> None:
    kind, places = lg.Tensor["i32", (2, 130)], lg.Tensor["i32", (2, 130)]

    @lg.kernel(grid=2, warps=2)
    def kernel(x: kind, y: places):  # type: ignore[valid-type]
        y[lg.block_id(), :] = lg.argsort(x[lg.block_id(), :], descending=descending)

    x = numbers((2, 130), "i32")
    _, y = run(kernel, x, np.zeros_like(x))
    np.testing.assert_array_equal(y, np.argsort(-x if descending else x, axis=-1, kind="stable"))


@pytest.mark.parametrize(("columns", "k", "warps"), [(512, 5, 4), (100, 8, 1), (33, 33, 1)])
def test_the_greatest_elements(columns: int, k: int, warps: int) -> None:
    kind, top = lg.Tensor["f32", (2, columns)], lg.Tensor["f32", (2, k)]
    places = lg.Tensor["i32", (2, k)]

    @lg.kernel(grid=2, warps=warps)
    def kernel(x: kind, y: top, at: places):  # type: ignore[valid-type]
        i = lg.block_id()
        y[i, :], at[i, :] = lg.topk(x[i, :], k)

    x = numbers((2, columns), "f32")
    _, y, at = run(kernel, x, np.zeros((2, k), np.float32), np.zeros((2, k), np.int32))
    order = np.argsort(np.where(np.isnan(x), -np.inf, -x), axis=-1, kind="stable")[:, :k]
    np.testing.assert_array_equal(at, order)
    np.testing.assert_array_equal(y, np.take_along_axis(x, order, -1))


@pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
def test_floats_are_sorted_with_their_places(dtype: str, descending: bool) -> None:
    """NaNs of either sign are equal, and so are zeros; what is excluded comes last."""
    kind, top = lg.Tensor[dtype, (128,)], lg.Tensor[dtype, (100,)]
    places = lg.Tensor["i32", (100,)]

    @lg.kernel(grid=1, warps=1)
    def kernel(x: kind, y: top, at: places):  # type: ignore[valid-type]
        row = lg.restrict(x[:], lg.arange(128) < 90)
        y[:], at[:] = lg.topk(row, 100, descending=descending)

    values = np.random.default_rng(2).standard_normal(128).round(1)
    values[:6] = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0]
    x = values.astype({"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}[dtype])
    _, y, at = run(kernel, x, np.zeros(100, x.dtype), np.zeros(100, np.int32))
    held = x[:90].astype(np.float64)
    is_nan = np.isnan(held)
    keys = np.where(is_nan, np.inf, held)
    order = np.lexsort((~is_nan, -keys) if descending else (is_nan, keys))
    np.testing.assert_array_equal(at[:90], order)
    np.testing.assert_array_equal(y[:90].astype(np.float64), held[order])
    last = y[90:].astype(np.float64)
    assert (last == -np.inf).all() if descending else np.isnan(last).all()


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
def test_few_elements_of_long_rows_are_searched(dtype: str, descending: bool, warps: int) -> None:
    """Ties keep their order, NaNs and infinities too, and what is excluded comes last."""
    n, k = 600, 20
    kind, top = lg.Tensor[dtype, (6, n)], lg.Tensor[dtype, (6, k)]
    places = lg.Tensor["i32", (6, k)]

    @lg.kernel(grid=6, warps=warps)
    def kernel(x: kind, y: top, at: places):  # type: ignore[valid-type]
        row = lg.block_id()
        y[row, :], at[row, :] = lg.topk(
            lg.restrict(x[row, :], lg.arange(n) >= 7), k, descending=descending
        )

    rng = np.random.default_rng(4)
    values = rng.standard_normal((6, n))
    values[1] = values[1].round()
    values[2] = np.where(rng.random(n) < 0.02, values[2], -np.inf if descending else np.inf)
    values[3] = np.where(rng.random(n) < 0.02, values[3], np.nan)
    values[4] = np.where(rng.random(n) < 0.5, 0.0, -0.0)
    values[5] = -np.abs(values[5])
    x = values.astype({"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}[dtype])
    _, y, at = run(kernel, x, np.zeros((6, k), x.dtype), np.zeros((6, k), np.int32))
    for row in range(6):
        held = x[row, 7:].astype(np.float64)
        is_nan = np.isnan(held)
        keys = np.where(is_nan, np.inf, held)
        order = np.lexsort((~is_nan, -keys) if descending else (is_nan, keys))[:k]
        np.testing.assert_array_equal(at[row], order + 7)
        np.testing.assert_array_equal(y[row].astype(np.float64), held[order])


def test_searched_rows_of_few_elements_end_with_what_is_excluded() -> None:
    """Elements before the valid ones are excluded, whose number equals theirs."""
    kind, top, places = lg.Tensor["f32", (512,)], lg.Tensor["f32", (8,)], lg.Tensor["i32", (8,)]

    @lg.kernel(grid=1, warps=2)
    def kernel(x: kind, y: top, at: places):  # type: ignore[valid-type]
        y[:], at[:] = lg.topk(lg.restrict(x[:], lg.arange(512) >= 509), 8)

    x = np.full(512, -np.inf, np.float32)
    _, y, at = run(kernel, x, np.zeros(8, np.float32), np.zeros(8, np.int32))
    np.testing.assert_array_equal(at[:3], [509, 510, 511])
    assert (y == -np.inf).all()


def test_what_is_restricted_comes_last() -> None:
    kind = lg.Tensor["i32", (64,)]

    @lg.kernel(grid=1, warps=1)
    def kernel(x: kind, y: kind):  # type: ignore[valid-type]
        y[:] = lg.sort(lg.restrict(x[:], lg.arange(64) < 10))

    x = numbers((64,), "i32")
    _, y = run(kernel, x, np.zeros_like(x))
    np.testing.assert_array_equal(y[:10], np.sort(x[:10]))
    assert (y[10:] == np.iinfo(np.int32).max).all()


def test_what_follows_a_sort_ignores_padding() -> None:
    kind, one = lg.Tensor["f32", (100,)], lg.Tensor["f32", (1,)]

    @lg.kernel(grid=1, warps=1)
    def kernel(x: kind, y: one):  # type: ignore[valid-type]
        y[0] = lg.sum(lg.sort(x[:]))

    x = np.arange(100, dtype=np.float32)
    assert run(kernel, x, np.zeros(1, np.float32))[1][0] == x.sum()


def test_each_step_keeps_the_meaning() -> None:
    x = numbers((2, 100), "f32")
    row_sort((2, 100), "f32", 2, descending=False).check_each_step(x, np.zeros_like(x))


def test_nobody_needs_shared_memory_in_a_warp() -> None:
    text = row_sort((4, 256), "f32", 1, descending=False).compilation().text("ptx")
    assert ".shared" not in text
    assert "rounds in registers" in row_sort((4, 256), "f32", 1, descending=False).explain()


@pytest.mark.parametrize("k", [0, 65, 2.0])
def test_wrong_numbers_of_elements(k: Any) -> None:
    kind = lg.Tensor["f32", (64,)]

    @lg.kernel(grid=1, warps=1)
    def kernel(x: kind):  # type: ignore[valid-type]
        lg.topk(x[:], k)

    with pytest.raises(lg.LegoError, match="from 1 to 64") as error:
        kernel.compile()
    assert error.value.location is not None


def test_a_row_of_a_cluster_is_not_sorted() -> None:
    kind = lg.Tensor["f32", (1024,)]

    @lg.kernel(grid=1, warps=2, cluster=2)
    def kernel(x: kind):  # type: ignore[valid-type]
        x[:] = lg.sort(x[:])

    with pytest.raises(lg.LegoError, match="sorted") as error:
        kernel.compile()
    assert error.value.hint
