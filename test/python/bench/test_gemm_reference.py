"""The reference of GEMMs: exact sums, every memory order, and the tolerance of an output."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from host_driver import HostDriver

from bench.gemm import operands
from bench.gemm.operands import GemmOperands
from bench.gemm.references import GemmReference
from bench.measure.device_memory import GAP, POISONS
from lego_mlir.runtime import dtypes

M, N, K, SETS = 5, 7, 19, 3

ORDERS = list(product(("row", "col"), repeat=3))


def offset(i: int, j: int, rows: int, columns: int, order: str) -> int:
    return i * columns + j if order == "row" else j * rows + i


def host(matrix: operands.Matrix, sets: int = SETS) -> Any:
    """Return the memory of all sets."""
    whole = (ctypes.c_uint8 * (sets * matrix.stride)).from_address(matrix.pointer)
    return np.frombuffer(whole, np.uint8).reshape(sets, matrix.stride)


def multiply(data: GemmOperands, *, skip: int = 0, source: int = 0) -> None:
    """Compute what a correct kernel does, by loops; leave out the last `skip` terms of each sum."""
    p = data.reference
    kinds = [dtypes.numpy_dtype(x.dtype) for x in (data.a, data.b, data.c)]
    for s in range(data.sets):
        source_set = (s + source) % data.sets
        a = dtypes.decode(host(data.a)[source_set, : data.a.size].view(kinds[0]), p.dtype)
        b = dtypes.decode(host(data.b)[source_set, : data.b.size].view(kinds[1]), p.dtype)
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
    host_driver = HostDriver()
    monkeypatch.setattr(operands, "driver", lambda: host_driver)
    yield host_driver
    assert not host_driver.held


def allocated(reference: GemmReference) -> GemmOperands:
    data = GemmOperands.allocate(reference, 1 << 30, SETS, None)
    data.fill_inputs(1)
    return data


@pytest.mark.parametrize(("a", "b", "c"), ORDERS)
def test_a_correct_output_passes_in_every_memory_order(
    a: Any, b: Any, c: Any, driver: HostDriver
) -> None:
    data = allocated(GemmReference(M, N, K, "f16", "f16", a, b, c))
    for byte in POISONS:
        data.poison(byte)
        multiply(data)
        verdict = data.check(byte)
        assert verdict.is_correct
        assert verdict.elements == SETS * M * N
        assert 0 < verdict.deviation < verdict.allowed
        assert 0.1 < verdict.worst < 1
    data.free()


@pytest.mark.parametrize(
    ("dtype", "out"),
    [("bf16", "bf16"), ("f16", "f32"), ("f8E4M3FN", "f16"), ("f8E5M2", "f16"), ("i8", "i32")],
)
def test_every_element_type_is_checked(dtype: str, out: str, driver: HostDriver) -> None:
    data = allocated(GemmReference(M, N, K, dtype, out))
    data.poison(POISONS[0])
    multiply(data)
    verdict = data.check(POISONS[0])
    assert verdict.is_correct
    assert (verdict.deviation == 0) == (dtype == "i8")
    host(data.c)[1, data.c.size - 1] ^= 0x40
    assert data.check(POISONS[0]).differing == 1
    data.free()


def test_wrong_outputs_are_found(driver: HostDriver) -> None:
    data = allocated(GemmReference(M, N, K, "f16", "f16"))
    data.poison(POISONS[0])
    assert data.check(POISONS[0]).differing > 0.9 * SETS * M * N  # nothing wrote it
    multiply(data, skip=1)
    assert data.check(POISONS[0]).differing > 0.9 * SETS * M * N
    multiply(data, source=1)
    assert data.check(POISONS[0]).differing > 0.9 * SETS * M * N
    multiply(data)
    assert data.check(POISONS[0]).is_correct
    host(data.c)[0, data.c.size :][0] ^= 1  # beyond the output
    assert data.check(POISONS[0]).outside == 1
    assert not data.check(POISONS[0]).is_correct
    multiply(data)
    host(data.c)[2, : data.c.size].view(np.float16)[0] = np.nan
    verdict = data.check(POISONS[0])
    assert verdict.differing == 1
    assert not verdict.is_correct
    assert np.isfinite([verdict.deviation, verdict.worst]).all()  # JSON has no NaN
    data.free()


@pytest.mark.parametrize("dtype", ["f16", "f8E4M3FN"])
@pytest.mark.parametrize("k", [1024, 4096, 8192])
def test_a_term_missing_from_every_sum_exceeds_the_allowed_deviation(dtype: str, k: int) -> None:
    assert GemmReference(64, 64, k, dtype, "f16").deviation < 0.8 / k**0.5


def test_tolerances_follow_the_type_and_k() -> None:
    def tolerance(dtype: str, out: str, k: int) -> tuple[float, float]:
        return GemmReference(8, 8, k, dtype, out).tolerance

    assert tolerance("i8", "i32", 1 << 14) == (0, 0)
    assert tolerance("f16", "f16", 1024)[0] == 2.0**-11
    assert tolerance("bf16", "bf16", 1024)[0] == 2.0**-8
    # A missing term is of the order of one, which must exceed the tolerance.
    assert tolerance("f16", "f16", 16384)[1] < 0.1
    assert tolerance("f16", "f16", 4096)[1] == 8 * tolerance("f16", "f16", 1024)[1]
    assert tolerance("f8E4M3FN", "f16", 1024)[1] > 100 * tolerance("f16", "f16", 1024)[1]


def test_integer_inputs_span_their_range_and_floats_are_normal(driver: HostDriver) -> None:
    data = GemmOperands.allocate(GemmReference(64, 64, 64, "i8", "i32"), 1, 1, None)
    data.fill_inputs(3)
    values = host(data.a, 1)[0, : data.a.size].view(np.int8)
    assert values.min() < -120
    assert values.max() > 120
    assert not np.array_equal(values, host(data.b, 1)[0, : data.b.size].view(np.int8))
    data.free()
    data = GemmOperands.allocate(GemmReference(64, 64, 64, "f16", "f16"), 1, 1, None)
    data.fill_inputs(3)
    values = host(data.a, 1)[0, : data.a.size].view(np.float16).astype(float)
    assert abs(values.mean()) < 0.1
    assert abs(values.std() - 1) < 0.1
    data.free()


@pytest.mark.parametrize("cache_bytes", [1, 10_000, 1 << 30])
def test_sets_together_exceed_the_cache(cache_bytes: int, driver: HostDriver) -> None:
    data = GemmOperands.allocate(GemmReference(16, 32, 8, "f16", "f32"), cache_bytes, 9, None)
    traffic = 2 * (16 * 8 + 8 * 32) + 4 * 16 * 32
    assert data.traffic == traffic
    assert data.sets == min(9, -(-cache_bytes // traffic))
    arrays = data.arrays(data.sets - 1, [(16, 8), (8, 32), (16, 32)])
    assert [x.shape for x in arrays] == [(16, 8), (8, 32), (16, 32)]
    for matrix, array in zip((data.a, data.b, data.c), arrays, strict=True):
        assert matrix.stride % GAP == 0
        assert matrix.stride - matrix.size >= GAP
        assert array.pointer == matrix.pointer + (data.sets - 1) * matrix.stride
    data.free()


def test_graphs_of_long_kernels_have_fewer_launches(driver: HostDriver) -> None:
    def launches(n: int) -> int:
        matrix = operands.Matrix(0, n * n, "f16")
        reference = GemmReference(n, n, n, "f16", "f16")
        return GemmOperands(reference, 1, matrix, matrix, matrix, 0, None).min_launches

    assert [launches(n) for n in (128, 4096, 8192, 16384)] == [8, 8, 5, 2]
