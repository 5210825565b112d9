"""Element types: names, raw formats, scalars, random data and poison."""

from __future__ import annotations

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import dtypes

FLOATS = ["f16", "f32", "f64", "bf16", "f8E4M3FN", "f8E5M2"]
RAW = ["bf16", "f8E4M3FN", "f8E5M2"]


def test_names() -> None:
    assert dtypes.numpy_dtype("f32") == np.float32
    assert dtypes.numpy_dtype("i8") == np.int8
    assert dtypes.numpy_dtype("ui16") == np.uint16
    assert dtypes.numpy_dtype("index") == np.int64
    assert dtypes.numpy_dtype("bf16") == np.uint16
    with pytest.raises(LegoError, match="'f4'"):
        dtypes.numpy_dtype("f4")


def test_matches() -> None:
    assert dtypes.matches(np.dtype(">f4"), "f32")
    assert dtypes.matches(np.dtype(np.uint32), "i32")
    assert not dtypes.matches(np.dtype(np.int32), "ui32")
    assert not dtypes.matches(np.dtype(np.float64), "f32")
    assert not dtypes.matches(np.dtype(np.int16), "i32")
    assert dtypes.matches(np.dtype(np.uint16), "bf16")


@pytest.mark.parametrize(
    ("name", "bits", "value"),
    [
        ("bf16", 0x3F80, 1.0),
        ("bf16", 0xC049, -3.140625),
        ("bf16", 0x7F80, np.inf),
        ("bf16", 0x0001, 2.0**-133),
        ("f8E4M3FN", 0x38, 1.0),
        ("f8E4M3FN", 0x7E, 448.0),
        ("f8E4M3FN", 0x01, 2.0**-9),
        ("f8E4M3FN", 0x7F, np.nan),
        ("f8E5M2", 0x3C, 1.0),
        ("f8E5M2", 0x7B, 57344.0),
        ("f8E5M2", 0xFC, -np.inf),
        ("f8E5M2", 0x7D, np.nan),
    ],
)
def test_decode(name: str, bits: int, value: float) -> None:
    raw = np.array([bits], dtypes.numpy_dtype(name))
    np.testing.assert_array_equal(dtypes.decode(raw, name), [value])


@pytest.mark.parametrize("name", RAW)
def test_encode_inverts_decode_on_every_finite_value(name: str) -> None:
    dtype = dtypes.numpy_dtype(name)
    bits = np.arange(1 << (8 * dtype.itemsize), dtype=np.int64).astype(dtype)
    values = dtypes.decode(bits, name)
    finite = np.isfinite(values)
    np.testing.assert_array_equal(dtypes.encode(values[finite], name), bits[finite])


@pytest.mark.parametrize("name", RAW)
def test_encode_rounds_to_nearest_even_and_saturates(name: str) -> None:
    dtype = dtypes.numpy_dtype(name)
    one = int(dtypes.encode(np.array([1.0]), name)[0])
    low, high = dtypes.decode(np.array([one, one + 1], dtype), name)
    step = high - low
    ties = np.array([low + step / 2, high + step / 2])
    np.testing.assert_array_equal(dtypes.encode(ties, name), [one, one + 2])
    huge = dtypes.decode(dtypes.encode(np.array([np.inf, -1e300]), name), name)
    assert np.isfinite(huge).all()
    assert huge[0] == -huge[1] > 0
    assert np.isnan(dtypes.decode(dtypes.encode(np.array([np.nan]), name), name))[0]
    np.testing.assert_array_equal(dtypes.encode(np.array([0.0]), name), [0])


@pytest.mark.parametrize("name", FLOATS)
def test_float_poison_is_nan(name: str) -> None:
    poison = dtypes.poison((2, 3), name)
    assert poison.shape == (2, 3)
    assert poison.dtype == dtypes.numpy_dtype(name)
    assert np.isnan(dtypes.decode(poison, name)).all()


def test_integer_poison() -> None:
    assert (dtypes.poison((3,), "i32").view(np.uint32) == 0xCDCDCDCD).all()
    assert dtypes.poison((3,), "i1").all()
    assert dtypes.poison((0, 3), "f32").shape == (0, 3)


@pytest.mark.parametrize("name", dtypes.names())
def test_random(name: str) -> None:
    first = dtypes.random((64, 64), name, np.random.default_rng(1))
    again = dtypes.random((64, 64), name, np.random.default_rng(1))
    other = dtypes.random((64, 64), name, np.random.default_rng(2))
    assert first.dtype == dtypes.numpy_dtype(name)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    values = dtypes.decode(first, name)
    assert np.isfinite(values).all()
    if dtypes.is_float(name):
        assert 0.9 < values.std() < 1.1
    elif name not in ("i1",):
        assert set(np.unique(values)) == set(range(0 if name[0] == "u" else -8, 9))


def test_scalars() -> None:
    assert dtypes.scalar("f32", 0.5) == np.float32(0.5)
    assert dtypes.scalar("i8", -128).dtype == np.int8
    assert dtypes.scalar("bf16", 1.0) == np.uint16(0x3F80)
    assert dtypes.scalar("bf16", 0x1234) == np.uint16(0x1234)
    assert dtypes.scalar("i1", True).dtype == np.bool_


@pytest.mark.parametrize(
    ("name", "value"),
    [("i8", 128), ("ui8", -1), ("i32", 1.5), ("f32", "x"), ("f32", [1.0]), ("i64", 1 << 63)],
)
def test_what_is_no_scalar_of_the_type(name: str, value: object) -> None:
    with pytest.raises(LegoError, match=f"no value of type {name}"):
        dtypes.scalar(name, value)
