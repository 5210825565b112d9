"""Triton: rows, reductions, scans, sorts."""

import numpy as np
import pytest
from foreign_kernels import run_triton

triton = pytest.importorskip("triton")
tl = triton.language

rng = np.random.default_rng(2)


@triton.jit
def softmax_kernel(x, out, stride, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, at < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + at, e / tl.sum(e, 0), at < n)


@pytest.mark.parametrize(("n", "warps"), [(100, 1), (256, 4), (777, 8)])
def test_softmax(n, warps):
    x, out = rng.standard_normal((5, n)).astype("f4"), np.zeros((5, n), "f4")
    block = 1 << (n - 1).bit_length()
    run_triton(softmax_kernel, (5,), x, out, n, n, BLOCK=block, options={"num_warps": warps})
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-4, atol=1e-7)


@triton.jit
def layernorm_kernel(x, weight, bias, out, mean, rstd, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * n + at, at < n, other=0.0)
    m = tl.sum(total, 0) / n
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.where(at < n, tl.load(x + row * n + at, at < n, other=0.0) - m, 0.0)
        squares += v * v
    r = 1 / tl.sqrt(tl.sum(squares, 0) / n + eps)
    tl.store(mean + row, m)
    tl.store(rstd + row, r)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < n
        w, b = tl.load(weight + at, mask), tl.load(bias + at, mask)
        v = (tl.load(x + row * n + at, mask, other=0.0) - m) * r
        tl.store(out + row * n + at, v * w + b, mask)


def test_layernorm_forward():
    rows, n = 4, 600
    x, w, b = rng.standard_normal((rows, n)).astype("f4"), *rng.random((2, n)).astype("f4")
    out, mean, rstd = np.zeros_like(x), np.zeros(rows, "f4"), np.zeros(rows, "f4")
    run_triton(layernorm_kernel, (rows,), x, w, b, out, mean, rstd, n, 1e-5, BLOCK=256)
    m, r = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    np.testing.assert_allclose(mean, m, atol=1e-5)
    np.testing.assert_allclose(rstd, r, rtol=1e-4)
    np.testing.assert_allclose(out, (x - m[:, None]) * r[:, None] * w + b, atol=1e-4)


@triton.jit
def layernorm_backward_kernel(
    dx, dy, dw, x, w, mean, rstd, lock, n, GROUP: tl.constexpr, BLOCK: tl.constexpr
):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    mask = at < n
    v, g = tl.load(x + row * n + at, mask, other=0.0), tl.load(dy + row * n + at, mask, other=0.0)
    weight, m, r = tl.load(w + at, mask, other=0.0), tl.load(mean + row), tl.load(rstd + row)
    normal = tl.where(mask, (v - m) * r, 0.0)
    wg = tl.where(mask, weight * g, 0.0)
    c1, c2 = tl.sum(normal * wg, 0) / n, tl.sum(wg, 0) / n
    tl.store(dx + row * n + at, (wg - (normal * c1 + c2)) * r, mask)
    group = row % GROUP
    while tl.atomic_cas(lock + group, 0, 1) == 1:
        pass
    partial = tl.load(dw + group * n + at, mask, other=0.0) + g * normal
    tl.store(dw + group * n + at, partial, mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock + group, 0)


def test_layernorm_backward_with_a_lock():
    rows, n = 6, 200
    x, dy = rng.standard_normal((2, rows, n)).astype("f4")
    w = rng.random(n).astype("f4")
    mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    dx, dw, lock = np.zeros_like(x), np.zeros((2, n), "f4"), np.zeros(2, "i4")
    run_triton(
        layernorm_backward_kernel, (rows,), dx, dy, dw, x, w, mean, rstd, lock, n,
        GROUP=2, BLOCK=256,
    )  # fmt: skip
    normal, wg = (x - mean[:, None]) * rstd[:, None], dy * w
    c1, c2 = (normal * wg).mean(1, keepdims=True), wg.mean(1, keepdims=True)
    np.testing.assert_allclose(dx, (wg - normal * c1 - c2) * rstd[:, None], atol=1e-4)
    np.testing.assert_allclose(dw.sum(0), (dy * normal).sum(0), rtol=1e-3, atol=1e-4)


@triton.jit
def rmsnorm_kernel(x, w, out, n, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, at < n, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v) / n + eps)
    tl.store(out + row * n + at, (v * scale * tl.load(w + at, at < n)).to(tl.float16), at < n)


def test_rmsnorm_f16():
    x, w = rng.standard_normal((3, 500)).astype("f2"), rng.random(500).astype("f4")
    out = np.zeros_like(x)
    run_triton(rmsnorm_kernel, (3,), x, w, out, 500, 1e-6, BLOCK=512)
    f = x.astype("f4")
    want = f / np.sqrt((f * f).mean(1, keepdims=True) + 1e-6) * w
    np.testing.assert_allclose(out, want, rtol=2e-3, atol=1e-3)


@triton.jit
def reduce_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + j[None, :])
    tl.store(out + i, tl.sum(v, 1))
    tl.store(out + M + i, tl.max(v, 1))
    tl.store(out + 2 * M + i, tl.min(v, 1))
    tl.store(out + 3 * M + i, tl.argmax(v, 1))
    tl.store(out + 4 * M + i, tl.argmin(v, 1))
    tl.store(out + 5 * M + i, tl.xor_sum(v, 1))
    tl.store(out + 6 * M, tl.sum(tl.max(v, 0)))


@pytest.mark.parametrize("warps", [1, 4])
def test_reductions(warps):
    x, out = rng.integers(-1000, 1000, (64, 32)).astype("i4"), np.zeros((7, 64), "i4")
    run_triton(reduce_kernel, (1,), x, out, M=64, N=32, options={"num_warps": warps})
    want = [x.sum(1), x.max(1), x.min(1), x.argmax(1), x.argmin(1), np.bitwise_xor.reduce(x, 1)]
    assert (out[:6] == want).all()
    assert out[6, 0] == x.max(0).sum()


@triton.jit
def scan_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + at)
    tl.store(out + at, tl.cumsum(v, 1))
    tl.store(out + M * N + at, tl.cumsum(v, 0))
    tl.store(out + 2 * M * N + at, tl.cumsum(v, 1, reverse=True))


def test_scans():
    x, out = rng.integers(-9, 9, (32, 64)).astype("i4"), np.zeros((3, 32, 64), "i4")
    run_triton(scan_kernel, (1,), x, out, M=32, N=64)
    assert (out == [x.cumsum(1), x.cumsum(0), x[:, ::-1].cumsum(1)[:, ::-1]]).all()


@triton.jit
def affine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def recurrence_kernel(a, b, out, N: tl.constexpr):
    at = tl.arange(0, N)
    _, y = tl.associative_scan((tl.load(a + at), tl.load(b + at)), 0, affine)
    tl.store(out + at, y)


def test_a_linear_recurrence():
    a, b = rng.random((2, 256)).astype("f4")
    out = np.zeros(256, "f4")
    run_triton(recurrence_kernel, (1,), a, b, out, N=256)
    y, want = 0.0, []
    for p, q in zip(a.tolist(), b.tolist(), strict=True):
        y = p * y + q
        want.append(y)
    np.testing.assert_allclose(out, want, rtol=1e-4)


@triton.jit
def welford(mean1, m1, n1, mean2, m2, n2):
    n = n1 + n2
    delta = mean2 - mean1
    share = tl.where(n == 0, 0.0, n2 / n)
    return mean1 + delta * share, m1 + m2 + delta * delta * n1 * share, n


@triton.jit
def welford_kernel(x, out, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    mean, m, n = tl.reduce((v, tl.zeros_like(v), tl.full([N], 1.0, tl.float32)), 0, welford)
    tl.store(out, mean)
    tl.store(out + 1, m / n)


def test_welford():
    x, out = rng.standard_normal(512).astype("f4"), np.zeros(2, "f4")
    run_triton(welford_kernel, (1,), x, out, N=512)
    np.testing.assert_allclose(out, [x.mean(), x.var()], rtol=1e-4, atol=1e-5)


@triton.jit
def sort_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + at)
    tl.store(out + at, tl.sort(v, 1))
    tl.store(out + M * N + at, tl.sort(v, 1, descending=True))


def test_sort():
    x, out = rng.integers(-99, 99, (8, 64)).astype("i4"), np.zeros((2, 8, 64), "i4")
    run_triton(sort_kernel, (1,), x, out, M=8, N=64)
    assert (out == [np.sort(x, 1), np.sort(x, 1)[:, ::-1]]).all()


@triton.jit
def topk_kernel(x, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row = tl.arange(0, M)[:, None]
    best = tl.topk(tl.load(x + row * N + tl.arange(0, N)[None, :]), K)
    tl.store(out + row * K + tl.arange(0, K)[None, :], best)


def test_topk():
    x, out = rng.standard_normal((4, 64)).astype("f4"), np.zeros((4, 8), "f4")
    run_triton(topk_kernel, (1,), x, out, M=4, N=64, K=8)
    assert (out == np.sort(x, 1)[:, ::-1][:, :8]).all()


@triton.jit
def histogram_kernel(x, out, N: tl.constexpr, BINS: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * N + tl.arange(0, N))
    tl.atomic_add(out + tl.arange(0, BINS), tl.histogram(v, BINS))


def test_histogram():
    x, out = rng.integers(0, 32, 2048).astype("i4"), np.zeros(32, "i4")
    run_triton(histogram_kernel, (4,), x, out, N=512, BINS=32)
    assert (out == np.bincount(x, minlength=32)).all()


@triton.jit
def entropy_kernel(logits, labels, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(logits + row * n + at, at < n, other=-float("inf"))
    most = tl.max(v, 0)
    total = tl.log(tl.sum(tl.exp(v - most), 0)) + most
    tl.store(out + row, total - tl.load(logits + row * n + tl.load(labels + row)))


def test_cross_entropy():
    x, labels = rng.standard_normal((6, 300)).astype("f4"), rng.integers(0, 300, 6).astype("i8")
    out = np.zeros(6, "f4")
    run_triton(entropy_kernel, (6,), x, labels, out, 300, BLOCK=512)
    want = np.log(np.exp(x).sum(1)) - x[np.arange(6), labels]
    np.testing.assert_allclose(out, want, rtol=1e-4)


@triton.jit
def any_kernel(x, out, N: tl.constexpr):
    row = tl.program_id(0)
    v = tl.load(x + row * N + tl.arange(0, N)) > 0
    tl.store(out + row, tl.reduce_or(v.to(tl.int32), 0))


def test_any_by_a_reduction_of_bits():
    x, out = np.zeros((4, 128), "i4"), np.full(4, 7, "i4")
    x[1, 77] = x[3, 0] = 1
    run_triton(any_kernel, (4,), x, out, N=128)
    assert out.tolist() == [0, 1, 0, 1]
