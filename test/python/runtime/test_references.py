"""References and the comparison with them."""

from __future__ import annotations

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime.references import compare, expect

A = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_known_references() -> None:
    np.testing.assert_array_equal(expect("transpose", [A], 1)[0], A.T)
    np.testing.assert_array_equal(expect("copy", [A], 1)[0], A)


def test_unknown_reference_lists_the_known() -> None:
    with pytest.raises(LegoError, match="unknown reference 'sort'") as caught:
        expect("sort", [A], 1)
    assert caught.value.hint == "known references: transpose, copy, permute(1, 0, 2)"


def test_wrong_number_of_arguments() -> None:
    with pytest.raises(LegoError, match="the kernels read 2"):
        expect("copy", [A, A], 1)
    with pytest.raises(LegoError, match="the kernels write 2"):
        expect("copy", [A], 2)


def test_equal() -> None:
    result = compare(A.T, np.ascontiguousarray(A.T), dtype="f32")
    assert result.equal
    assert (result.count, result.size, result.first) == (0, 6, None)
    assert str(result) == "result: all 6 elements equal"


def test_difference() -> None:
    actual = A.copy()
    actual[1, 0], actual[1, 2] = 4.0, 0.0
    result = compare(A, actual, name="b", dtype="f32")
    assert not result.equal
    assert (result.count, result.first) == (2, (1, 0))
    assert (result.expected, result.actual) == (3.0, 4.0)
    assert (result.max_abs, result.max_rel) == (5.0, 1.0)
    assert "2 of 6 elements differ, the first at [1, 0]: expected 3, found 4" in str(result)


def test_nans() -> None:
    nan = np.array([np.nan, 1], np.float32)
    assert compare(nan, nan.copy(), dtype="f32").equal
    one_sided = compare(np.ones(2, np.float32), nan, dtype="f32")
    assert one_sided.count == 1
    assert np.isnan(one_sided.max_abs)


def test_signed_zeros_differ_by_no_amount() -> None:
    result = compare(np.zeros(1, np.float32), -np.zeros(1, np.float32), dtype="f32")
    assert (result.equal, result.count, result.max_abs, result.max_rel) == (False, 1, 0.0, 0.0)


def test_raw_formats_are_told_as_values() -> None:
    one, two = (np.array([bits], np.uint16) for bits in (0x3F80, 0x4000))
    result = compare(one, two, dtype="bf16")
    assert (result.expected, result.actual, result.max_rel) == (1.0, 2.0, 1.0)


def test_integers_and_bools() -> None:
    assert compare(np.array([1, 2]), np.array([1, 5]), dtype="i64").max_abs == 3
    assert not compare(np.array([True]), np.array([False]), dtype="i1").equal


def test_shapes_differ() -> None:
    with pytest.raises(LegoError, match=r"'b' has shape \[3, 2\], its reference \[2, 3\]"):
        compare(A, A.T, name="b", dtype="f32")


def test_no_elements_are_equal() -> None:
    empty = np.empty((0, 3), np.float32)
    assert compare(empty, empty, dtype="f32").equal
