"""Triton: matrix products, by mma.sync and by wgmma, with and without TMA."""

import ml_dtypes
import numpy as np
import pytest
from foreign_kernels import Tile, run_triton

triton = pytest.importorskip("triton")
tl = triton.language

rng = np.random.default_rng(3)


@triton.jit
def matmul_kernel(
    a, b, c, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    ACC: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = pid // (GROUP * columns)
    first = group * GROUP
    size = min(rows - first, GROUP)
    pm, pn = first + pid % (GROUP * columns) % size, pid % (GROUP * columns) // size
    i, j, k = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros([BM, BN], ACC)
    for start in range(0, K, BK):
        inside = start + k < K
        x = tl.load(a + (i % M)[:, None] * K + (start + k)[None, :], inside[None, :], other=0.0)
        y = tl.load(b + (start + k)[:, None] * N + (j % N)[None, :], inside[:, None], other=0.0)
        total = tl.dot(x, y, total, input_precision=PRECISION, out_dtype=ACC)
    mask = (i < M)[:, None] & (j < N)[None, :]
    tl.store(c + i[:, None] * N + j[None, :], total.to(c.dtype.element_ty), mask)


def matmul(dtype, out, tolerance, size=(128, 128, 96), tile=(64, 64, 32), **more):
    m, n, k = size
    if np.dtype(dtype).kind == "i":
        a, b = (rng.integers(-20, 20, s).astype(dtype) for s in ((m, k), (k, n)))
    else:
        a, b = (rng.standard_normal(s).astype(dtype) for s in ((m, k), (k, n)))
    c = np.zeros((m, n), out)
    precision = more.pop("precision", "ieee")
    acc = tl.int32 if np.dtype(dtype).kind == "i" else tl.float32
    if np.dtype(dtype) == np.float64:
        acc = tl.float64
    bm, bn, bk = tile
    grid = (-(-m // bm) * -(-n // bn),)
    ptx = run_triton(
        matmul_kernel, grid, a, b, c, m, n, k,
        BM=bm, BN=bn, BK=bk, GROUP=2, ACC=acc, PRECISION=precision, **more,
    )  # fmt: skip
    want = a.astype("f8") @ b.astype("f8")
    error = np.abs(c.astype("f8") - want).max() / np.abs(want).max()
    assert error <= tolerance, error
    return ptx


@pytest.mark.parametrize("arch", [80, 89, 90])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype, arch):
    ptx = matmul(dtype, "float32", 1e-5, arch=arch)
    assert ("wgmma.mma_async" if arch == 90 else "mma.sync") in ptx


@pytest.mark.parametrize("arch", [80, 90])
def test_tf32(arch):
    matmul("float32", "float32", 2e-3, arch=arch, precision="tf32")


def test_tf32x3():
    matmul("float32", "float32", 1e-5, arch=80, precision="tf32x3", size=(64, 64, 64))


def test_f32_without_tensor_cores():
    matmul("float32", "float32", 1e-5, precision="ieee", size=(64, 64, 32), tile=(32, 32, 16))


def test_f64():
    matmul("float64", "float64", 1e-12, size=(64, 64, 32), tile=(32, 32, 16), arch=80)


@pytest.mark.parametrize("arch", [80, 90])
def test_int8(arch):
    matmul("int8", "int32", 0, arch=arch)


@pytest.mark.parametrize("arch", [89, 90])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_f8(dtype, arch):
    matmul(dtype, "float32", 1e-2, arch=arch)


@pytest.mark.parametrize("order", ["late", "early", "random"])
def test_a_pipelined_loop_in_every_order(order):
    matmul("float16", "float16", 1e-3, size=(64, 64, 256), order=order, options={"num_stages": 4})


@pytest.mark.parametrize("order", ["late", "early", "random"])
def test_cp_async_in_every_order(order):
    ptx = matmul(
        "float16", "float32", 1e-5, size=(64, 64, 128), order=order, arch=80,
        options={"num_stages": 3},
    )  # fmt: skip
    assert "cp.async" in ptx


def test_uneven_sizes():
    matmul("float16", "float32", 1e-5, size=(100, 72, 80), tile=(32, 32, 16))


def test_eight_warps():
    matmul("float16", "float32", 1e-5, tile=(128, 128, 32), options={"num_warps": 8})


@triton.jit
def persistent_kernel(a, b, c, M, N, K, CTAS, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    columns = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * columns
    for tile in tl.range(tl.program_id(0), tiles, CTAS):
        i, j = tile // columns * BM + tl.arange(0, BM), tile % columns * BN + tl.arange(0, BN)
        total = tl.zeros([BM, BN], tl.float32)
        for start in range(0, K, BK):
            k = start + tl.arange(0, BK)
            x = tl.load(a + i[:, None] * K + k[None, :])
            total = tl.dot(x, tl.load(b + k[:, None] * N + j[None, :]), total)
        total = tl.where(total > 0, total, 0.01 * total)
        tl.store(c + i[:, None] * N + j[None, :], total.to(tl.float16))


def test_a_persistent_kernel_with_an_epilogue():
    a, b = rng.standard_normal((2, 128, 128)).astype("f2")
    c = np.zeros((128, 128), "f2")
    run_triton(persistent_kernel, (3,), a, b, c, 128, 128, 128, 3, BM=64, BN=32, BK=32)
    want = a.astype("f4") @ b.astype("f4")
    np.testing.assert_allclose(c, np.where(want > 0, want, 0.01 * want), rtol=1e-2, atol=1e-2)


@triton.jit
def grouped_kernel(
    a, b, c, starts, sizes, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    group = tl.program_id(1)
    first, size = tl.load(starts + group), tl.load(sizes + group)
    j, k = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    for m in range(0, size, BM):
        i = m + tl.arange(0, BM)
        inside = (i < size)[:, None]
        total = tl.zeros([BM, BN], tl.float32)
        for start in range(0, K, BK):
            x = tl.load(a + (first + i)[:, None] * K + (start + k)[None, :], inside, other=0.0)
            y = tl.load(b + group * K * N + (start + k)[:, None] * N + j[None, :])
            total = tl.dot(x, y, total)
        tl.store(c + (first + i)[:, None] * N + j[None, :], total, inside)


def test_a_grouped_matmul():
    sizes, n, k = np.array([40, 0, 70], "i4"), 64, 64
    starts = np.cumsum(sizes, dtype="i4") - sizes
    a = rng.standard_normal((110, k)).astype("f2")
    b, c = rng.standard_normal((3, k, n)).astype("f2"), np.zeros((110, n), "f4")
    run_triton(grouped_kernel, (2, 3), a, b, c, starts, sizes, n, k, BM=32, BN=32, BK=32)
    for g, (first, size) in enumerate(zip(starts, sizes, strict=True)):
        rows = slice(first, first + size)
        np.testing.assert_allclose(c[rows], a[rows].astype("f4") @ b[g].astype("f4"), atol=1e-3)


@triton.jit
def split_k_kernel(a, b, c, N, K, SPAN, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros([BM, BN], tl.float32)
    first = tl.program_id(2) * SPAN
    for start in range(first, first + SPAN, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(a + i[:, None] * K + k[None, :])
        total = tl.dot(x, tl.load(b + k[:, None] * N + j[None, :]), total)
    tl.atomic_add(c + i[:, None] * N + j[None, :], total)


def test_split_k_with_atomics():
    a, b = rng.standard_normal((64, 256)).astype("f2"), rng.standard_normal((256, 64)).astype("f2")
    c = np.zeros((64, 64), "f4")
    run_triton(split_k_kernel, (2, 2, 4), a, b, c, 64, 256, 64, BM=32, BN=32, BK=32)
    np.testing.assert_allclose(c, a.astype("f4") @ b.astype("f4"), atol=1e-3)


@triton.jit
def batched_kernel(a, b, c, B: tl.constexpr, M: tl.constexpr):
    at = (tl.arange(0, B)[:, None, None] * M + tl.arange(0, M)[None, :, None]) * M
    at += tl.arange(0, M)[None, None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


def test_a_dot_of_three_dimensions():
    a, b = rng.standard_normal((2, 4, 16, 16)).astype("f2")
    c = np.zeros((4, 16, 16), "f4")
    run_triton(batched_kernel, (1,), a, b, c, B=4, M=16, arch=80)
    np.testing.assert_allclose(c, a.astype("f4") @ b.astype("f4"), atol=1e-3)


@triton.jit
def tma_kernel(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros([BM, BN], tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([i, k]), b.load([k, j]), total)
    c.store([i, j], total.to(tl.float16))


@pytest.mark.parametrize("order", ["late", "early", "random"])
def test_tensor_descriptors_of_the_host(order):
    a, b = rng.standard_normal((128, 128)).astype("f2"), rng.standard_normal((128, 64)).astype("f2")
    c = np.zeros((128, 64), "f2")
    ptx = run_triton(
        tma_kernel, (2, 1), Tile(a, (64, 64)), Tile(b, (64, 64)), Tile(c, (64, 64)), 128,
        BM=64, BN=64, BK=64, order=order,
    )  # fmt: skip
    assert "cp.async.bulk.tensor" in ptx
    np.testing.assert_allclose(c, a.astype("f4") @ b.astype("f4"), rtol=1e-2, atol=2e-2)


@triton.jit
def device_descriptor_kernel(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BM, BN])
    target = tl.make_tensor_descriptor(out, [N, M], [M, 1], [BN, BM])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    target.store([j, i], source.load([i, j]).T)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "u1", ml_dtypes.bfloat16])
def test_tensor_descriptors_of_the_device(dtype):
    x = rng.integers(0, 99, (128, 64)).astype(dtype)
    out = np.zeros((64, 128), dtype)
    run_triton(device_descriptor_kernel, (4, 2), x, out, 128, 64, BM=32, BN=32)
    assert (out == x.T).all()


@triton.jit
def scaled_kernel(a, b, c, scale, M: tl.constexpr, K: tl.constexpr):
    i, k = tl.arange(0, M), tl.arange(0, K)
    x = tl.load(a + i[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * M + i[None, :]).to(tl.float16) * tl.load(scale + i)[None, :]
    tl.store(c + i[:, None] * M + i[None, :], tl.dot(x, y.to(tl.float16)))


def test_a_dequantized_operand():
    a, b = rng.standard_normal((64, 64)).astype("f2"), rng.integers(-8, 8, (64, 64)).astype("i1")
    scale, c = rng.random(64).astype("f2"), np.zeros((64, 64), "f4")
    run_triton(scaled_kernel, (1,), a, b, c, scale, M=64, K=64)
    weight = (b.astype("f2") * scale).astype("f4")
    np.testing.assert_allclose(c, a.astype("f4") @ weight, atol=1e-2)


@triton.jit
def mixed_kernel(a, b, c, M: tl.constexpr, K: tl.constexpr):
    i, k = tl.arange(0, M), tl.arange(0, K)
    x = tl.load(a + i[:, None] * K + k[None, :])
    y = tl.load(b + i[None, :] * K + k[:, None])
    tl.store(c + i[:, None] * M + i[None, :], tl.dot(x, y))


@pytest.mark.parametrize("arch", [80, 90])
def test_a_transposed_operand(arch):
    a, b = rng.standard_normal((2, 64, 32)).astype(ml_dtypes.bfloat16)
    c = np.zeros((64, 64), "f4")
    run_triton(mixed_kernel, (1,), a, b, c, M=64, K=32, arch=arch)
    np.testing.assert_allclose(c, a.astype("f4") @ b.astype("f4").T, atol=1e-3)
