"""Conversions to and from the 8-bit floats against ml_dtypes, with and without instructions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError

SHORT = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}
FLOATS: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
INTEGERS = {f"i{n}": np.dtype(f"int{n}") for n in (8, 16, 32, 64)}
DTYPES = SHORT | FLOATS | INTEGERS
TARGETS = ("sm_80", "sm_90a")  # without the instructions, and with them
WIDTH = 3  # of vectors: a pair and one more
THREADS = 64


def converted(values: Any, to: str, target: str, *, of: str) -> Any:
    """Numbers of one type as another, of vectors and alone, which is to be the same."""
    rows = -(-len(values) // (WIDTH * THREADS)) * THREADS
    padded = np.resize(values, (rows, WIDTH))
    layout = lg.OrderBy(lg.Row(rows, WIDTH))

    def kernel(a: Any, b: Any, c: Any) -> None:
        row = lg.block_id() * THREADS + lg.thread_id()
        b[row, :] = a[row, :].to(to)
        for k in range(WIDTH):
            c[row, k] = a[row, k].to(to)

    kinds = {"a": lg.TensorType(of, layout)}
    kinds |= {name: lg.TensorType(to, layout) for name in "bc"}
    made = lg.kernel(grid=rows // THREADS, block=THREADS, parameters=kinds)(kernel)
    raw = np.dtype(DTYPES[to]).itemsize
    together, alone = (np.zeros((rows, WIDTH), f"u{raw}") for _ in range(2))
    argument = padded.view(f"u{padded.itemsize}") if of in ("bf16", *SHORT) else padded
    outputs = [x if to in ("bf16", *SHORT) else x.view(DTYPES[to]) for x in (together, alone)]
    lg.launch(made.compile(target), argument, *outputs, device="sim")
    assert (together == alone).all()
    return together.reshape(-1)[: len(values)].view(DTYPES[to])


def finite(to: str) -> Any:
    """The magnitudes of a type in the order of their codes, as f64."""
    codes = np.arange(128, dtype=np.uint8).view(DTYPES[to]).astype(np.float64)
    return codes[np.isfinite(codes)]


def saturated(values: Any, to: str) -> Any:
    """ml_dtypes' conversion of numbers that the type has room for; of f64 the nearest number.

    ml_dtypes rounds f64 twice, first to f32.
    """
    if values.dtype == np.float64:
        exact, size = finite(to), np.abs(values)
        ties = (exact[1:] + exact[:-1]) / 2
        low, high = (np.searchsorted(ties, size, side) for side in ("left", "right"))
        code = np.where(low % 2, high, low) + 128 * np.signbit(values)
        return code.astype(np.uint8).view(DTYPES[to])
    with np.errstate(invalid="ignore", over="ignore"):
        most = float(ml_dtypes.finfo(DTYPES[to]).max)
        return np.clip(values.astype(np.float64), -most, most).astype(DTYPES[to])


def numbers(dtype: str, to: str) -> Any:
    """What is hard to convert: ties and their neighbours, extremes, NaN, and random numbers."""
    if dtype in INTEGERS:
        info = np.iinfo(DTYPES[dtype])
        near = np.arange(max(info.min, -600), min(info.max, 600) + 1)
        far = np.random.default_rng(1).integers(info.min, info.max, 300, endpoint=True)
        return np.concatenate([near, far, [info.min, info.max]]).astype(DTYPES[dtype])
    exact = finite(to)
    ties = (exact[1:] + exact[:-1]) / 2
    beside = [np.nextafter(ties, 0), np.nextafter(ties, np.inf)]
    if dtype != "f64":
        beside = [ties * (1 - 2.0**-7), ties * (1 + 2.0**-7)]
    special = [0.0, np.inf, np.nan, 1e300, 1e38, 1e-45, 5e-324, 448.0, 464.0, 57344.0, 61440.0]
    random = np.random.default_rng(2).standard_normal(300) * np.exp2(np.arange(300) % 40 - 20)
    found = np.concatenate([exact, ties, *beside, special, random])
    with np.errstate(over="ignore"):
        return np.concatenate([found, -found]).astype(DTYPES[dtype])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("to", SHORT)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_to_8_bits(dtype: str, to: str, target: str) -> None:
    """Rounded once, to nearest even; what is too large, infinities too, is the largest number."""
    values = numbers(dtype, to)
    found = converted(values, to, target, of=dtype)
    lost = np.isnan(values.astype(np.float64))
    want = np.where(lost, np.uint8(0x7F), saturated(values, to).view(np.uint8))
    np.testing.assert_array_equal(found.view(np.uint8), want)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("of", SHORT)
@pytest.mark.parametrize("dtype", FLOATS)
def test_all_256_codes_as_floats(dtype: str, of: str, target: str) -> None:
    """All of them are exact, infinities and NaNs included."""
    codes = np.arange(256, dtype=np.uint8).view(SHORT[of])
    found = converted(codes, dtype, target, of=of).astype(np.float64)
    np.testing.assert_array_equal(found, codes.astype(np.float64))
    there = ~np.isnan(found)
    assert (np.signbit(found) == np.signbit(codes.astype(np.float64)))[there].all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("of", SHORT)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_all_256_codes_as_integers(dtype: str, of: str, target: str) -> None:
    """Towards zero, where the integer has room for it."""
    codes = np.arange(256, dtype=np.uint8).view(SHORT[of])
    exact = codes.astype(np.float64)
    fits = np.isfinite(exact) & (np.abs(exact) <= np.iinfo(DTYPES[dtype]).max)
    found = converted(codes, dtype, target, of=of)
    np.testing.assert_array_equal(found[fits], np.trunc(exact[fits]).astype(np.int64))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("of", "to"), [("f8E4M3FN", "f8E5M2"), ("f8E5M2", "f8E4M3FN")])
def test_one_as_the_other(of: str, to: str, target: str) -> None:
    codes = np.arange(256, dtype=np.uint8).view(SHORT[of])
    lost = np.isnan(codes.astype(np.float32))
    want = np.where(lost, np.uint8(0x7F), saturated(codes, to).view(np.uint8))
    np.testing.assert_array_equal(converted(codes, to, target, of=of).view(np.uint8), want)


@pytest.mark.parametrize("target", TARGETS)
def test_an_index(target: str) -> None:
    layout = lg.OrderBy(lg.Row(512))

    def kernel(out: Any) -> None:
        i = lg.thread_id()
        out[i] = (i - 20).to("f8E4M3FN")

    kinds = {"out": lg.TensorType("f8E4M3FN", layout)}
    out = np.zeros(512, np.uint8)
    made = lg.kernel(grid=1, block=512, parameters=kinds)(kernel)
    lg.launch(made.compile(target), out, device="sim")
    want = saturated(np.arange(512) - 20, "f8E4M3FN")
    np.testing.assert_array_equal(out, want.view(np.uint8))


def test_a_tile_of_two_dimensions() -> None:
    layout = lg.OrderBy(lg.Row(5, 3))

    def kernel(a: Any, b: Any) -> None:
        b[:, :] = (a[:, :].to("f8E5M2").to("f32") * 2.0).to("f8E4M3FN")

    kinds = {"a": lg.TensorType("f32", layout), "b": lg.TensorType("f8E4M3FN", layout)}
    x = np.random.default_rng(5).standard_normal((5, 3)).astype(np.float32)
    y = np.zeros((5, 3), np.uint8)
    lg.kernel(grid=1, block=1, parameters=kinds)(kernel)(x, y, device="sim")
    want = (x.astype(SHORT["f8E5M2"]).astype(np.float32) * 2).astype(SHORT["f8E4M3FN"])
    np.testing.assert_array_equal(y, want.view(np.uint8))


def test_a_pair_takes_one_instruction_where_there_is_one() -> None:
    layout = lg.OrderBy(lg.Row(32, 4))

    def kernel(a: Any, b: Any) -> None:
        b[lg.thread_id(), :] = a[lg.thread_id(), :].to("f8E4M3FN")

    kinds = {"a": lg.TensorType("f32", layout, 16), "b": lg.TensorType("f8E4M3FN", layout, 4)}
    made = lg.kernel(grid=1, block=32, parameters=kinds)(kernel)
    for target, count in (("sm_89", 2), ("sm_90a", 2), ("sm_120a", 2), ("sm_75", 0)):
        assert made.compile(target).ptx.count("cvt.rn.satfinite.e4m3x2.f32") == count


@pytest.mark.parametrize("operation", [lambda x: x + x, lambda x: -x, lambda x: lg.exp2(x)])
def test_arithmetic_of_8_bit_floats_is_an_error(operation: Any) -> None:
    def kernel(a: Any) -> None:
        a[lg.thread_id()] = operation(a[lg.thread_id()])

    kinds = {"a": lg.TensorType("f8E5M2", lg.OrderBy(lg.Row(32)))}
    with pytest.raises(LegoError, match=r"of f8E5M2, which a GPU converts") as e:
        _ = lg.kernel(grid=1, block=32, parameters=kinds)(kernel).module
    assert 'go back by .to("f8E5M2")' in str(e.value.hint)
