"""References and the comparison with them."""

from __future__ import annotations

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import dtypes
from lego_mlir.runtime.references import Bounded, compare, expect

A = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_known_references() -> None:
    np.testing.assert_array_equal(expect("transpose", [A], 1)[0], A.T)
    np.testing.assert_array_equal(expect("copy", [A], 1)[0], A)


@pytest.mark.parametrize("name", ["permute(1, 0)", "permute(1,0)", "permute(1 , 0)"])
def test_axes_may_stand_close_together(name: str) -> None:
    np.testing.assert_array_equal(expect(name, [A], 1)[0], A.T)


def test_unknown_reference_lists_the_known() -> None:
    with pytest.raises(LegoError, match="unknown reference 'sort'") as caught:
        expect("sort", [A], 1)
    known = "transpose, copy, matmul, coarse_matmul, permute(1, 0, 2)"
    assert caught.value.hint == f"known references: {known}"


def test_wrong_number_of_arguments() -> None:
    with pytest.raises(LegoError, match="the kernels read 2"):
        expect("copy", [A, A], 1)
    with pytest.raises(LegoError, match="the kernels write 2"):
        expect("copy", [A], 2)


def test_equal_arrays_compare_equal() -> None:
    result = compare(A.T, np.ascontiguousarray(A.T), dtype="f32")
    assert result.equal
    assert (result.count, result.size, result.first) == (0, 6, None)
    assert str(result) == "result: all 6 elements equal"


def test_the_first_difference_is_shown() -> None:
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


def test_raw_formats_are_printed_as_values() -> None:
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


def product(a: np.ndarray, b: np.ndarray, types: tuple[str, ...] = ()) -> Bounded:
    (expected,) = expect("matmul", [a, b], 1, types)
    assert isinstance(expected, Bounded)
    return expected


def test_a_gemm_summed_in_any_order_is_correct() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((32, 512), (512, 48)))
    expected = product(a, b)
    backwards = np.zeros((32, 48), np.float32)
    for k in reversed(range(512)):
        backwards += np.outer(a[:, k].astype(np.float32), b[k].astype(np.float32))
    for dtype in ("f16", "f32"):
        result = compare(expected, backwards.astype(dtypes.numpy_dtype(dtype)), dtype=dtype)
        assert result.equal
        assert "all 1536 elements within rounding, the largest error" in str(result)


def test_a_gemm_that_lacks_a_term_is_wrong() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((32, 512), (512, 48)))
    lacking = a[:, 1:].astype(np.float32) @ b[1:].astype(np.float32)
    result = compare(product(a, b), lacking.astype(np.float16), name="c", dtype="f16")
    assert not result.equal
    assert result.count > 1000
    assert "of 1536 elements differ, the first at" in str(result)


def test_gemms_of_integers_are_exact() -> None:
    a, b = np.full((2, 300), -128, np.int8), np.full((300, 2), 127, np.int8)
    expected = product(a, b)
    right = np.full((2, 2), -128 * 127 * 300, np.int32)
    assert compare(expected, right, dtype="i32").equal
    assert not compare(expected, right + 1, dtype="i32").equal


@pytest.mark.parametrize("dtype", ["bf16", "f8E4M3FN", "f8E5M2"])
def test_gemms_of_raw_formats_are_decoded(dtype: str) -> None:
    a, b = (dtypes.random(shape, dtype, np.random.default_rng(1)) for shape in ((8, 16), (16, 8)))
    values = [dtypes.decode(x, dtype) for x in (a, b)]
    expected = product(a, b, (dtype, dtype))
    np.testing.assert_allclose(expected.values, values[0] @ values[1], rtol=1e-4, atol=1e-5)
    rounded = dtypes.encode(values[0] @ values[1], "bf16")
    assert compare(expected, rounded, dtype="bf16").equal
    assert not compare(expected, rounded + np.uint16(1), dtype="bf16").equal


def cut(x: np.ndarray, unit: np.ndarray) -> np.ndarray:
    return np.trunc(x / unit) * unit


def test_sums_that_keep_13_bits_are_right_and_lack_no_block_of_terms() -> None:
    rng = np.random.default_rng(0)
    types = ("f8E4M3FN", "f8E4M3FN")
    a, b = (dtypes.encode(rng.standard_normal(s), types[0]) for s in ((32, 512), (512, 48)))
    x, y = (dtypes.decode(v, types[0]).astype(np.float64) for v in (a, b))
    total, lacking = np.zeros((2, 32, 48))
    for k in range(0, 512, 32):
        terms = [x[:, i, None] * y[i] for i in range(k, k + 32)]
        largest = np.max(np.abs([total, *terms]), axis=0)
        unit = 2.0 ** (np.floor(np.log2(largest)) - 13)
        total = cut(total, unit) + sum(cut(t, unit) for t in terms)
        lacking += sum(terms) if k else 0
    (wanted,) = expect("coarse_matmul", [a, b], 1, types)
    assert compare(wanted, total.astype(np.float32), dtype="f32").equal
    assert not compare(product(a, b, types), total.astype(np.float32), dtype="f32").equal
    assert compare(wanted, lacking.astype(np.float32), dtype="f32").count > 1000


def test_batches_are_multiplied_one_by_one() -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 4, 5), (3, 5, 6)))
    np.testing.assert_allclose(product(a, b).values[1], a[1] @ b[1], rtol=1e-6)


def test_what_overflows_or_is_no_number_is_expected_so() -> None:
    large, nan = np.full((1, 64), 1000, np.float16), np.full((1, 64), np.nan, np.float16)
    infinite = np.full((1, 1), np.inf, np.float16)
    assert compare(product(large, large.T), infinite, dtype="f16").equal
    assert compare(product(nan, large.T), np.full((1, 1), np.nan, np.float16), dtype="f16").equal
    assert not compare(product(nan, large.T), infinite, dtype="f16").equal


def test_shapes_that_do_not_multiply_are_errors() -> None:
    with pytest.raises(LegoError, match=r"matrices of the shapes \[2, 3\] and \[2"):
        expect("matmul", [A, A], 1)
    with pytest.raises(LegoError, match=r"'c' has shape \[2, 3\], its reference \[2, 2\]"):
        compare(product(A, A.T), A, name="c", dtype="f32")
