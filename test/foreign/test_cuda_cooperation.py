"""CUDA C++: threads that work together, in warps, CTAs and clusters."""

import numpy as np
import pytest
from foreign_kernels import run_cuda

pytest.importorskip("cuda.bindings.nvrtc")

rng = np.random.default_rng(5)


def i32(*values):
    return [np.int32(value) for value in values]


def test_reduction_by_shuffles():
    source = """
    extern "C" __global__ void k(const float* x, float* out, int n) {
        __shared__ float partial[32];
        float sum = 0;
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            sum += x[i];
        for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
        if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x < 32) {
            sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
            for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
            if (threadIdx.x == 0) atomicAdd(out, sum);
        }
    }"""
    x, out = rng.random(3000).astype("f4"), np.zeros(1, "f4")
    run_cuda(source, 4, 128, x, out, *i32(3000))
    np.testing.assert_allclose(out, x.sum(), rtol=1e-4)


def test_reduction_in_shared_memory():
    source = """
    extern "C" __global__ void k(const int* x, int* out) {
        extern __shared__ int s[];
        int t = threadIdx.x;
        s[t] = x[blockIdx.x * blockDim.x + t];
        for (int d = blockDim.x / 2; d > 0; d /= 2) {
            __syncthreads();
            if (t < d) s[t] += s[t + d];
        }
        if (t == 0) out[blockIdx.x] = s[0];
    }"""
    x, out = rng.integers(-99, 99, (6, 256)).astype("i4"), np.zeros(6, "i4")
    run_cuda(source, 6, 256, x, out, shared_bytes=1024)
    assert (out == x.sum(1)).all()


def test_scan_of_a_block():
    source = """
    extern "C" __global__ void k(int* x) {
        __shared__ int s[2][256];
        int t = threadIdx.x, from = 0;
        s[0][t] = x[t];
        __syncthreads();
        for (int d = 1; d < 256; d *= 2) {
            s[1 - from][t] = s[from][t] + (t >= d ? s[from][t - d] : 0);
            from = 1 - from;
            __syncthreads();
        }
        x[t] = s[from][t];
    }"""
    x = rng.integers(-99, 99, 256).astype("i4")
    want = x.cumsum()
    run_cuda(source, 1, 256, x)
    assert (x == want).all()


def test_scan_by_work_efficient_sweeps():
    source = """
    extern "C" __global__ void k(const int* x, int* out) {
        __shared__ int s[512];
        int t = threadIdx.x, n = 512, offset = 1;
        s[2 * t] = x[2 * t]; s[2 * t + 1] = x[2 * t + 1];
        for (int d = n >> 1; d > 0; d >>= 1, offset *= 2) {
            __syncthreads();
            if (t < d) s[offset * (2 * t + 2) - 1] += s[offset * (2 * t + 1) - 1];
        }
        if (t == 0) s[n - 1] = 0;
        for (int d = 1; d < n; d *= 2) {
            offset >>= 1;
            __syncthreads();
            if (t < d) {
                int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1, v = s[a];
                s[a] = s[b]; s[b] += v;
            }
        }
        __syncthreads();
        out[2 * t] = s[2 * t]; out[2 * t + 1] = s[2 * t + 1];
    }"""
    x, out = rng.integers(-99, 99, 512).astype("i4"), np.zeros(512, "i4")
    run_cuda(source, 1, 256, x, out)
    assert (out == x.cumsum() - x).all()


def test_histogram_by_atomics_on_shared_memory():
    source = """
    extern "C" __global__ void k(const unsigned char* x, unsigned* out, int n) {
        __shared__ unsigned bins[256];
        bins[threadIdx.x] = 0;
        __syncthreads();
        for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
            atomicAdd(&bins[x[i]], 1u);
        __syncthreads();
        atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
    }"""
    x, out = rng.integers(0, 256, 3000).astype("u1"), np.zeros(256, "u4")
    run_cuda(source, 3, 256, x, out, *i32(3000))
    assert (out == np.bincount(x, minlength=256)).all()


def test_bitonic_sort():
    source = """
    extern "C" __global__ void k(int* x) {
        __shared__ int s[256];
        int t = threadIdx.x;
        s[t] = x[t];
        __syncthreads();
        for (int size = 2; size <= 256; size *= 2)
            for (int d = size / 2; d > 0; d /= 2) {
                int other = t ^ d;
                if (other > t && (s[t] > s[other]) == ((t & size) == 0)) {
                    int v = s[t]; s[t] = s[other]; s[other] = v;
                }
                __syncthreads();
            }
        x[t] = s[t];
    }"""
    x = rng.integers(-9999, 9999, 256).astype("i4")
    want = np.sort(x)
    run_cuda(source, 1, 256, x)
    assert (x == want).all()


def test_transpose_with_padding():
    source = """
    extern "C" __global__ void k(const float* in, float* out, int w, int h) {
        __shared__ float tile[32][33];
        int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
        for (int j = 0; j < 32; j += 8)
            if (x < w && y + j < h) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
        __syncthreads();
        x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
        for (int j = 0; j < 32; j += 8)
            if (x < h && y + j < w) out[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
    }"""
    x = rng.random((70, 90)).astype("f4")
    out = np.zeros((90, 70), "f4")
    run_cuda(source, (3, 3), (32, 8), x, out, *i32(90, 70))
    assert (out == x.T).all()


def test_stencil_with_a_halo():
    source = """
    extern "C" __global__ void k(const float* in, float* out, int n) {
        __shared__ float s[64 + 6];
        int g = blockIdx.x * 64 + threadIdx.x, l = threadIdx.x + 3;
        s[l] = g < n ? in[g] : 0;
        if (threadIdx.x < 3) {
            s[l - 3] = g >= 3 ? in[g - 3] : 0;
            s[l + 64] = g + 64 < n ? in[g + 64] : 0;
        }
        __syncthreads();
        float sum = 0;
        #pragma unroll
        for (int o = -3; o <= 3; ++o) sum += s[l + o];
        if (g < n) out[g] = sum;
    }"""
    x, out = rng.random(200).astype("f4"), np.zeros(200, "f4")
    run_cuda(source, 4, 64, x, out, *i32(200))
    np.testing.assert_allclose(out, np.convolve(x, np.ones(7), "same"), rtol=1e-5)


def test_votes():
    source = """
    extern "C" __global__ void k(const int* x, unsigned* out) {
        int t = threadIdx.x, v = x[t];
        unsigned b = __ballot_sync(~0u, v > 0);
        out[t * 4] = b;
        out[t * 4 + 1] = __popc(b & ((1u << t % 32) - 1));
        out[t * 4 + 2] = __any_sync(~0u, v > 90) * 2 + __all_sync(~0u, v > -99);
        out[t * 4 + 3] = __syncthreads_count(v & 1) + __syncthreads_or(v == 5) * 1000
            + __syncthreads_and(v < 100) * 10000;
    }"""
    x = rng.integers(-99, 100, 64).astype("i4")
    out = np.zeros((64, 4), "u4")
    run_cuda(source, 1, 64, x, out)
    for t in range(64):
        warp = x[t // 32 * 32 :][:32]
        ballot = sum(1 << i for i, v in enumerate(warp) if v > 0)
        below = (warp[: t % 32] > 0).sum()
        flags = int((warp > 90).any()) * 2 + int((warp > -99).all())
        count = (x & 1).sum() + 1000 * bool((x == 5).any()) + 10000 * bool((x < 100).all())
        assert out[t].tolist() == [ballot, below, flags, count]


def test_match_and_warp_reductions():
    source = """
    extern "C" __global__ void k(const int* x, unsigned* out) {
        int t = threadIdx.x, p;
        unsigned any = __match_any_sync(~0u, x[t]);
        unsigned all = __match_all_sync(~0u, x[t] / 100, &p);
        out[t * 4] = any;
        out[t * 4 + 1] = all + p;
        out[t * 4 + 2] = __reduce_add_sync(~0u, x[t]) ^ __reduce_max_sync(~0u, x[t]);
        out[t * 4 + 3] = __fns(any, t % 32, 2);
    }"""
    x = np.concatenate([rng.integers(0, 6, 32), rng.integers(0, 200, 32)]).astype("i4")
    out = np.zeros((64, 4), "u4")
    run_cuda(source, 1, 64, x, out)
    for t in range(64):
        warp = x[t // 32 * 32 :][:32]
        same = sum(1 << i for i, v in enumerate(warp) if v == x[t])
        every = 0x1_0000_0000 if (warp // 100 == warp[0] // 100).all() else 0
        after = [i for i in range(t % 32, 32) if same >> i & 1]
        second = after[1] if len(after) > 1 else 2**32 - 1
        reduced = int(warp.sum()) ^ int(warp.max())
        assert out[t].tolist() == [same, every % 2**32, reduced, second]


def test_aggregated_atomics():
    source = """
    extern "C" __global__ void k(const int* x, int* out, int* count) {
        int v = x[blockIdx.x * blockDim.x + threadIdx.x];
        if (v > 0) {
            unsigned active = __activemask();
            int leader = __ffs(active) - 1, lane = threadIdx.x % 32, base;
            if (lane == leader) base = atomicAdd(count, __popc(active));
            base = __shfl_sync(active, base, leader);
            out[base + __popc(active & ((1u << lane) - 1))] = v;
        }
    }"""
    x, out, count = rng.integers(-99, 99, 256).astype("i4"), np.zeros(256, "i4"), np.zeros(1, "i4")
    run_cuda(source, 2, 128, x, out, count)
    assert count[0] == (x > 0).sum()
    assert sorted(out[: count[0]]) == sorted(x[x > 0])


def test_cooperative_groups():
    source = """
    #include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void k(const int* x, int* out) {
        cg::thread_block block = cg::this_thread_block();
        cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
        int v = x[block.thread_rank()];
        for (int d = tile.size() / 2; d > 0; d /= 2) v += tile.shfl_down(v, d);
        __shared__ int s[16];
        if (tile.thread_rank() == 0) s[tile.meta_group_rank()] = v;
        block.sync();
        out[block.thread_rank()] = s[15 - tile.meta_group_rank()];
    }"""
    x, out = rng.integers(-99, 99, 128).astype("i4"), np.zeros(128, "i4")
    run_cuda(source, 1, 128, x, out)
    assert (out == np.repeat(x.reshape(16, 8).sum(1)[::-1], 8)).all()


def test_distributed_shared_memory():
    source = """
    #include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void __cluster_dims__(4, 1, 1) k(const int* x, int* out) {
        __shared__ int s[32];
        cg::cluster_group cluster = cg::this_cluster();
        s[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
        cluster.sync();
        int sum = 0;
        for (unsigned r = 0; r < cluster.num_blocks(); ++r)
            sum += *cluster.map_shared_rank(&s[threadIdx.x], r);
        out[blockIdx.x * 32 + threadIdx.x] = sum;
        cluster.sync();
    }"""
    x, out = rng.integers(-99, 99, (8, 32)).astype("i4"), np.zeros((8, 32), "i4")
    run_cuda(source, 8, 32, x, out)
    want = np.repeat(x.reshape(2, 4, 32).sum(1), 4, axis=0)
    assert (out == want).all()


def test_a_lock_with_fences():
    source = """
    extern "C" __global__ void k(int* lock, int* total) {
        if (threadIdx.x == 0) {
            while (atomicCAS(lock, 0, 1)) __nanosleep(20);
            __threadfence();
            *(volatile int*)total += blockIdx.x;
            __threadfence();
            atomicExch(lock, 0);
        }
    }"""
    lock, total = np.zeros(1, "i4"), np.zeros(1, "i4")
    run_cuda(source, 12, 32, lock, total)
    assert total[0] == sum(range(12))


def test_the_last_block_adds():
    source = """
    __device__ unsigned arrived;
    extern "C" __global__ void k(const int* x, volatile int* partial, int* out) {
        __shared__ bool last;
        int v = __reduce_add_sync(~0u, x[blockIdx.x * 32 + threadIdx.x]);
        if (threadIdx.x == 0) {
            partial[blockIdx.x] = v;
            __threadfence();
            last = atomicInc(&arrived, gridDim.x) == gridDim.x - 1;
        }
        __syncthreads();
        if (last) {
            int v = threadIdx.x < gridDim.x ? partial[threadIdx.x] : 0;
            v = __reduce_add_sync(~0u, v);
            if (threadIdx.x == 0) *out = v;
        }
    }"""
    x = rng.integers(-99, 99, 32 * 20).astype("i4")
    partial, out = np.zeros(20, "i4"), np.zeros(1, "i4")
    run_cuda(source, 20, 32, x, partial, out)
    assert out[0] == x.sum()


def test_cas_loops():
    source = """
    __device__ void multiply(float* at, float by) {
        int* bits = (int*)at;
        int old = *bits, seen;
        do { seen = old; old = atomicCAS(bits, seen, __float_as_int(__int_as_float(seen) * by)); }
        while (old != seen);
    }
    extern "C" __global__ void k(float* product, unsigned long long* most, unsigned short* h) {
        multiply(product, threadIdx.x % 2 ? 2.f : 0.5f);
        multiply(product, threadIdx.x == 9 ? 3.f : 1.f);
        atomicMax(most, (unsigned long long)threadIdx.x << 40);
        unsigned short seen = 0;
        while (true) { unsigned short old = atomicCAS(h, seen, seen + 1);
            if (old == seen) break; seen = old; }
    }"""
    product, most, h = np.ones(1, "f4"), np.zeros(1, "u8"), np.zeros(1, "u2")
    run_cuda(source, 1, 64, product, most, h)
    assert (product[0], most[0], h[0]) == (3, 63 << 40, 64)


def test_named_barriers():
    source = """
    extern "C" __global__ void k(int* out) {
        __shared__ int s[64];
        int t = threadIdx.x;
        if (t < 64) {
            s[t] = t * t;
            asm volatile("bar.arrive 1, 128;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            out[t - 64] = s[127 - t];
        }
    }"""
    out = np.zeros(64, "i4")
    run_cuda(source, 1, 128, out)
    assert (out == np.arange(63, -1, -1) ** 2).all()


@pytest.mark.parametrize("order", ["late", "early", "random"])
def test_a_pipeline_of_cp_async(order):
    source = """
    #include <cuda_pipeline.h>
    extern "C" __global__ void k(const float4* x, float4* out, int tiles) {
        __shared__ float4 s[2][32];
        int t = threadIdx.x;
        __pipeline_memcpy_async(&s[0][t], &x[t], 16);
        __pipeline_commit();
        for (int i = 0; i < tiles; ++i) {
            if (i + 1 < tiles)
                __pipeline_memcpy_async(&s[(i + 1) % 2][t], &x[(i + 1) * 32 + t], 16);
            __pipeline_commit();
            __pipeline_wait_prior(1);
            __syncthreads();
            float4 v = s[i % 2][31 - t];
            out[i * 32 + t] = make_float4(v.w, v.z, v.y, v.x);
            __syncthreads();
        }
    }"""
    x = rng.random((5, 32, 4)).astype("f4")
    out = np.zeros_like(x)
    run_cuda(source, 1, 32, x, out, *i32(5), order=order)
    assert (out == x[:, ::-1, ::-1]).all()


def test_barriers_of_cuda_awbarrier():
    source = """
    #include <cuda_awbarrier_primitives.h>
    extern "C" __global__ void k(const int* x, int* out) {
        __shared__ __mbarrier_t bar;
        __shared__ int s[64];
        int t = threadIdx.x;
        if (t == 0) __mbarrier_init(&bar, 64);
        __syncthreads();
        for (int round = 0; round < 3; ++round) {
            s[t] = x[t] + round;
            __mbarrier_token_t token = __mbarrier_arrive(&bar);
            while (!__mbarrier_test_wait(&bar, token)) {}
            out[round * 64 + t] = s[63 - t];
            token = __mbarrier_arrive(&bar);
            while (!__mbarrier_test_wait(&bar, token)) {}
        }
    }"""
    x, out = rng.integers(0, 99, 64).astype("i4"), np.zeros((3, 64), "i4")
    run_cuda(source, 1, 64, x, out)
    assert (out == x[::-1] + np.arange(3)[:, None]).all()
