"""CUDA C++: whole algorithms, as they stand in benchmark suites."""

import binascii
import hashlib

import numpy as np
import pytest
from foreign_kernels import run_cuda

pytest.importorskip("cuda.bindings.nvrtc")

rng = np.random.default_rng(6)


def i32(*values):
    return [np.int32(value) for value in values]


def test_tiled_matmul():
    source = """
    template <int T> __device__ void multiply(const float* a, const float* b, float* c, int n) {
        __shared__ float s[T][T], t[T][T];
        int row = blockIdx.y * T + threadIdx.y, column = blockIdx.x * T + threadIdx.x;
        float sum = 0;
        for (int k = 0; k < n; k += T) {
            s[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
            t[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
            __syncthreads();
            #pragma unroll
            for (int i = 0; i < T; ++i) sum += s[threadIdx.y][i] * t[i][threadIdx.x];
            __syncthreads();
        }
        c[row * n + column] = sum;
    }
    extern "C" __global__ void k(const float* a, const float* b, float* c, int n) {
        multiply<16>(a, b, c, n);
    }"""
    a, b = rng.random((2, 64, 64)).astype("f4")
    c = np.zeros((64, 64), "f4")
    run_cuda(source, (4, 4), (16, 16), a, b, c, *i32(64))
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_n_body():
    source = """
    extern "C" __global__ void k(const float4* p, float4* out, int n) {
        __shared__ float4 s[64];
        int i = blockIdx.x * 64 + threadIdx.x;
        float4 me = p[i]; float3 f = {0, 0, 0};
        for (int tile = 0; tile < n; tile += 64) {
            s[threadIdx.x] = p[tile + threadIdx.x];
            __syncthreads();
            for (int j = 0; j < 64; ++j) {
                float x = s[j].x - me.x, y = s[j].y - me.y, z = s[j].z - me.z;
                float r = rsqrtf(x * x + y * y + z * z + 0.01f), w = s[j].w * r * r * r;
                f.x += x * w; f.y += y * w; f.z += z * w;
            }
            __syncthreads();
        }
        out[i] = make_float4(f.x, f.y, f.z, 0);
    }"""
    p, out = rng.random((128, 4)).astype("f4"), np.zeros((128, 4), "f4")
    run_cuda(source, 2, 64, p, out, *i32(128))
    d = p[None, :, :3].astype("f8") - p[:, None, :3]
    w = p[:, 3] / ((d**2).sum(-1) + 0.01) ** 1.5
    np.testing.assert_allclose(out[:, :3], (d * w[..., None]).sum(1), rtol=1e-3, atol=1e-3)


def test_mandelbrot():
    source = """
    extern "C" __global__ void k(int* out, int w, int h, int most) {
        int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
        if (x >= w || y >= h) return;
        double cr = -2.0 + 3.0 * x / w, ci = -1.5 + 3.0 * y / h, r = 0, i = 0;
        int n = 0;
        while (n < most && r * r + i * i <= 4) {
            double t = __dadd_rn(__dsub_rn(__dmul_rn(r, r), __dmul_rn(i, i)), cr);
            i = __dadd_rn(__dmul_rn(__dmul_rn(2, r), i), ci); r = t; ++n;
        }
        out[y * w + x] = n;
    }"""
    w, h = 40, 30
    out = np.zeros((h, w), "i4")
    run_cuda(source, (5, 4), (8, 8), out, *i32(w, h, 50), options=("--fmad=false",))
    c = (-2 + 3.0 * np.arange(w) / w)[None, :] + 1j * (-1.5 + 3.0 * np.arange(h) / h)[:, None]
    r, i, n = np.zeros((h, w)), np.zeros((h, w)), np.zeros((h, w), "i4")
    for _ in range(50):
        going = r * r + i * i <= 4
        r, i = np.where(going, [r * r - i * i + c.real, 2 * r * i + c.imag], [r, i])
        n += going
    assert (out == n).all()


def test_sparse_matrix_vector():
    source = """
    extern "C" __global__ void k(const int* start, const int* column, const double* value,
                                 const double* x, double* y, int rows) {
        int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
        if (row >= rows) return;
        double sum = 0;
        for (int i = start[row] + lane; i < start[row + 1]; i += 32) sum += value[i] * x[column[i]];
        for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
        if (lane == 0) y[row] = sum;
    }"""
    dense = rng.random((20, 60)) * (rng.random((20, 60)) < 0.6)
    start = np.concatenate([[0], (dense != 0).sum(1).cumsum()]).astype("i4")
    column = np.nonzero(dense)[1].astype("i4")
    x, y = rng.random(60), np.zeros(20)
    run_cuda(source, 5, 128, start, column, dense[dense != 0], x, y, *i32(20))
    np.testing.assert_allclose(y, dense @ x)


def test_breadth_first_search():
    source = """
    extern "C" __global__ void k(const int* start, const int* edges, int* level, int n) {
        __shared__ int again;
        int v = threadIdx.x;
        for (int depth = 0; ; ++depth) {
            __syncthreads();
            if (v == 0) again = 0;
            __syncthreads();
            if (v < n && level[v] == depth)
                for (int e = start[v]; e < start[v + 1]; ++e)
                    if (atomicCAS(&level[edges[e]], -1, depth + 1) == -1) again = 1;
            __syncthreads();
            if (!again) break;
        }
    }"""
    n = 100
    near = [rng.choice(n, 2, replace=False) for _ in range(n)]
    start, edges = np.arange(0, 2 * n + 1, 2, dtype="i4"), np.concatenate(near).astype("i4")
    level = np.full(n, -1, "i4")
    level[0] = 0
    want, frontier, depth = {0: 0}, [0], 0
    while frontier:
        depth += 1
        frontier = [int(u) for u in {u for v in frontier for u in near[v]} if int(u) not in want]
        want |= dict.fromkeys(frontier, depth)
    run_cuda(source, 1, 128, start, edges, level, *i32(n))
    assert level.tolist() == [want.get(v, -1) for v in range(n)]


def test_needleman_wunsch():
    source = """
    extern "C" __global__ void k(const char* a, const char* b, int* score, int n, int gap) {
        extern __shared__ int s[];
        int w = n + 1, t = threadIdx.x;
        for (int i = t; i < w; i += blockDim.x) { s[i] = -gap * i; s[i * w] = -gap * i; }
        __syncthreads();
        for (int d = 0; d < 2 * n - 1; ++d) {
            int i = t + 1, j = d - t + 1;
            if (t < n && j >= 1 && j <= n) {
                int best = s[(i - 1) * w + j - 1] + (a[i - 1] == b[j - 1] ? 3 : -2);
                best = max(best, max(s[(i - 1) * w + j], s[i * w + j - 1]) - gap);
                s[i * w + j] = best;
            }
            __syncthreads();
        }
        for (int i = t; i < w * w; i += blockDim.x) score[i] = s[i];
    }"""
    n, gap = 30, 2
    a, b = rng.integers(0, 4, (2, n)).astype("i1")
    score, want = np.zeros((n + 1, n + 1), "i4"), np.zeros((n + 1, n + 1), "i4")
    want[0] = want[:, 0] = -gap * np.arange(n + 1)
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            step = want[i - 1, j - 1] + (3 if a[i - 1] == b[j - 1] else -2)
            want[i, j] = max(step, want[i - 1, j] - gap, want[i, j - 1] - gap)
    run_cuda(source, 1, 32, a, b, score, *i32(n, gap), shared_bytes=4 * (n + 1) ** 2)
    assert (score == want).all()


def test_lu_decomposition():
    source = """
    extern "C" __global__ void k(float* a, int n) {
        __shared__ float s[32][33];
        int i = threadIdx.y, j = threadIdx.x;
        s[i][j] = a[i * n + j];
        __syncthreads();
        for (int p = 0; p < n - 1; ++p) {
            if (j == p && i > p) s[i][p] /= s[p][p];
            __syncthreads();
            if (i > p && j > p) s[i][j] -= s[i][p] * s[p][j];
            __syncthreads();
        }
        a[i * n + j] = s[i][j];
    }"""
    m = (rng.random((16, 16)) + 8 * np.eye(16)).astype("f4")
    a = m.copy()
    run_cuda(source, 1, (16, 16), a, *i32(16))
    lower, upper = np.tril(a, -1) + np.eye(16), np.triu(a)
    np.testing.assert_allclose(lower @ upper, m, rtol=1e-4, atol=1e-4)


def test_xorshift_and_monte_carlo():
    source = """
    extern "C" __global__ void k(unsigned* hits, unsigned* states, int steps) {
        unsigned s = 1234567u + 7919u * (blockIdx.x * blockDim.x + threadIdx.x), inside = 0;
        for (int i = 0; i < steps; ++i) {
            float p[2];
            for (int c = 0; c < 2; ++c) {
                s ^= s << 13; s ^= s >> 17; s ^= s << 5;
                p[c] = (s >> 8) * (1.0f / 16777216.0f);
            }
            inside += p[0] * p[0] + p[1] * p[1] < 1;
        }
        states[blockIdx.x * blockDim.x + threadIdx.x] = s;
        atomicAdd(hits, inside);
    }"""
    hits, states = np.zeros(1, "u4"), np.zeros(128, "u4")
    run_cuda(source, 2, 64, hits, states, *i32(50))
    s = 1234567 + 7919 * np.arange(128, dtype="u4")
    for _ in range(100):
        s ^= s << np.uint32(13)
        s ^= s >> np.uint32(17)
        s ^= s << np.uint32(5)
    assert (states == s).all()
    assert abs(4 * hits[0] / 6400 - np.pi) < 0.15


def test_mersenne_twister():
    source = """
    extern "C" __global__ void k(unsigned* out, unsigned seed) {
        __shared__ unsigned s[624];
        if (threadIdx.x == 0) {
            s[0] = seed;
            for (int i = 1; i < 624; ++i) s[i] = 1812433253u * (s[i - 1] ^ s[i - 1] >> 30) + i;
        }
        __syncthreads();
        for (int part = 0; part < 624; part += 208) {
            int i = part + threadIdx.x;
            unsigned v = 0;
            if (threadIdx.x < 208) {
                unsigned y = (s[i] & 0x80000000u) | (s[(i + 1) % 624] & 0x7fffffffu);
                v = s[(i + 397) % 624] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
            }
            __syncthreads();
            if (threadIdx.x < 208) s[i] = v;
            __syncthreads();
        }
        for (int i = threadIdx.x; i < 624; i += blockDim.x) {
            unsigned y = s[i];
            y ^= y >> 11; y ^= y << 7 & 0x9d2c5680u; y ^= y << 15 & 0xefc60000u;
            out[i] = y ^ y >> 18;
        }
    }"""
    out = np.zeros(624, "u4")
    run_cuda(source, 1, 224, out, np.uint32(5489))
    want = np.random.RandomState()
    state = want.get_state()
    seeds = [5489]
    for i in range(1, 624):
        seeds.append((1812433253 * (seeds[-1] ^ seeds[-1] >> 30) + i) % 2**32)
    want.set_state((state[0], np.array(seeds, "u4"), 624, 0, 0.0))
    assert (out == want.randint(0, 2**32, 624, np.uint32)).all()


def test_sha256():
    source = """
    __constant__ unsigned K[64] = {TABLE};
    __device__ unsigned rotate(unsigned x, int n) { return __funnelshift_r(x, x, n); }
    extern "C" __global__ void k(const unsigned char* blocks, unsigned* out, int n) {
        int id = threadIdx.x;
        if (id >= n) return;
        unsigned w[64], h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
        const unsigned* p = (const unsigned*)(blocks + 64 * id);
        for (int i = 0; i < 16; ++i) w[i] = __byte_perm(p[i], 0, 0x0123);
        for (int i = 16; i < 64; ++i) {
            unsigned a = w[i - 15], b = w[i - 2];
            w[i] = w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3)
                 + (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
        }
        unsigned v[8];
        for (int i = 0; i < 8; ++i) v[i] = h[i];
        for (int i = 0; i < 64; ++i) {
            unsigned e = v[4], a = v[0];
            unsigned t = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25))
                       + ((e & v[5]) ^ (~e & v[6])) + K[i] + w[i];
            unsigned u = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22))
                       + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
            for (int j = 7; j > 0; --j) v[j] = v[j - 1];
            v[4] += t; v[0] = t + u;
        }
        for (int i = 0; i < 8; ++i) out[8 * id + i] = h[i] + v[i];
    }"""
    primes = [p for p in range(2, 312) if all(p % q for q in range(2, p))]
    table = ", ".join(f"{_cube_root_bits(p)}u" for p in primes[:64])
    texts = [bytes(rng.integers(0, 256, n, "u1")) for n in (0, 1, 20, 55)]
    blocks = b"".join(
        t + b"\x80" + bytes(55 - len(t)) + (8 * len(t)).to_bytes(8, "big") for t in texts
    )
    out = np.zeros((4, 8), "u4")
    data = np.frombuffer(blocks, "u1").copy()
    run_cuda(source.replace("TABLE", table), 1, 32, data, out, *i32(4))
    for words, text in zip(out, texts, strict=True):
        assert words.byteswap().tobytes() == hashlib.sha256(text).digest()


def _cube_root_bits(p):
    """Return the first 32 bits of the fraction of the cube root of p."""
    root, bit = 0, 1 << 40
    while bit:
        if (root | bit) ** 3 <= p << 96:
            root |= bit
        bit >>= 1
    return root & 0xFFFFFFFF


def test_crc32():
    source = """
    __device__ unsigned table[256];
    extern "C" __global__ void k(const unsigned char* x, unsigned* out, int n) {
        unsigned c = threadIdx.x;
        for (int i = 0; i < 8; ++i) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
        table[threadIdx.x] = c;
        __syncthreads();
        unsigned crc = ~0u;
        if (threadIdx.x < 16) {
            const unsigned char* row = x + threadIdx.x * n;
            for (int i = 0; i < n; ++i) crc = table[(crc ^ row[i]) & 255] ^ crc >> 8;
            out[threadIdx.x] = ~crc;
        }
    }"""
    x, out = rng.integers(0, 256, (16, 40), "u1"), np.zeros(16, "u4")
    run_cuda(source, 1, 256, x, out, *i32(40))
    assert out.tolist() == [binascii.crc32(row) for row in x]


def test_black_scholes():
    source = """
    __device__ float normal(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
    extern "C" __global__ void k(const float* s, float* call, float strike, float t, float r,
                                 float v, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        float d = (logf(s[i] / strike) + (r + v * v / 2) * t) / (v * sqrtf(t));
        call[i] = s[i] * normal(d) - strike * expf(-r * t) * normal(d - v * sqrtf(t));
    }"""
    from math import erf, exp, log, sqrt

    s, call = (rng.random(200) * 50 + 75).astype("f4"), np.zeros(200, "f4")
    run_cuda(source, 2, 128, s, call, *map(np.float32, (100, 1, 0.05, 0.2)), *i32(200))

    def price(s):
        d = (log(s / 100) + 0.07) / 0.2
        a, b = (0.5 * (1 + erf(x / sqrt(2))) for x in (d, d - 0.2))
        return s * a - 100 * exp(-0.05) * b

    np.testing.assert_allclose(call, [price(x) for x in s.tolist()], rtol=1e-3, atol=1e-3)


def test_game_of_life():
    source = """
    extern "C" __global__ void k(const unsigned char* in, unsigned char* out, int w, int h) {
        int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y, n = 0;
        for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx)
                if (dx || dy) n += in[(y + dy + h) % h * w + (x + dx + w) % w];
        out[y * w + x] = n == 3 || (n == 2 && in[y * w + x]);
    }"""
    x, out = (rng.random((32, 48)) < 0.4).astype("u1"), np.zeros((32, 48), "u1")
    run_cuda(source, (3, 2), (16, 16), x, out, *i32(48, 32))
    shifts = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b]
    n = sum(np.roll(x, shift, (0, 1)) for shift in shifts)
    assert (out == ((n == 3) | ((n == 2) & (x == 1)))).all()


def test_radix_sort_pass():
    source = """
    extern "C" __global__ void k(unsigned* x) {
        __shared__ unsigned s[128], count[32 * 4];
        unsigned v = x[threadIdx.x];
        int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        for (int shift = 0; shift < 8; shift += 2) {
            unsigned digit = v >> shift & 3, before = 0;
            for (unsigned d = 0; d < 4; ++d) {
                unsigned same = __ballot_sync(~0u, digit == d);
                if (lane == 0) count[d * 4 + warp] = __popc(same);
                if (digit == d) before = __popc(same & ((1u << lane) - 1));
            }
            __syncthreads();
            if (threadIdx.x == 0)
                for (int i = 0, sum = 0, c; i < 16; ++i) { c = count[i]; count[i] = sum; sum += c; }
            __syncthreads();
            s[count[digit * 4 + warp] + before] = v;
            __syncthreads();
            v = s[threadIdx.x];
            __syncthreads();
        }
        x[threadIdx.x] = v;
    }"""
    x = rng.integers(0, 256, 128).astype("u4")
    want = np.sort(x)
    run_cuda(source, 1, 128, x)
    assert (x == want).all()


def test_fft():
    source = """
    extern "C" __global__ void k(float2* x) {
        __shared__ float2 s[128];
        int t = threadIdx.x;
        for (int i = t; i < 128; i += 64) s[__brev(i) >> 25] = x[i];
        for (int size = 2; size <= 128; size *= 2) {
            __syncthreads();
            int half = size / 2, at = t / half * size + t % half;
            float sine, cosine;
            sincospif(-2.0f * (t % half) / size, &sine, &cosine);
            float2 a = s[at], b = s[at + half];
            float2 c = {b.x * cosine - b.y * sine, b.x * sine + b.y * cosine};
            s[at] = make_float2(a.x + c.x, a.y + c.y);
            s[at + half] = make_float2(a.x - c.x, a.y - c.y);
        }
        __syncthreads();
        for (int i = t; i < 128; i += 64) x[i] = s[i];
    }"""
    x = (rng.standard_normal(128) + 1j * rng.standard_normal(128)).astype("c8")
    want = np.fft.fft(x)
    run_cuda(source, 1, 64, x.view("f4"))
    np.testing.assert_allclose(x, want, atol=1e-3)


def test_k_means():
    source = """
    extern "C" __global__ void k(const float2* p, const float2* centres, int* label, int n, int c) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        float best = 3.4e38f; int where = -1;
        for (int j = 0; j < c; ++j) {
            float d = hypotf(p[i].x - centres[j].x, p[i].y - centres[j].y);
            if (d < best) { best = d; where = j; }
        }
        label[i] = where;
    }"""
    p, centres = rng.random((200, 2)).astype("f4"), rng.random((5, 2)).astype("f4")
    label = np.zeros(200, "i4")
    run_cuda(source, 4, 64, p, centres, label, *i32(200, 5))
    distance = np.hypot(*(p[:, None].astype("f8") - centres).transpose(2, 0, 1))
    assert (label == distance.argmin(1)).all()
