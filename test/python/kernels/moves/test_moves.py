"""Kernels that only move data, compared with NumPy in the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import cast, concatenate, crop, flip, gather_rows, pad, roll, split

DTYPES = {"i8": np.int8, "i32": np.int32, "f16": np.float16, "f32": np.float32}
MODES = {"zero": "constant", "clamp": "edge", "wrap": "wrap"}


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    """Return an array of small numbers, which every type has."""
    return np.random.default_rng(3).integers(-99, 99, shape).astype(DTYPES[dtype])


def check(kernel: Any, x: Any, want: Any) -> None:
    """Run a kernel in the simulator, into poison, and compare every element."""
    y = np.full(want.nbytes, 0xCD, np.uint8).view(want.dtype).reshape(want.shape)
    kernel(x, y, device="sim")
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("boundary", MODES)
def test_pad(boundary: str) -> None:
    x = numbers((3, 5, 7), "f32")
    before, after = (1, 0, 2), (0, 2, 3)
    want = np.pad(x, list(zip(before, after, strict=True)), mode=MODES[boundary])  # type: ignore[call-overload]
    check(pad(x.shape, before, after, boundary=boundary), x, want)


def test_pad_of_any_number_of_rows() -> None:
    kernel = pad((None, 5, 7), (0, 0, 2), (0, 2, 0), "f16")
    for rows in (1, 6):
        x = numbers((rows, 5, 7), "f16")
        check(kernel, x, np.pad(x, ((0, 0), (0, 2), (2, 0))))


def test_crop_takes_whole_rows_together() -> None:
    x = numbers((4, 9, 16), "i8")
    check(crop(x.shape, (1, 2, 0), (3, 5, 16), "i8"), x, x[1:4, 2:7])


@pytest.mark.parametrize("axes", [(), (0,), (2,), (0, 1, 2)])
def test_flip(axes: tuple[int, ...]) -> None:
    x = numbers((3, 5, 130), "f16")
    check(flip(x.shape, axes, "f16"), x, np.flip(x, axes))


@settings(max_examples=6)
@given(st.tuples(*(st.integers(-20, 20) for _ in range(3))))
def test_roll(shifts: tuple[int, ...]) -> None:
    x = numbers((3, 5, 7), "f32")
    check(roll(x.shape, shifts), x, np.roll(x, shifts, (0, 1, 2)))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concatenate_and_split(axis: int) -> None:
    sizes = (5, 2, 9)
    shapes = [(*(3, 4, 7)[:axis], n, *(3, 4, 7)[axis + 1 :]) for n in sizes]
    parts = [numbers(shape, "f16") for shape in shapes]
    whole = np.concatenate(parts, axis)
    y = np.zeros_like(whole)
    concatenate(shapes, axis, "f16")(*parts, y, device="sim")
    np.testing.assert_array_equal(y, whole)
    pieces = [np.zeros_like(part) for part in parts]
    split(whole.shape, sizes, axis, "f16")(whole, *pieces, device="sim")
    for piece, part in zip(pieces, parts, strict=True):
        np.testing.assert_array_equal(piece, part)


@pytest.mark.parametrize(
    ("table", "rows", "columns", "dtype", "index"),
    [(50, 20, 40, "f16", "i32"), (None, None, 1100, "f32", "i64"), (50, 33, 96, "i8", "i32")],
)
def test_gather_rows(
    table: int | None, rows: int | None, columns: int, dtype: str, index: str
) -> None:
    x = numbers((50, columns), dtype)
    at = np.random.default_rng(1).integers(-2, 53, rows or 21).astype(index.replace("i", "int"))
    y = np.full((len(at), columns), 7, x.dtype)
    gather_rows(table, rows, columns, dtype, index=index)(x, at, y, device="sim")
    has = (at >= 0) & (at < 50)
    np.testing.assert_array_equal(y, np.where(has[:, None], x[np.where(has, at, 0)], 0))


@pytest.mark.parametrize(
    ("source", "target", "axes"),
    [
        ("f32", "f16", None),
        ("f16", "f32", (0, 2, 1)),
        ("i8", "f32", (2, 1, 0)),
        ("f32", "i32", (1, 0, 2)),
    ],
)
def test_cast(source: str, target: str, axes: tuple[int, ...] | None) -> None:
    x = numbers((3, 5, 70), source)
    want = x.transpose(axes or range(3)).astype(DTYPES[target])
    check(cast(x.shape, source, target, axes=axes), x, want)


def test_cast_of_any_number_of_rows() -> None:
    x = numbers((6, 50), "f32")
    check(cast((None, 50), "f32", "f16"), x, x.astype(np.float16))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pad((3, 4), (1,), (0, 0)), "has 1 numbers"),
        (lambda: pad((3, 4), (1, 0), (0, 0), boundary="mirror"), "no boundary 'mirror'"),
        (lambda: pad((3, 4), (4, 0), (0, 0), boundary="wrap"), "wrap more than once"),
        (lambda: pad((None, 4), (1, 0), (0, 0)), "only known to the launch"),
        (lambda: pad((0, 4), (1, 0), (0, 0)), "is not a shape"),
        (lambda: crop((3, 4), (0, 2), (3, 3)), "has 4 elements, not 3 from 2 on"),
        (lambda: flip((3, 4), (2,)), "not dimensions"),
        (lambda: roll((3, 4), (1, 2, 3)), "has 3 numbers"),
        (lambda: concatenate([(3, 4), (3, 5)], 0), "tensor 1 has the shape"),
        (lambda: split((3, 4), (1, 1), 0), "are not dimension 0"),
        (lambda: gather_rows(3, 4, 5, index="u8"), "indices are i32 or i64"),
        (lambda: cast((3, 4), "f32", "f16", axes=(0, 0)), "not a permutation"),
        (lambda: cast((None, 4), "f32", "f16", axes=(1, 0)), "only known to the launch"),
        (lambda: cast((3, 4), "f32", "f17"), "f17"),
    ],
)
def test_wrong_arguments(make: Any, message: str) -> None:
    with pytest.raises(LegoError, match=message):
        make()
