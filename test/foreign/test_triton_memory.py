"""Triton: what moves data: transposes, gathers, atomics, convolutions, attention."""

import numpy as np
import pytest
from foreign_kernels import run_triton

triton = pytest.importorskip("triton")
tl = triton.language

rng = np.random.default_rng(4)


@triton.jit
def transpose_kernel(x, out, M, N, B: tl.constexpr):
    i, j = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    mask = (i < M)[:, None] & (j < N)[None, :]
    v = tl.load(x + i[:, None] * N + j[None, :], mask)
    tl.store(out + j[:, None] * M + i[None, :], v.T, mask.T)


@pytest.mark.parametrize("dtype", ["f2", "f4", "i1"])
def test_transpose(dtype):
    x = rng.integers(-50, 50, (100, 70)).astype(dtype)
    out = np.zeros((70, 100), dtype)
    run_triton(transpose_kernel, (4, 3), x, out, 100, 70, B=32)
    assert (out == x.T).all()


@triton.jit
def embedding_kernel(table, tokens, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    token = tl.load(tokens + row)
    tl.store(out + row * n + at, tl.load(table + token * n + at, at < n), at < n)


def test_embedding():
    table, tokens = rng.standard_normal((50, 48)).astype("f2"), rng.integers(0, 50, 9).astype("i8")
    out = np.zeros((9, 48), "f2")
    run_triton(embedding_kernel, (9,), table, tokens, out, 48, BLOCK=64)
    assert (out == table[tokens]).all()


@triton.jit
def gather_kernel(x, index, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.gather(tl.load(x + at), tl.load(index + at), 0))


def test_gather_in_registers():
    x, index = rng.standard_normal(256).astype("f4"), rng.integers(0, 256, 256).astype("i4")
    out = np.zeros(256, "f4")
    run_triton(gather_kernel, (1,), x, index, out, N=256)
    assert (out == x[index]).all()


@triton.jit
def scatter_kernel(x, index, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(index + at), tl.load(x + at))


@pytest.mark.parametrize("dtype", ["i4", "f4", "f8", "f2"])
def test_scatter_add(dtype):
    x, index = rng.integers(-9, 9, 512).astype(dtype), rng.integers(0, 20, 512).astype("i4")
    out, want = np.zeros(20, dtype), np.zeros(20, dtype)
    run_triton(scatter_kernel, (2,), x, index, out, BLOCK=256)
    np.add.at(want, index, x)
    assert (out == want).all()


@triton.jit
def extremes_kernel(x, out, BLOCK: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_max(out, tl.max(v, 0))
    tl.atomic_min(out + 1, tl.min(v, 0))
    tl.atomic_or(out + 2, tl.reduce_or(v, 0), sem="relaxed")
    tl.atomic_xor(out + 3, tl.xor_sum(v, 0), sem="acquire", scope="sys")
    tl.atomic_and(out + 4, 1 << tl.program_id(0), sem="release", scope="cta")


def test_atomic_extremes():
    x, out = rng.integers(-999, 999, 512).astype("i4"), np.array([-1000, 1000, 0, 0, -1], "i4")
    run_triton(extremes_kernel, (4,), x, out, BLOCK=128)
    bits = [np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x)]
    assert out.tolist() == [x.max(), x.min(), *bits, 0]


@triton.jit
def counter_kernel(counter, order):
    ticket = tl.atomic_add(counter, 1, sem="acq_rel", scope="gpu")
    tl.store(order + ticket, tl.program_id(0))


def test_tickets():
    counter, order = np.zeros(1, "i4"), np.full(16, -1, "i4")
    run_triton(counter_kernel, (16,), counter, order)
    assert counter[0] == 16
    assert sorted(order) == list(range(16))


@triton.jit
def last_block_kernel(x, partial, count, out, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):
    block = tl.program_id(0)
    total = tl.sum(tl.load(x + block * BLOCK + tl.arange(0, BLOCK)), 0)
    tl.store(partial + block, total)
    if tl.atomic_add(count, 1, sem="acq_rel") == BLOCKS - 1:
        tl.store(out, tl.sum(tl.load(partial + tl.arange(0, BLOCKS)), 0))


def test_the_last_block_adds():
    x = rng.integers(-99, 99, 1024).astype("i4")
    partial, count, out = np.zeros(8, "i4"), np.zeros(1, "i4"), np.zeros(1, "i4")
    run_triton(last_block_kernel, (8,), x, partial, count, out, BLOCK=128, BLOCKS=8)
    assert out[0] == x.sum()


@triton.jit
def conv1d_kernel(x, w, out, n, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for tap in tl.static_range(TAPS):
        near = at + tap - TAPS // 2
        total += tl.load(x + near, (near >= 0) & (near < n), other=0.0) * tl.load(w + tap)
    tl.store(out + at, total, at < n)


def test_conv1d():
    x, w = rng.standard_normal(300).astype("f4"), rng.standard_normal(5).astype("f4")
    out = np.zeros(300, "f4")
    run_triton(conv1d_kernel, (3,), x, w, out, 300, TAPS=5, BLOCK=128)
    np.testing.assert_allclose(out, np.convolve(x, w[::-1], "same"), atol=1e-4)


@triton.jit
def conv2d_kernel(
    x, w, out, H, W, C: tl.constexpr, F: tl.constexpr, R: tl.constexpr, B: tl.constexpr
):
    pixel, f, c = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, F), tl.arange(0, C)
    wide, high = W - R + 1, H - R + 1
    py, px = pixel // wide, pixel % wide
    inside = (pixel < high * wide)[:, None]
    total = tl.zeros([B, F], tl.float32)
    for r in range(R):
        for s in range(R):
            near = ((py + r) * W + px + s)[:, None] * C + c[None, :]
            tap = tl.load(w + ((r * R + s) * C + c)[:, None] * F + f[None, :])
            total = tl.dot(tl.load(x + near, inside, other=0.0), tap, total)
    tl.store(out + pixel[:, None] * F + f[None, :], total, inside)


def test_conv2d_as_a_matmul():
    h, w, c, f, r = 10, 12, 16, 32, 3
    x, k = rng.standard_normal((h, w, c)).astype("f2"), rng.standard_normal((r, r, c, f))
    k = k.astype("f2")
    out = np.zeros((h - r + 1, w - r + 1, f), "f4")
    run_triton(conv2d_kernel, (2,), x, k, out, h, w, C=c, F=f, R=r, B=64, arch=80)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype("f8"), (r, r), (0, 1))
    want = np.einsum("yxcrs,rscf->yxf", windows, k.astype("f8"))
    np.testing.assert_allclose(out, want, atol=1e-2)


@triton.jit
def attention_kernel(
    q, k, v, out, scale, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    CAUSAL: tl.constexpr,
):  # fmt: skip
    base = tl.program_id(1) * n * D
    i, j, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    x = tl.load(q + base + i[:, None] * D + d[None, :])
    most = tl.full([BM], -float("inf"), tl.float32)
    total, result = tl.zeros([BM], tl.float32), tl.zeros([BM, D], tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM if CAUSAL else n, BN):
        y = tl.load(k + base + (start + j)[None, :] * D + d[:, None])
        s = tl.dot(x, y) * scale
        if CAUSAL:
            s = tl.where(i[:, None] >= (start + j)[None, :], s, -1.0e30)
        new = tl.maximum(most, tl.max(s, 1))
        p, old = tl.exp2(s - new[:, None]), tl.exp2(most - new)
        total = total * old + tl.sum(p, 1)
        z = tl.load(v + base + (start + j)[:, None] * D + d[None, :])
        result = tl.dot(p.to(tl.float16), z, result * old[:, None])
        most = new
    tl.store(out + base + i[:, None] * D + d[None, :], (result / total[:, None]).to(tl.float16))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("arch", "order"), [(80, "late"), (90, "late"), (90, "early")])
def test_flash_attention(causal, arch, order):
    heads, n, d = 2, 128, 32
    q, k, v = rng.standard_normal((3, heads, n, d)).astype("f2")
    out = np.zeros_like(q)
    run_triton(
        attention_kernel, (2, heads), q, k, v, out, 1.4426950408889634 / d**0.5, n,
        D=d, BM=64, BN=64, CAUSAL=causal, arch=arch, order=order,
    )  # fmt: skip
    s = np.einsum("hid,hjd->hij", q.astype("f8"), k.astype("f8")) / d**0.5
    s = np.where(np.tri(n, dtype=bool) | (not causal), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    want = np.einsum("hij,hjd->hid", p / p.sum(-1, keepdims=True), v.astype("f8"))
    np.testing.assert_allclose(out, want, atol=4e-3)


@triton.jit
def join_kernel(x, y, out, N: tl.constexpr):
    at = tl.arange(0, N)
    both = tl.interleave(tl.load(x + at), tl.load(y + at))
    tl.store(out + tl.arange(0, 2 * N), both)
    left, right = tl.split(tl.reshape(both, [N, 2]))
    tl.store(out + 2 * N + at, left * right)
    tl.store(out + 3 * N + at, tl.flip(left))


def test_join_split_flip():
    x, y = rng.integers(-99, 99, (2, 128)).astype("i4")
    out = np.zeros(512, "i4")
    run_triton(join_kernel, (1,), x, y, out, N=128)
    assert (out == np.concatenate([np.stack([x, y], 1).reshape(-1), x * y, x[::-1]])).all()


@triton.jit
def rope_kernel(x, cos, sin, out, D: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, D // 2)
    a, b = tl.load(x + row * D + at), tl.load(x + row * D + D // 2 + at)
    c, s = tl.load(cos + row * (D // 2) + at), tl.load(sin + row * (D // 2) + at)
    tl.store(out + row * D + at, a * c - b * s)
    tl.store(out + row * D + D // 2 + at, b * c + a * s)


def test_rotary_embedding():
    x, angle = rng.standard_normal((5, 64)).astype("f4"), rng.random((5, 32)).astype("f4")
    out = np.zeros_like(x)
    run_triton(rope_kernel, (5,), x, np.cos(angle), np.sin(angle), out, D=64)
    a, b, c, s = x[:, :32], x[:, 32:], np.cos(angle), np.sin(angle)
    np.testing.assert_allclose(out, np.concatenate([a * c - b * s, b * c + a * s], 1), atol=1e-5)


@triton.jit
def adam_kernel(p, g, m, v, lr, b1, b2, eps, step, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    grad = tl.load(g + at, mask)
    first = b1 * tl.load(m + at, mask) + (1 - b1) * grad
    second = b2 * tl.load(v + at, mask) + (1 - b2) * grad * grad
    tl.store(m + at, first, mask)
    tl.store(v + at, second, mask)
    unbiased = (first / (1 - b1)) / (tl.sqrt(second / (1 - b2)) + eps)
    tl.store(p + at, tl.load(p + at, mask) - lr * unbiased * step, mask)


def test_adam():
    p, g, m = rng.standard_normal((3, 500)).astype("f4")
    v = rng.random(500).astype("f4")
    first, second = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    want = p - 1e-2 * (first / 0.1) / (np.sqrt(second / 0.01) + 1e-8)
    run_triton(adam_kernel, (2,), p, g, m, v, 1e-2, 0.9, 0.99, 1e-8, 1, 500, BLOCK=256)
    np.testing.assert_allclose(p, want, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(v, second, rtol=1e-5)


@triton.jit
def spin_kernel(flags, data, out):
    """Block 0 waits until block 1 has written."""
    if tl.program_id(0) == 1:
        tl.store(data, 42)
        tl.atomic_xchg(flags, 1, sem="release")
    else:
        while tl.atomic_cas(flags, 1, 1, sem="acquire") != 1:
            pass
        tl.store(out, tl.load(data, volatile=True))


def test_a_block_waits_for_another():
    flags, data, out = (np.zeros(1, "i4") for _ in range(3))
    run_triton(spin_kernel, (2,), flags, data, out)
    assert out[0] == 42
