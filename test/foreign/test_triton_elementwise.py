"""Triton: one element at a time."""

import ml_dtypes
import numpy as np
import pytest
from foreign_kernels import run_triton

triton = pytest.importorskip("triton")
tl = triton.language

rng = np.random.default_rng(1)


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)


@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "i4", "i8", "i1"])
def test_add(dtype):
    x, y = (rng.integers(-50, 50, 1000).astype(dtype) for _ in range(2))
    out = np.zeros(1000, dtype)
    run_triton(add_kernel, (4,), x, y, out, 1000, BLOCK=256)
    assert (out == x + y).all()


def test_add_bf16():
    x, y = (rng.standard_normal(512).astype(ml_dtypes.bfloat16) for _ in range(2))
    out = np.zeros(512, ml_dtypes.bfloat16)
    run_triton(add_kernel, (2,), x, y, out, 512, BLOCK=256)
    assert (out == x + y).all()


@triton.jit
def gelu_kernel(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(out + at, 0.5 * v * (1 + tl.math.erf(v * 0.7071067811865476)))


def test_gelu():
    from math import erf

    x, out = rng.standard_normal(512).astype("f4"), np.zeros(512, "f4")
    run_triton(gelu_kernel, (2,), x, out, BLOCK=256)
    want = [0.5 * v * (1 + erf(v / 2**0.5)) for v in x.tolist()]
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-6)


@triton.jit
def functions_kernel(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(out + at, tl.exp(v))
    tl.store(out + BLOCK + at, tl.log(v))
    tl.store(out + 2 * BLOCK + at, tl.sqrt(v) + tl.rsqrt(v))
    tl.store(out + 3 * BLOCK + at, tl.sin(v) + tl.cos(v))
    tl.store(out + 4 * BLOCK + at, tl.floor(v) + tl.ceil(v))
    tl.store(out + 5 * BLOCK + at, tl.sigmoid(v) + tl.exp2(v) + tl.log2(v))
    tl.store(out + 6 * BLOCK + at, tl.fma(v, v, v) + tl.abs(-v))
    tl.store(out + 7 * BLOCK + at, tl.math.div_rn(v, v + 1))


def test_functions():
    v = (rng.random(128) * 3 + 0.5).astype("f4")
    out = np.zeros((8, 128), "f4")
    run_triton(functions_kernel, (1,), v, out, BLOCK=128)
    want = [
        np.exp(v), np.log(v), np.sqrt(v) + 1 / np.sqrt(v), np.sin(v) + np.cos(v),
        np.floor(v) + np.ceil(v), 1 / (1 + np.exp(-v)) + np.exp2(v) + np.log2(v),
        v * v + v + v, v / (v + 1),
    ]  # fmt: skip
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-5)


@triton.jit
def integer_kernel(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, (a // b) ^ (a % b))
    tl.store(out + BLOCK + at, (a << 3) | (b >> 2) & ~a)
    tl.store(out + 2 * BLOCK + at, tl.umulhi(a.to(tl.uint32), b.to(tl.uint32)).to(tl.int32))
    tl.store(out + 3 * BLOCK + at, tl.minimum(a, b) * tl.maximum(a, b))
    tl.store(out + 4 * BLOCK + at, tl.where(a > 100, tl.cdiv(a, 7), -b))


def test_integers():
    a, b = rng.integers(1, 10000, 256).astype("i4"), rng.integers(1, 100, 256).astype("i4")
    out = np.zeros((5, 256), "i4")
    run_triton(integer_kernel, (1,), a, b, out, BLOCK=256)
    high = (a.astype("i8") * b >> 32).astype("i4")
    want = [
        (a // b) ^ (a % b), (a << 3) | (b >> 2) & ~a, high, np.minimum(a, b) * np.maximum(a, b),
        np.where(a > 100, -(-a // 7), -b),
    ]  # fmt: skip
    assert (out == want).all()


@triton.jit
def cast_kernel(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at).to(out.dtype.element_ty))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("float32", "float16"),
        ("float32", "bfloat16"),
        ("float16", "float32"),
        ("float32", "float8_e4m3fn"),
        ("float32", "float8_e5m2"),
        ("float8_e4m3fn", "float16"),
        ("float8_e5m2", "float32"),
        ("float32", "int32"),
        ("int8", "float16"),
        ("int64", "float32"),
        ("bfloat16", "float32"),
    ],
)
def test_casts(source, target):
    x = (rng.standard_normal(256) * 20).astype(source)
    out = np.zeros(256, target)
    run_triton(cast_kernel, (1,), x, out, BLOCK=256)
    assert (out == x.astype(target)).all()


@triton.jit
def philox_kernel(out, noise, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.rand(seed, at))
    tl.store(noise + at, tl.randint(seed, at))


def philox(seed, counters):
    """Ten rounds of Philox 4x32; return its first word."""
    c0, c1, c2, c3 = counters.astype("u8"), *(np.zeros_like(counters, "u8") for _ in range(3))
    k0, k1, low = seed & 0xFFFFFFFF, seed >> 32, np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0 = (b >> np.uint64(32)) ^ c1 ^ np.uint64(k0)
        c2 = (a >> np.uint64(32)) ^ c3 ^ np.uint64(k1)
        c1, c3 = b & low, a & low
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0.astype("u4")


def test_philox():
    out, noise = np.zeros(512, "f4"), np.zeros(512, "i4")
    run_triton(philox_kernel, (2,), out, noise, 42, BLOCK=256)
    want = philox(42, np.arange(512))
    assert (noise.view("u4") == want).all()
    assert (out >= 0).all()
    assert (out < 1).all()
    assert abs(out.mean() - 0.5) < 0.05


@triton.jit
def dropout_kernel(x, out, p, seed, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    keep = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(keep, tl.load(x + at, mask) / (1 - p), 0.0), mask)


def test_dropout():
    x, out = np.ones(1000, "f4"), np.full(1000, -1, "f4")
    run_triton(dropout_kernel, (4,), x, out, 0.25, 7, 1000, BLOCK=256)
    assert set(out.tolist()) <= {0.0, np.float32(1) / np.float32(0.75)}
    assert 0.15 < (out == 0).mean() < 0.35


@triton.jit
def assembly_kernel(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.inline_asm_elementwise(
        "prmt.b32 $0, $1, 0, 0x0123;", "=r,r", [tl.load(x + at)], dtype=tl.int32, is_pure=True,
        pack=1,
    )  # fmt: skip
    tl.store(out + at, v)


def test_inline_assembly():
    x, out = rng.integers(0, 2**31, 256).astype("i4"), np.zeros(256, "i4")
    run_triton(assembly_kernel, (1,), x, out, BLOCK=256)
    assert (out == x.byteswap()).all()


@triton.jit(noinline=True)
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@triton.jit
def collatz_kernel(out):
    at = tl.program_id(0)
    tl.store(out + at, collatz(at + 1))


def test_a_function_that_is_not_inlined():
    def steps(n):
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    out = np.zeros(12, "i4")
    ptx = run_triton(collatz_kernel, (12,), out)
    assert "call" in ptx
    assert out.tolist() == [steps(n) for n in range(1, 13)]


@triton.jit
def print_kernel(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.device_print("value", tl.load(x + at))


def test_device_print(capsys):
    x = np.arange(32, dtype="i4") + 100
    run_triton(print_kernel, (1,), x, BLOCK=32, options={"num_warps": 1})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 32
    assert sum(line.endswith(": 131") or " 131" in line for line in lines) == 1


@triton.jit
def assert_kernel(x, BLOCK: tl.constexpr):
    tl.device_assert(tl.load(x + tl.arange(0, BLOCK)) < 40, "too large")


def test_device_assert():
    from lego_mlir.diagnostics import LegoError

    x = np.arange(32, dtype="i4")
    run_triton(assert_kernel, (1,), x, BLOCK=32, options={"debug": True})
    with pytest.raises(LegoError, match=r"too large.*test_triton_elementwise"):
        run_triton(assert_kernel, (1,), x + 20, BLOCK=32, options={"debug": True})
