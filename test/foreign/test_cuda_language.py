"""CUDA C++: what the language has: functions, recursion, pointers, classes, printf, assert."""

import numpy as np
import pytest
from foreign_kernels import run_cuda

from lego_mlir.diagnostics import LegoError

pytest.importorskip("cuda.bindings.nvrtc")

rng = np.random.default_rng(7)


def test_a_function_that_is_not_inlined():
    source = """
    struct Pair { int a; long long b; float c[3]; };
    __device__ __noinline__ Pair make(int i, Pair p) {
        p.a += i; p.b *= i; p.c[i % 3] = i; return p;
    }
    extern "C" __global__ void k(float* out) {
        Pair p = make(threadIdx.x, Pair{1, 2, {3, 4, 5}});
        p = make(threadIdx.x + 1, p);
        out[threadIdx.x] = p.a + p.b * 100 + p.c[0] + p.c[1] + p.c[2];
    }"""
    out = np.zeros(32, "f4")
    assert "call.uni" in run_cuda(source, 1, 32, out)
    for i in range(32):
        c = [3.0, 4.0, 5.0]
        c[i % 3], c[(i + 1) % 3] = i, i + 1
        assert out[i] == 1 + i + i + 1 + 2 * i * (i + 1) * 100 + sum(c)


def test_recursion():
    source = """
    __device__ __noinline__ unsigned ackermann(unsigned m, unsigned n) {
        return m == 0 ? n + 1 : ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
    }
    __device__ __noinline__ int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }
    extern "C" __global__ void k(unsigned* out) {
        out[threadIdx.x] = fibonacci(threadIdx.x % 8) + 1000 * ackermann(1, threadIdx.x % 4);
    }"""
    out = np.zeros(32, "u4")
    run_cuda(source, 1, 32, out)
    assert out.tolist() == [
        [0, 1, 1, 2, 3, 5, 8, 13][i % 8] + 1000 * (i % 4 + 2) for i in range(32)
    ]


def test_quicksort_with_pointers_to_local_arrays():
    source = """
    __device__ void sort(int* x, int low, int high) {
        if (low >= high) return;
        int pivot = x[(low + high) / 2], i = low, j = high;
        while (i <= j) {
            while (x[i] < pivot) ++i;
            while (x[j] > pivot) --j;
            if (i <= j) { int v = x[i]; x[i] = x[j]; x[j] = v; ++i; --j; }
        }
        sort(x, low, j); sort(x, i, high);
    }
    extern "C" __global__ void k(int* x) {
        int own[16];
        for (int i = 0; i < 16; ++i) own[i] = x[threadIdx.x * 16 + i];
        sort(own, 0, 15);
        for (int i = 0; i < 16; ++i) x[threadIdx.x * 16 + i] = own[i];
    }"""
    x = rng.integers(-99, 99, (32, 16)).astype("i4")
    want = np.sort(x, 1)
    run_cuda(source, 1, 32, x)
    assert (x == want).all()


def test_function_pointers():
    source = """
    typedef float (*F)(float, float);
    __device__ __noinline__ float add(float a, float b) { return a + b; }
    __device__ __noinline__ float multiply(float a, float b) { return a * b; }
    __device__ __noinline__ float larger(float a, float b) { return a > b ? a : b; }
    __device__ F table[3] = {add, multiply, larger};
    extern "C" __global__ void k(const float* a, const float* b, float* out) {
        int i = threadIdx.x;
        out[i] = table[i % 3](a[i], b[i]);
    }"""
    a, b = rng.random((2, 64)).astype("f4")
    out = np.zeros(64, "f4")
    run_cuda(source, 1, 64, a, b, out)
    assert (out == np.choose(np.arange(64) % 3, [a + b, a * b, np.maximum(a, b)])).all()


def test_virtual_functions():
    source = """
    struct Shape { __device__ virtual float area() const = 0; float x; };
    struct Square : Shape { __device__ float area() const override { return x * x; } };
    struct Circle : Shape { __device__ float area() const override { return 3 * x * x; } };
    extern "C" __global__ void k(float* out) {
        Square square; Circle circle;
        square.x = circle.x = threadIdx.x;
        Shape* shape = threadIdx.x % 2 ? (Shape*)&square : (Shape*)&circle;
        out[threadIdx.x] = shape->area();
    }"""
    out = np.zeros(32, "f4")
    run_cuda(source, 1, 32, out)
    assert out.tolist() == [i * i * (1 if i % 2 else 3) for i in range(32)]


def test_a_switch():
    source = """
    extern "C" __global__ void k(const int* x, int* out) {
        int v = x[threadIdx.x], r = 0;
        switch (v) {
            case 0: r = v * 7 + out[0]; break;
            case 1: r = __clz(v + 100); break;
            case 2: r = v << 9; // falls through
            case 3: r += 1000; break;
            case 4: r = __popc(0xabcdef) * threadIdx.x; break;
            case 5: r = threadIdx.x / 3; break;
            case 6: r = 77; break;
            case 7: r = -threadIdx.x; break;
            default: r = -1;
        }
        out[threadIdx.x + 1] = r;
    }"""
    x, out = rng.integers(-1, 9, 64).astype("i4"), np.zeros(65, "i4")
    run_cuda(source, 1, 64, x, out)
    cases = {0: lambda t: 0, 1: lambda t: 25, 2: lambda t: 2024, 3: lambda t: 1000}
    cases |= {4: lambda t: 17 * t, 5: lambda t: t // 3, 6: lambda t: 77, 7: lambda t: -t}
    assert out[1:].tolist() == [cases.get(v, lambda t: -1)(t) for t, v in enumerate(x.tolist())]


def test_printf(capsys):
    source = """
    #define S "text"
    extern "C" int printf(const char*, ...);
    extern "C" __global__ void k(double x) {
        if (threadIdx.x < 2)
            printf("%s %d: %5.2f|%-4u|%08x|%c|%lld%%\\n", S, (int)threadIdx.x, x * threadIdx.x,
                   7u, 0xbeefu, 'z', 1ll << 40);
    }"""
    run_cuda(source, 1, 32, np.float64(1.5))
    lines = [f"text {t}: {1.5 * t:5.2f}|7   |0000beef|z|{1 << 40}%\n" for t in range(2)]
    assert capsys.readouterr().out == "".join(lines)


def test_assert():
    source = """
    #include <cuda/std/cassert>
    extern "C" __global__ void k(const int* x) { assert(x[threadIdx.x] < 90 && "in range"); }
    """
    x = np.arange(64, dtype="i4")
    run_cuda(source, 1, 64, x)
    with pytest.raises(LegoError, match=r"x\[threadIdx.x\] < 90.*failed.*thread \(50, 0, 0\)"):
        run_cuda(source, 1, 64, x + 40)


def test_malloc_and_new():
    source = """
    struct Node { int value; Node* next; };
    extern "C" __global__ void k(int* out) {
        Node* list = nullptr;
        for (int i = 0; i < 4; ++i) list = new Node{(int)threadIdx.x * i, list};
        int sum = 0;
        while (list) { sum = sum * 10 + list->value; Node* n = list->next; delete list; list = n; }
        out[threadIdx.x] = sum;
    }"""
    out = np.zeros(8, "i4")
    run_cuda(source, 1, 8, out)
    assert out.tolist() == [t * 3210 for t in range(8)]


def test_constant_memory_and_local_arrays():
    source = """
    __constant__ float weights[2][4] = {{1, 2, 3, 4}, {0.5f, 0.25f, 0, -1}};
    extern "C" __global__ void k(const int* x, float* out) {
        float own[8];
        for (int i = 0; i < 8; ++i) own[i] = weights[i % 2][i / 2] * threadIdx.x;
        out[threadIdx.x] = own[x[threadIdx.x]];
    }"""
    x, out = rng.integers(0, 8, 32).astype("i4"), np.zeros(32, "f4")
    run_cuda(source, 1, 32, x, out)
    w = np.array([[1, 2, 3, 4], [0.5, 0.25, 0, -1]])
    assert (out == w[x % 2, x // 2] * np.arange(32)).all()


def test_templates_and_lambdas():
    source = """
    template <class T, class F> __device__ T fold(const T* x, int n, T start, F f) {
        for (int i = 0; i < n; ++i) start = f(start, x[i]);
        return start;
    }
    extern "C" __global__ void k(const double* x, double* out, int n) {
        const double* row = x + threadIdx.x * n;
        int odd = 0;
        double sum = fold(row, n, 0.0, [&](double a, double b) { odd += b > 0.5; return a + b; });
        out[threadIdx.x] = sum / odd;
    }"""
    x, out = rng.random((32, 20)), np.zeros(32)
    run_cuda(source, 1, 32, x, out, np.int32(20))
    np.testing.assert_allclose(out, x.sum(1) / (x > 0.5).sum(1))


def test_math_of_doubles():
    source = """
    extern "C" __global__ void k(const double* x, double* out, int n) {
        int i = threadIdx.x;
        double v = x[i];
        out[i] = sin(v); out[n + i] = exp(v); out[2 * n + i] = log(v); out[3 * n + i] = pow(v, 1.5);
        out[4 * n + i] = cbrt(v); out[5 * n + i] = atan2(v, 2); out[6 * n + i] = sqrt(v) / v;
        out[7 * n + i] = fma(v, v, 1) + floor(v);
        out[8 * n + i] = tgamma(v); out[9 * n + i] = erf(v);
    }"""
    from math import erf, gamma

    v = rng.random(32) * 4 + 0.1
    out = np.zeros((10, 32))
    run_cuda(source, 1, 32, v, out, np.int32(32))
    want = [
        np.sin(v), np.exp(v), np.log(v), v**1.5, np.cbrt(v), np.arctan2(v, 2), 1 / np.sqrt(v),
        v * v + 1 + np.floor(v), [gamma(x) for x in v], [erf(x) for x in v],
    ]  # fmt: skip
    np.testing.assert_allclose(out, want, rtol=1e-13)


def test_math_of_floats():
    source = """
    extern "C" __global__ void k(const float* x, float* out, int n) {
        int i = threadIdx.x;
        float v = x[i];
        out[i] = sinf(v * 1000); out[n + i] = expf(v); out[2 * n + i] = log1pf(v);
        out[3 * n + i] = powf(v, v); out[4 * n + i] = tanhf(v); out[5 * n + i] = acosf(v / 8);
        out[6 * n + i] = fmodf(v, 0.3f); out[7 * n + i] = rintf(v * 3) + truncf(v);
        out[8 * n + i] = ldexpf(v, 5) + remainderf(v, 2);
        out[9 * n + i] = __fdividef(v, 3) + __expf(v);
    }"""
    v = (rng.random(32) * 4 + 0.1).astype("f4")
    out = np.zeros((10, 32), "f4")
    run_cuda(source, 1, 32, v, out, np.int32(32))
    d = v.astype("f8")
    want = [
        np.sin((v * np.float32(1000)).astype("f8")), np.exp(d), np.log1p(d), d**d, np.tanh(d),
        np.arccos(d / 8), np.fmod(d, np.float64(np.float32(0.3))), np.rint(d * 3) + np.trunc(d),
        d * 32 + d - 2 * np.rint(d / 2), d / 3 + np.exp(d),
    ]  # fmt: skip
    np.testing.assert_allclose(out, want, rtol=2e-6, atol=1e-6)


def test_wide_integers():
    source = """
    extern "C" __global__ void k(const unsigned long long* a, const unsigned long long* b,
                                 unsigned long long* out, int n) {
        int i = threadIdx.x;
        unsigned long long x = a[i], y = b[i];
        out[i] = __umul64hi(x, y); out[n + i] = x / y; out[2 * n + i] = x % y;
        out[3 * n + i] = __brevll(x) ^ __popcll(y); out[4 * n + i] = (long long)x >> (y % 64);
        out[5 * n + i] = __clzll(y) * 100 + __ffsll(x); out[6 * n + i] = __mul24(x, y);
        unsigned __int128 p = (unsigned __int128)x * y + x;
        out[7 * n + i] = (unsigned long long)(p >> 64);
    }"""
    a, b = rng.integers(1, 2**63, (2, 32), "u8")
    b >>= rng.integers(0, 60, 32, "u8")
    b |= np.uint64(1)
    out = np.zeros((8, 32), "u8")
    run_cuda(source, 1, 32, a, b, out, np.int32(32), options=("--device-int128",))
    for i, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        signed = x - 2**64 if x >> 63 else x
        low = [(v & 0xFFFFFF) - (v >> 23 & 1) * 2**24 for v in (x, y)]
        product = (low[0] * low[1] + 2**31) % 2**32 - 2**31
        want = [
            x * y >> 64, x // y, x % y, int(f"{x:064b}"[::-1], 2) ^ y.bit_count(),
            signed >> y % 64, (64 - y.bit_length()) * 100 + (x & -x).bit_length(), product,
            x * y + x >> 64,
        ]  # fmt: skip
        assert out[:, i].tolist() == [v % 2**64 for v in want]


def test_clocks_and_multiprocessors():
    source = """
    __device__ unsigned smid() {
        unsigned r; asm volatile("mov.u32 %0, %smid;" : "=r"(r)); return r;
    }
    extern "C" __global__ void k(long long* out) {
        long long start = clock64(), t;
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
        float v = threadIdx.x;
        for (int i = 0; i < 10; ++i) v = v * 1.5f + 1;
        __nanosleep(100);
        if (threadIdx.x == 0) {
            out[blockIdx.x * 4] = clock64() - start; out[blockIdx.x * 4 + 1] = smid();
            out[blockIdx.x * 4 + 2] = t >= 0 && v > 0; out[blockIdx.x * 4 + 3] = clock() != 0;
        }
    }"""
    out = np.zeros((6, 4), "i8")
    run_cuda(source, 6, 32, out)
    assert (out[:, 0] > 0).all()
    assert (out[:, 1] < 132).all()
    assert (out[:, 2:] == 1).all()


def test_a_switch_of_warps_in_dynamic_shared_memory():
    source = """
    extern __shared__ char memory[];
    extern "C" __global__ void k(const int* x, int* out, int n) {
        int* a = (int*)memory; double* b = (double*)(memory + n * sizeof(int));
        int t = threadIdx.x;
        a[t] = x[t]; b[t] = t * 0.5;
        __syncthreads();
        switch (t / 32) {
            case 0: out[t] = a[n - 1 - t]; break;
            case 1: out[t] = (int)b[n - 1 - t]; break;
            default: out[t] = a[t] + (int)b[0];
        }
    }"""
    x, out = rng.integers(0, 99, 128).astype("i4"), np.zeros(128, "i4")
    run_cuda(source, 1, 128, x, out, np.int32(128), shared_bytes=128 * 12)
    t = np.arange(128)
    want = np.where(t < 32, x[::-1], np.where(t < 64, (127 - t) // 2, x))
    assert (out == want).all()


def test_generic_pointers():
    source = """
    __device__ int global_value = 5;
    __device__ int* pointer = &global_value;
    __device__ __noinline__ int get(const int* p) {
        return *p + 1000 * __isShared(p) + 10000 * __isGlobal(p) + 100000 * __isLocal(p);
    }
    extern "C" __global__ void k(int* out) {
        __shared__ int s;
        int local = threadIdx.x;
        if (threadIdx.x == 0) s = 7;
        __syncthreads();
        const int* p = threadIdx.x % 3 == 0 ? &s : threadIdx.x % 3 == 1 ? pointer : &local;
        out[threadIdx.x] = get(p);
    }"""
    out = np.zeros(32, "i4")
    run_cuda(source, 1, 32, out)
    assert out.tolist() == [[1007, 10005, 100000 + i][i % 3] for i in range(32)]
