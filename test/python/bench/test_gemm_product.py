"""The oracle of products: exact sums, views of every order, and how far off an output may be."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from host_driver import HostDriver

from bench.gemm import operands
from bench.gemm.operands import Operands
from bench.gemm.product import Product
from bench.memory import GAP, POISONS
from lego_mlir.runtime import dtypes

M, N, K, SETS = 5, 7, 19, 3

ORDERS = list(product(("row", "col"), repeat=3))


def offset(i: int, j: int, rows: int, columns: int, order: str) -> int:
    return i * columns + j if order == "row" else j * rows + i


def host(matrix: operands.Matrix, sets: int = SETS) -> Any:
    """The memory of all sets, as it lies."""
    whole = (ctypes.c_uint8 * (sets * matrix.stride)).from_address(matrix.pointer)
    return np.frombuffer(whole, np.uint8).reshape(sets, matrix.stride)


def multiply(data: Operands, *, skip: int = 0, source: int = 0) -> None:
    """What a right kernel does, by loops; without the last `skip` products of each sum."""
    p = data.reference
    kinds = [dtypes.numpy_dtype(x.dtype) for x in (data.a, data.b, data.c)]
    for s in range(data.sets):
        given = (s + source) % data.sets
        a = dtypes.decode(host(data.a)[given, : data.a.size].view(kinds[0]), p.dtype)
        b = dtypes.decode(host(data.b)[given, : data.b.size].view(kinds[1]), p.dtype)
        c = host(data.c)[s, : data.c.size].view(kinds[2])
        for i, j in product(range(p.m), range(p.n)):
            total = sum(
                a[offset(i, k, p.m, p.k, p.a)] * b[offset(k, j, p.k, p.n, p.b)]
                for k in range(p.k - skip)
            )
            raw = p.out not in ("f16", "f32", "i32")
            value = dtypes.encode(np.asarray(total), p.out) if raw else total
            c[offset(i, j, p.m, p.n, p.c)] = value


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[HostDriver]:
    played = HostDriver()
    monkeypatch.setattr(operands, "driver", lambda: played)
    yield played
    assert not played.held


def allocated(reference: Product) -> Operands:
    data = Operands.allocate(reference, 1 << 30, SETS, None)
    data.draw(1)
    return data


@pytest.mark.parametrize(("a", "b", "c"), ORDERS)
def test_a_right_product_is_right_in_every_order(
    a: Any, b: Any, c: Any, driver: HostDriver
) -> None:
    data = allocated(Product(M, N, K, "f16", "f16", a, b, c))
    for byte in POISONS:
        data.poison(byte)
        multiply(data)
        verdict = data.check(byte)
        assert verdict.right
        assert verdict.elements == SETS * M * N
        assert 0 < verdict.deviation < verdict.allowed
        assert 0.1 < verdict.worst < 1
    data.free()


@pytest.mark.parametrize(
    ("dtype", "out"),
    [("bf16", "bf16"), ("f16", "f32"), ("f8E4M3FN", "f16"), ("f8E5M2", "f16"), ("i8", "i32")],
)
def test_every_type_is_checked(dtype: str, out: str, driver: HostDriver) -> None:
    data = allocated(Product(M, N, K, dtype, out))
    data.poison(POISONS[0])
    multiply(data)
    verdict = data.check(POISONS[0])
    assert verdict.right
    assert (verdict.deviation == 0) == (dtype == "i8")
    host(data.c)[1, data.c.size - 1] ^= 0x40
    assert data.check(POISONS[0]).differing == 1
    data.free()


def test_what_is_wrong_is_found(driver: HostDriver) -> None:
    data = allocated(Product(M, N, K, "f16", "f16"))
    data.poison(POISONS[0])
    assert data.check(POISONS[0]).differing > 0.9 * SETS * M * N  # nobody wrote it
    multiply(data, skip=1)
    assert data.check(POISONS[0]).differing > 0.9 * SETS * M * N
    multiply(data, source=1)
    assert data.check(POISONS[0]).differing > 0.9 * SETS * M * N
    multiply(data)
    assert data.check(POISONS[0]).right
    host(data.c)[0, data.c.size :][0] ^= 1  # beyond the output
    assert data.check(POISONS[0]).outside == 1
    assert not data.check(POISONS[0]).right
    multiply(data)
    host(data.c)[2, : data.c.size].view(np.float16)[0] = np.nan
    verdict = data.check(POISONS[0])
    assert verdict.differing == 1
    assert not verdict.right
    assert np.isfinite([verdict.deviation, verdict.worst]).all()  # JSON has no NaN
    data.free()


@pytest.mark.parametrize("dtype", ["f16", "f8E4M3FN"])
@pytest.mark.parametrize("k", [1024, 4096, 8192])
def test_a_product_left_out_of_every_sum_is_more_than_the_whole_may_be_off(
    dtype: str, k: int
) -> None:
    assert Product(64, 64, k, dtype, "f16").deviation < 0.8 / k**0.5


def test_tolerances_follow_type_and_length() -> None:
    def tolerance(dtype: str, out: str, k: int) -> tuple[float, float]:
        return Product(8, 8, k, dtype, out).tolerance

    assert tolerance("i8", "i32", 1 << 14) == (0, 0)
    assert tolerance("f16", "f16", 1024)[0] == 2.0**-11
    assert tolerance("bf16", "bf16", 1024)[0] == 2.0**-8
    # A product that is left out is of the size of one; a sum may not be off by that.
    assert tolerance("f16", "f16", 16384)[1] < 0.1
    assert tolerance("f16", "f16", 4096)[1] == 8 * tolerance("f16", "f16", 1024)[1]
    assert tolerance("f8E4M3FN", "f16", 1024)[1] > 100 * tolerance("f16", "f16", 1024)[1]


def test_integers_span_their_range_and_floats_are_normal(driver: HostDriver) -> None:
    data = Operands.allocate(Product(64, 64, 64, "i8", "i32"), 1, 1, None)
    data.draw(3)
    values = host(data.a, 1)[0, : data.a.size].view(np.int8)
    assert values.min() < -120
    assert values.max() > 120
    assert not np.array_equal(values, host(data.b, 1)[0, : data.b.size].view(np.int8))
    data.free()
    data = Operands.allocate(Product(64, 64, 64, "f16", "f16"), 1, 1, None)
    data.draw(3)
    values = host(data.a, 1)[0, : data.a.size].view(np.float16).astype(float)
    assert abs(values.mean()) < 0.1
    assert abs(values.std() - 1) < 0.1
    data.free()


@pytest.mark.parametrize("past", [1, 10_000, 1 << 30])
def test_sets_together_outgrow_the_cache(past: int, driver: HostDriver) -> None:
    data = Operands.allocate(Product(16, 32, 8, "f16", "f32"), past, 9, None)
    traffic = 2 * (16 * 8 + 8 * 32) + 4 * 16 * 32
    assert data.traffic == traffic
    assert data.sets == min(9, -(-past // traffic))
    arrays = data.arrays(data.sets - 1, [(16, 8), (8, 32), (16, 32)])
    assert [x.shape for x in arrays] == [(16, 8), (8, 32), (16, 32)]
    for matrix, array in zip((data.a, data.b, data.c), arrays, strict=True):
        assert matrix.stride % GAP == 0
        assert matrix.stride - matrix.size >= GAP
        assert array.pointer == matrix.pointer + (data.sets - 1) * matrix.stride
    data.free()


def test_long_launches_are_fewer(driver: HostDriver) -> None:
    def launches(n: int) -> int:
        matrix = operands.Matrix(0, n * n, "f16")
        return Operands(Product(n, n, n, "f16", "f16"), 1, matrix, matrix, matrix, 0, None).launches

    assert [launches(n) for n in (128, 4096, 8192, 16384)] == [8, 8, 5, 2]
