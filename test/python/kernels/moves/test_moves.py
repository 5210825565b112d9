"""Kernels that only move data, compared with NumPy in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import cast, concatenate, crop, flip, gather_rows, pad, roll, split
from lego_mlir.kernels.moves import pieces

DTYPES = {
    "i8": np.int8,
    "u8": np.uint8,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}
BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
MODES = {"zero": "constant", "clamp": "edge", "wrap": "wrap"}


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    """Return an array of small numbers, which every type has."""
    return np.random.default_rng(3).integers(-99, 99, shape).astype(DTYPES[dtype])


def check(kernel: Any, x: Any, want: Any) -> None:
    """Run a kernel in the simulator, into poison, and compare every element."""
    y = np.full(want.nbytes, 0xCD, np.uint8).view(want.dtype).reshape(want.shape)
    kernel(x, y, device="sim")
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize(
    ("boundary", "dtype", "columns"),
    [
        ("zero", "f32", 7),
        ("clamp", "i8", 7),
        ("clamp", "f64", 7),
        ("clamp", "f16", 60),
        ("wrap", "f16", 401),
        ("zero", "i8", 401),
    ],
)
def test_pad(boundary: str, dtype: str, columns: int) -> None:
    x = numbers((3, 5, columns), dtype)
    before, after = (1, 0, 2), (0, 2, 3)
    want = np.pad(x, list(zip(before, after, strict=True)), mode=MODES[boundary])  # type: ignore[call-overload]
    check(pad(x.shape, before, after, dtype, boundary=boundary), x, want)


def test_pad_of_many_dimensions() -> None:
    x, before, after = numbers((2, 2, 9, 5, 20), "i8"), (1, 2, 2, 0, 1), (1, 3, 3, 2, 0)
    check(pad(x.shape, before, after, "i8"), x, np.pad(x, list(zip(before, after, strict=True))))


def test_pad_of_any_number_of_rows() -> None:
    kernel = pad((None, 5, 7), (0, 0, 2), (0, 2, 0), "f16")
    for rows in (1, 6):
        x = numbers((rows, 5, 7), "f16")
        check(kernel, x, np.pad(x, ((0, 0), (0, 2), (2, 0))))


def test_crop_takes_whole_rows_together() -> None:
    x = numbers((4, 9, 16), "i8")
    check(crop(x.shape, (1, 2, 0), (3, 5, 16), "i8"), x, x[1:4, 2:7])


@pytest.mark.parametrize(
    ("axes", "dtype"),
    [((), "f16"), ((0,), "f16"), ((2,), "f64"), ((2,), "f32"), ((0, 2), "i8"), ((0, 1, 2), "f16")],
)
def test_flip(axes: tuple[int, ...], dtype: str) -> None:
    x = numbers((3, 5, 130), dtype)
    check(flip(x.shape, axes, dtype), x, np.flip(x, axes))


@settings(max_examples=5)
@given(
    shifts=st.tuples(*(st.integers(-20, 20) for _ in range(3))),
    columns=st.integers(1, 60),
    dtype=st.sampled_from(["i8", "f16", "f32", "f64"]),
)
def test_roll(shifts: tuple[int, ...], columns: int, dtype: str) -> None:
    x = numbers((3, 5, columns), dtype)
    check(roll(x.shape, shifts, dtype), x, np.roll(x, shifts, (0, 1, 2)))


@settings(max_examples=6)
@example((3, 50, 1), 1, (4096, 0, 1001), "i8", 16)  # longer than a CTA's words, at all phases
@example((1, 9, 7), 0, (3, 2, 1), "f64", 16)
@example((5, 9, 16), 1, (8, 24), "f16", 16)  # rows of whole words
@example((5, 9, 3), 1, (7, 30), "f16", 2)  # at addresses of which only elements are known
@given(
    shape=st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 9)),
    axis=st.integers(0, 2),
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=4).filter(any),
    dtype=st.sampled_from(["i8", "f16", "f32", "f64", "u8"]),
    alignment=st.sampled_from([1, 4, 8, 16]),
)
def test_concatenate_and_split(
    shape: tuple[int, ...], axis: int, sizes: Sequence[int], dtype: str, alignment: int
) -> None:
    shapes = [(*shape[:axis], n, *shape[axis + 1 :]) for n in sizes]
    parts = [
        np.random.default_rng(n)
        .integers(0, 256, prod(each) * DTYPES[dtype]().nbytes, np.uint8)
        .view(BITS[DTYPES[dtype]().nbytes])
        .reshape(each)
        for n, each in enumerate(shapes)
    ]
    whole = np.concatenate(parts, axis)
    kind = DTYPES[dtype]
    y = np.full(whole.nbytes, 0xCD, np.uint8).view(whole.dtype).reshape(whole.shape)
    join = concatenate(shapes, axis, dtype, alignment=alignment)
    join(*(part.view(kind) for part in parts), y.view(kind), device="sim")
    np.testing.assert_array_equal(y, whole)
    outputs = [np.full_like(part, 0x5A) for part in parts]
    parting = split(whole.shape, sizes, axis, dtype, alignment=alignment)
    parting(whole.view(kind), *(output.view(kind) for output in outputs), device="sim")
    for output, part in zip(outputs, parts, strict=True):
        np.testing.assert_array_equal(output, part)


@pytest.mark.parametrize("sizes", [(401, 301, 201), (302, 300, 301, 1, 299)])
def test_rows_in_several_groups(sizes: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_TOGETHER", 3000)  # bytes: some rows at a time
    whole = numbers((33, sum(sizes)), "i8")
    parts = [np.ascontiguousarray(part) for part in np.split(whole, np.cumsum(sizes)[:-1], 1)]
    y = np.full_like(whole, 0x5A)
    concatenate([part.shape for part in parts], 1, "i8")(*parts, y, device="sim")
    np.testing.assert_array_equal(y, whole)
    outputs = [np.full_like(part, 0x5A) for part in parts]
    split(whole.shape, sizes, 1, "i8")(whole, *outputs, device="sim")
    for output, part in zip(outputs, parts, strict=True):
        np.testing.assert_array_equal(output, part)


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
        ("i8", "f64", (2, 1, 0)),
        ("i64", "i8", (2, 1, 0)),
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
        (lambda: concatenate([]), "has no tensor"),
        (lambda: concatenate([(3, 0), (3, 0)], 1), "no elements along dimension 1"),
        (lambda: concatenate([(0, 3), (0, 4)], 1), "is not a shape"),
        (lambda: concatenate([(3, 4)] * 65), "65 tensors in one launch"),
        (lambda: concatenate([(3, 4)], alignment=12), "alignment=12 is no power of two"),
        (lambda: concatenate([(None, 4)], 1), "only the launch knows"),
        (lambda: split((3, 4), (1, 1), 0), "are not dimension 0"),
        (lambda: split((3, 4), (4, -1), 0), "is not a shape"),
        (lambda: split((3, 4), (3,), 2), "has no dimension 2"),
        (lambda: gather_rows(3, 4, 5, index="u8"), "indices are i32 or i64"),
        (lambda: cast((3, 4), "f32", "f16", axes=(0, 0)), "not a permutation"),
        (lambda: cast((None, 4), "f32", "f16", axes=(1, 0)), "only known to the launch"),
        (lambda: cast((3, 4), "f32", "f17"), "f17"),
    ],
)
def test_wrong_arguments(make: Any, message: str) -> None:
    with pytest.raises(LegoError, match=message):
        make()
