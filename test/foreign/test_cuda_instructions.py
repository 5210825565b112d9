"""CUDA C++: intrinsics and inline PTX: SIMD words, halves, small floats, tensor cores, copies."""

import ml_dtypes
import numpy as np
import pytest
from foreign_kernels import run_cuda

pytest.importorskip("cuda.bindings.nvrtc")

rng = np.random.default_rng(8)


def test_simd_in_words():
    source = """
    extern "C" __global__ void k(const unsigned* a, const unsigned* b, unsigned* out, int n) {
        int i = threadIdx.x;
        unsigned x = a[i], y = b[i];
        unsigned r[] = {__vadd4(x, y), __vsub4(x, y), __vaddus4(x, y), __vsubss4(x, y),
            __vabsdiffu4(x, y), __vmaxs4(x, y), __vminu4(x, y), __vavgu4(x, y), __vcmpgtu4(x, y),
            __vseteq4(x, y), __vsadu4(x, y), __vadd2(x, y), __vsubus2(x, y), __vmaxs2(x, y),
            __vneg4(x), __vabs4(x), __vhaddu4(x, y), __sad((int)x, (int)y, 3u)};
        for (int j = 0; j < 18; ++j) out[j * n + i] = r[j];
    }"""
    a, b = rng.integers(0, 2**32, (2, 32), "u4")
    out = np.zeros((18, 32), "u4")
    run_cuda(source, 1, 32, a, b, out, np.int32(32))
    x, y = (v.view("u1").astype("i4") for v in (a, b))
    s, t = (v.view("i1").astype("i4") for v in (a, b))
    h, g = (v.view("u2").astype("i4") for v in (a, b))
    sh, sg = (v.view("i2").astype("i4") for v in (a, b))

    def words(values, kind="u1"):
        return (values & (0xFF if kind == "u1" else 0xFFFF)).astype(kind).view("u4")

    wide = a.view("i4").astype("i8") - b.view("i4")
    want = [
        words(x + y), words(x - y), words(np.minimum(x + y, 255)), words(np.clip(s - t, -128, 127)),
        words(abs(x - y)), words(np.maximum(s, t)), words(np.minimum(x, y)),
        words((x + y + 1) // 2), words(np.where(x > y, 255, 0)), words((x == y) * 1),
        abs(x - y).reshape(-1, 4).sum(1), words(h + g, "u2"), words(np.maximum(h - g, 0), "u2"),
        words(np.maximum(sh, sg), "u2"), words(-s), words(abs(s)), words((x + y) // 2),
        (abs(wide) + 3) % 2**32,
    ]  # fmt: skip
    for j, row in enumerate(want):
        assert (out[j] == row).all(), j


def test_video_instructions():
    source = """
    #define V(j, text) asm(text " %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); \\
        out[j * n + i] = r;
    extern "C" __global__ void k(const unsigned* a, const unsigned* b, unsigned* out, int n) {
        int i = threadIdx.x;
        unsigned x = a[i], y = b[i], z = x * 3 + y, r;
        V(0, "vadd4.u32.u32.u32.sat") V(1, "vabsdiff4.u32.u32.u32.add") V(2, "vmin4.s32.s32.s32")
        V(3, "vset4.u32.u32.lt.add") V(4, "vsub2.s32.s32.s32.sat") V(5, "vavrg4.u32.u32.u32")
        V(6, "vabsdiff.u32.s32.s32.add") V(7, "vmax.s32.s32.s32.min")
        asm("vadd.s32.s32.s32 %0, %1.b1, %2.h0;" : "=r"(r) : "r"(x), "r"(y)); out[8 * n + i] = r;
        asm("vmad.s32.s32.s32.shr7 %0, %1.b3, %2.h1, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
        out[9 * n + i] = r;
        asm("vset.u32.u32.ge %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); out[10 * n + i] = r;
        asm("vshl.u32.u32.u32.clamp %0, %1.b0, %2.b0;" : "=r"(r) : "r"(x), "r"(y));
        out[11 * n + i] = r;
    }"""
    a, b = rng.integers(0, 2**32, (2, 32), "u4")
    out = np.zeros((12, 32), "u4")
    run_cuda(source, 1, 32, a, b, out, np.int32(32))
    x, y = (v.view("u1").astype("i8").reshape(-1, 4) for v in (a, b))
    z = a * np.uint32(3) + b
    sa, sb, sz = (v.view("i4").astype("i8") for v in (a, b, z))
    s, t = (v.view("i1").reshape(-1, 4) for v in (a, b))
    h, g = (v.view("i2").astype("i8").reshape(-1, 2) for v in (a, b))
    product = s[:, 3].astype("i8") * g[:, 1] + sz
    want = [
        np.minimum(x + y, 255).astype("u1").view("u4")[:, 0],
        abs(x - y).sum(1) + z, np.minimum(s, t).view("u4")[:, 0], (x < y).sum(1) + z,
        np.clip(h - g, -(2**15), 2**15 - 1).astype("i2").view("u4")[:, 0],
        ((x + y + 1) // 2).astype("u1").view("u4")[:, 0], abs(sa - sb) + z,
        np.minimum(np.maximum(sa, sb), sz), s[:, 1].astype("i8") + g[:, 0], product >> 7, a >= b,
        np.where(y[:, 0] < 32, x[:, 0] << np.minimum(y[:, 0], 40), 0),
    ]  # fmt: skip
    for j, row in enumerate(want):
        assert (out[j] == row.astype("i8") % 2**32).all(), j


def test_dot_products_of_bytes():
    source = """
    extern "C" __global__ void k(const int* a, const int* b, int* out, int n) {
        int i = threadIdx.x;
        out[i] = __dp4a(a[i], b[i], 7); out[n + i] = __dp2a_lo(a[i], b[i], 1);
        out[2 * n + i] = __dp4a((unsigned)a[i], (unsigned)b[i], 0u);
    }"""
    a, b = rng.integers(-(2**31), 2**31, (2, 32)).astype("i4")
    out = np.zeros((3, 32), "i4")
    run_cuda(source, 1, 32, a, b, out, np.int32(32))
    s, t = (v.view("i1").astype("i4").reshape(-1, 4) for v in (a, b))
    u, v = (v.view("u1").astype("i4").reshape(-1, 4) for v in (a, b))
    h = a.view("i2").astype("i4").reshape(-1, 2)
    want = [(s * t).sum(1) + 7, (h * t[:, :2]).sum(1) + 1, (u * v).sum(1)]
    assert (out == want).all()


def test_pairs_of_halves():
    source = """
    #include <cuda_fp16.h>
    extern "C" __global__ void k(const __half2* a, const __half2* b, __half2* out, int n) {
        int i = threadIdx.x;
        __half2 x = a[i], y = b[i];
        out[i] = __hfma2(x, y, x); out[n + i] = __hmax2(x, y); out[2 * n + i] = __hgt2(x, y);
        out[3 * n + i] = h2exp(x); out[4 * n + i] = __h2div(x, y);
        out[5 * n + i] = __lowhigh2highlow(x);
        out[6 * n + i] = __hadd2_sat(x, y); out[7 * n + i] = h2rsqrt(__habs2(x));
        out[8 * n + i] = __heq2(x, x); out[9 * n + i] = __halves2half2(hsin(x.x), __hmin(x.y, y.y));
        out[10 * n + i] = __hneu2(x, y); out[11 * n + i] = __hbgt2(x, y) ? x : y;
    }"""
    a, b = rng.standard_normal((2, 32, 2)).astype("f2")
    out = np.zeros((12, 32, 2), "f2")
    run_cuda(source, 1, 32, a, b, out, np.int32(32))
    x, y = a.astype("f8"), b.astype("f8")
    both = (x > y).all(1, keepdims=True)
    want = [
        x * y + x, np.maximum(x, y), x > y, np.exp(x), x / y, x[:, ::-1], np.clip(x + y, 0, 1),
        1 / np.sqrt(abs(x)), np.ones_like(x),
        np.stack([np.sin(x[:, 0]), np.minimum(x, y)[:, 1]], 1),
        x != y, np.where(both, x, y),
    ]  # fmt: skip
    np.testing.assert_allclose(out, want, rtol=2e-3, atol=1e-3)


def test_bfloat16():
    source = """
    #include <cuda_bf16.h>
    extern "C" __global__ void k(const __nv_bfloat162* a, const __nv_bfloat162* b,
                                 __nv_bfloat162* out, int n) {
        int i = threadIdx.x;
        out[i] = __hfma2(a[i], b[i], a[i]); out[n + i] = __hmul2(a[i], b[i]);
        out[2 * n + i] = __hle2(a[i], b[i]); out[3 * n + i] = __hadd2(a[i], b[i]);
        float2 f = __bfloat1622float2(a[i]);
        out[4 * n + i] = __floats2bfloat162_rn(f.y * 2, f.x);
    }"""
    a, b = rng.standard_normal((2, 32, 2)).astype(ml_dtypes.bfloat16)
    out = np.zeros((5, 32, 2), ml_dtypes.bfloat16)
    run_cuda(source, 1, 32, a, b, out, np.int32(32))
    x, y = a.astype("f8"), b.astype("f8")
    want = [x * y + x, x * y, x <= y, x + y, np.stack([x[:, 1] * 2, x[:, 0]], 1)]
    assert (out == np.array(want).astype(ml_dtypes.bfloat16)).all()


def test_eight_bit_floats():
    source = """
    #include <cuda_fp8.h>
    extern "C" __global__ void k(const float* x, __nv_fp8_e4m3* out, float* back) {
        int i = threadIdx.x;
        out[i] = __nv_fp8_e4m3(x[i]);
        back[i] = float(__nv_fp8_e5m2(x[i]));
    }"""
    x = (rng.standard_normal(64) * 30).astype("f4")
    out, back = np.zeros(64, ml_dtypes.float8_e4m3fn), np.zeros(64, "f4")
    run_cuda(source, 1, 64, x, out, back)
    assert (out == x.astype(ml_dtypes.float8_e4m3fn)).all()
    assert (back == x.astype(ml_dtypes.float8_e5m2).astype("f4")).all()


WMMA = """
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const TYPE* a, const TYPE* b, OUT* c, int n, int depth) {
    wmma::fragment<wmma::matrix_a, M, N, K, FRAGMENT, wmma::AORDER> x;
    wmma::fragment<wmma::matrix_b, M, N, K, FRAGMENT, wmma::BORDER> y;
    wmma::fragment<wmma::accumulator, M, N, K, OUT> sum;
    wmma::fill_fragment(sum, (OUT)0);
    for (int k = 0; k < depth; k += K) {
        wmma::load_matrix_sync(x, a + AOFFSET, ALD);
        wmma::load_matrix_sync(y, b + BOFFSET, BLD);
        wmma::mma_sync(sum, x, y, sum);
    }
    for (int i = 0; i < sum.num_elements; ++i) sum.x[i] = sum.x[i] * (OUT)2;
    wmma::store_matrix_sync(c, sum, n, wmma::mem_row_major);
}
"""


@pytest.mark.parametrize("orders", ["rr", "rc", "cr", "cc"])
@pytest.mark.parametrize(
    ("name", "dtype", "out", "shape"),
    [
        ("half", "f2", "f4", (16, 16, 16)),
        ("half", "f2", "f2", (32, 8, 16)),
        ("half", "f2", "f4", (8, 32, 16)),
        ("__nv_bfloat16", ml_dtypes.bfloat16, "f4", (16, 16, 16)),
        ("signed char", "i1", "i4", (16, 16, 16)),
        ("unsigned char", "u1", "i4", (32, 8, 16)),
        ("float", "f4", "f4", (16, 16, 8)),
        ("double", "f8", "f8", (8, 8, 4)),
    ],
)
def test_wmma(name, dtype, out, shape, orders):
    m, n, k = shape
    depth = 2 * k
    values = {"f4": "float", "f2": "half", "i4": "int", "f8": "double"}
    row = {"r": "row_major", "c": "col_major"}
    replaced = {
        "TYPE": name, "OUT": values[out], "AORDER": row[orders[0]], "BORDER": row[orders[1]],
        "FRAGMENT": "wmma::precision::tf32" if name == "float" else name,
        "AOFFSET": "k" if orders[0] == "r" else f"k * {m}",
        "ALD": "depth" if orders[0] == "r" else str(m),
        "BOFFSET": f"k * {n}" if orders[1] == "r" else "k",
        "BLD": str(n) if orders[1] == "r" else "depth", "M": m, "N": n, "K": k,
    }  # fmt: skip
    source = WMMA
    import re

    for word, text in replaced.items():
        source = re.sub(rf"\b{word}\b", str(text), source)
    a, b = (rng.integers(0, 9, s).astype(dtype) for s in ((m, depth), (depth, n)))
    c = np.zeros((m, n), out)
    given = [
        np.ascontiguousarray(v if o == "r" else v.T) for v, o in ((a, orders[0]), (b, orders[1]))
    ]
    run_cuda(source, 1, 32, *given, c, np.int32(n), np.int32(depth))
    assert (c.astype("f8") == 2 * (a.astype("f8") @ b.astype("f8"))).all()


def test_mma_and_ldmatrix():
    source = """
    #include <cuda_fp16.h>
    extern "C" __global__ void k(const half* a, const half* b, float* c) {
        __shared__ half s[16 * 16], t[8 * 16];
        int l = threadIdx.x;
        for (int i = l; i < 256; i += 32) s[i] = a[i];
        for (int i = l; i < 128; i += 32) t[i] = b[i];
        __syncwarp();
        unsigned x[4], y[2]; float d[4] = {};
        unsigned at = __cvta_generic_to_shared(&s[l % 16 * 16 + l / 16 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at));
        at = __cvta_generic_to_shared(&t[l % 8 * 16 + l / 8 % 2 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
            : "=r"(y[0]), "=r"(y[1]) : "r"(at));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
            "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
        for (int i = 0; i < 4; ++i) c[(l / 4 + i / 2 * 8) * 8 + l % 4 * 2 + i % 2] = d[i];
    }"""
    a, b = rng.standard_normal((16, 16)).astype("f2"), rng.standard_normal((8, 16)).astype("f2")
    c = np.zeros((16, 8), "f4")
    run_cuda(source, 1, 32, a, b, c)
    np.testing.assert_allclose(c, a.astype("f4") @ b.astype("f4").T, rtol=1e-5, atol=1e-5)


def test_orders_of_memory_and_vectors():
    source = """
    extern "C" __global__ void k(unsigned* flag, float4* x, float4* out, unsigned long long* w) {
        unsigned old, t = threadIdx.x;
        asm volatile("atom.global.gpu.acq_rel.add.u32 %0, [%1], %2;"
            : "=r"(old) : "l"(flag), "r"(t));
        asm volatile("red.release.gpu.global.add.u32 [%0], %1;" :: "l"(flag + 1), "r"(1));
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(old) : "l"(flag + 2));
        asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(flag + 2 + t), "r"(old + t));
        float4 v = __ldcs(x + t);
        __stwt(out + t, make_float4(v.y, v.x, v.w, v.z));
        asm volatile("{.reg .b128 q; mov.b128 q, {%0, %1}; st.global.b128 [%2], q;}"
            :: "l"(3ull * t), "l"(~0ull - t), "l"(w + 2 * t));
        asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" :: "l"(out + 32), "f"(1.f), "f"(2.f));
    }"""
    flag, x = np.zeros(34, "u4"), rng.random((32, 4)).astype("f4")
    out, w = np.zeros((33, 4), "f4"), np.zeros((32, 2), "u8")
    run_cuda(source, 1, 32, flag, x, out, w)
    assert flag[:2].tolist() == [496, 32]
    assert flag[2:].tolist() == list(range(32))
    assert (out[:32] == x[:, [1, 0, 3, 2]]).all()
    assert out[32].tolist() == [32, 64, 0, 0]
    assert w.tolist() == [[3 * t, 2**64 - 1 - t] for t in range(32)]


@pytest.mark.parametrize("order", ["late", "early", "random"])
def test_a_bulk_copy(order):
    source = """
    extern "C" __global__ void k(const int* x, int* out) {
        __shared__ __align__(128) int s[256];
        __shared__ __align__(8) unsigned long long bar;
        unsigned at = __cvta_generic_to_shared(s), b = __cvta_generic_to_shared(&bar), ok = 0;
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(b));
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" :: "r"(b));
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                " [%0], [%1], 1024, [%2];" :: "r"(at), "l"(x), "r"(b) : "memory");
        }
        while (!ok)
            asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0;"
                " selp.u32 %0, 1, 0, p;}" : "=r"(ok) : "r"(b) : "memory");
        for (int i = threadIdx.x; i < 256; i += blockDim.x) out[i] = s[255 - i];
    }"""
    x, out = rng.integers(0, 99, 256).astype("i4"), np.zeros(256, "i4")
    run_cuda(source, 1, 64, x, out, order=order)
    assert (out == x[::-1]).all()
