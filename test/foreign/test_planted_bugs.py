"""Bugs in kernels of Triton and CUDA C++, each found by a test of a few lines, in every order.

Every test runs the kernel as it should be, which passes, and with one mistake.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
import triton
import triton.language as tl
from foreign_kernels import cuda_ptx

from lego_mlir.diagnostics import LegoError

pytest_plugins = ["lego_mlir.sim.pytest_plugin"]

SUM = """extern "C" __global__ void sum(const float *x, float *out) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 256 + t];
    __syncthreads();
    for (int n = 128; n > 0; n /= 2) {
        if (t < n) s[t] += s[t + n];
        __syncthreads(); // in the loop
    }
    if (t == 0) out[blockIdx.x] = s[0];
}"""


def cuda(simulator, source, old="", new=""):
    """Return a launcher of a CUDA kernel in which a text is replaced."""
    assert source.count(old) == 1 or not old
    ptx = cuda_ptx(source.replace(old, new))
    name = re.search(r"(\w+)\([^()]*\) {", source.split("__global__")[1])[1]
    return lambda grid, block, *args: simulator.launch(ptx, name, (grid, 1, 1), (block, 1, 1), args)


def random(*shape):
    return np.random.default_rng(0).random(shape, np.float32)


def test_a_missing_barrier_in_a_loop(simulator):
    x, out = random(512), np.zeros(2, np.float32)
    cuda(simulator, SUM)(2, 256, x, out)
    np.testing.assert_allclose(out, x.reshape(2, 256).sum(1), rtol=1e-5)
    with pytest.raises(LegoError, match="data race"):
        cuda(simulator, SUM, "__syncthreads(); // in the loop")(2, 256, x, out)


def test_an_index_out_of_bounds(simulator):
    x, out = random(512), np.zeros(2, np.float32)
    with pytest.raises(LegoError, match="out of bounds"):
        cuda(simulator, SUM, "x[blockIdx.x * 256 + t]", "x[blockIdx.x * 257 + t]")(2, 256, x, out)


SHIFT = """extern "C" __global__ void shift(const float *x, float *y) {
    __shared__ float tile[32 * 33];
    int t = threadIdx.x, i = t / 32, j = t % 32;
    tile[i * 33 + j] = x[i * 32 + j];
    __syncthreads();
    y[i * 32 + j] = tile[j * 33 + i];
}"""


def test_a_transpose_without_a_barrier(simulator):
    x, y = random(32, 32), np.zeros((32, 32), np.float32)
    cuda(simulator, SHIFT)(1, 1024, x, y)
    assert (y == x.T).all()
    with pytest.raises(LegoError, match="data race"):
        cuda(simulator, SHIFT, "__syncthreads();")(1, 1024, x, y)


def test_a_barrier_under_a_condition(simulator):
    x, y = random(32, 32), np.zeros((32, 32), np.float32)
    with pytest.raises(LegoError, match="data race") as e:
        cuda(simulator, SHIFT, "__sync", "if (t < 512) __sync")(1, 1024, x, y)
    assert "under a condition" in e.value.hint


def test_an_element_of_the_tile_that_nobody_writes(simulator):
    x, y = random(32, 32), np.zeros((32, 32), np.float32)
    with pytest.raises(LegoError, match="which nothing has written"):
        cuda(simulator, SHIFT, "tile[j * 33 + i]", "tile[j * 33 + i + 1]")(1, 1024, x, y)


BINS = """extern "C" __global__ void bins(const int *x, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 32) s[t] = 0; // the start
    __syncthreads();
    atomicAdd(&s[x[t]], 1);
    __syncthreads();
    if (t < 32) atomicAdd(&out[t], s[t]);
}"""


def test_a_histogram_without_atomics(simulator):
    x, out = np.arange(256, dtype=np.int32) % 32, np.zeros(32, np.int32)
    cuda(simulator, BINS)(1, 256, x, out)
    assert (out == 8).all()
    with pytest.raises(LegoError, match="data race"):
        cuda(simulator, BINS, "atomicAdd(&s[x[t]], 1)", "s[x[t]] += 1")(1, 256, x, out)


def test_bins_that_nobody_clears(simulator):
    x, out = np.arange(256, dtype=np.int32) % 32, np.zeros(32, np.int32)
    with pytest.raises(LegoError, match="which nothing has written"):
        cuda(simulator, BINS, "if (t < 32) s[t] = 0; // the start")(1, 256, x, out)


LAST = """__device__ int count;
extern "C" __global__ void last(const float *x, float *partial, float *out) {
    __shared__ int ticket;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = x[blockIdx.x];
        __threadfence(); // after the store
        ticket = atomicAdd(&count, 1);
    }
    __syncthreads();
    if (ticket == gridDim.x - 1 && threadIdx.x == 0) {
        __threadfence();
        float sum = 0;
        for (int i = 0; i < gridDim.x; ++i) sum += partial[i];
        *out = sum;
    }
}"""


def test_a_missing_threadfence(simulator):
    x, partial, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32), np.zeros(1, "f4")
    cuda(simulator, LAST)(8, 64, x, partial, out)
    assert out == 28
    with pytest.raises(LegoError, match="data race"):
        cuda(simulator, LAST, "__threadfence(); // after the store")(8, 64, x, partial, out)


RING = """#include <cuda_pipeline.h>
extern "C" __global__ void ring(const float *x, float *y, int n) {
    __shared__ float s[2][64];
    int t = threadIdx.x;
    float sum = 0;
    __pipeline_memcpy_async(&s[0][t], x + t, 4);
    __pipeline_commit();
    for (int i = 0; i < n; ++i) {
        if (i + 1 < n) __pipeline_memcpy_async(&s[(i + 1) % 2][t], x + (i + 1) * 64 + t, 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        sum += s[i % 2][63 - t];
        __syncthreads(); // before the next copy
    }
    y[t] = sum;
}"""


def test_a_ring_of_copies_without_its_second_barrier(simulator):
    x, y = random(6, 64), np.zeros(64, np.float32)
    cuda(simulator, RING)(1, 64, x, y, np.int32(6))
    np.testing.assert_allclose(y, x.sum(0)[::-1], rtol=1e-5)
    with pytest.raises(LegoError, match=r"data race: (cp.async|ld.shared)"):
        cuda(simulator, RING, "__syncthreads(); // before the next copy")(1, 64, x, y, np.int32(6))


def test_a_copy_that_is_not_waited_for(simulator):
    x, y = random(6, 64), np.zeros(64, np.float32)
    with pytest.raises(LegoError, match=r"data race|nothing has written"):
        cuda(simulator, RING, "wait_prior(1)", "wait_prior(2)")(1, 64, x, y, np.int32(6))


PEER = """extern "C" __global__ void __cluster_dims__(2, 1, 1) peer(float *out) {
    __shared__ float s[32];
    unsigned rank, there, here = __cvta_generic_to_shared(&s[threadIdx.x]);
    s[threadIdx.x] = 0;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory"); // start
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank ^ 1));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(rank + 1.0f) : "memory");
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory"); // end
    if (out) out[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x];
}"""


def test_a_cta_that_exits_before_its_peer_has_written(simulator):
    out = np.zeros((2, 32), np.float32)
    cuda(simulator, PEER)(2, 32, out)
    assert out[:, 0].tolist() == [2, 1]
    end = 'asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory"); // end\n'
    with pytest.raises(LegoError, match="exit"):
        cuda(simulator, PEER, end + "    if (out)", "if (rank > 1)")(2, 32, out)


@triton.jit
def scale(x, y, n, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, 2 * value, mask=(at < n) if MASKED else None)


def test_a_store_without_a_mask(simulator):
    x, y = random(1000), np.zeros(1000, np.float32)
    simulator.triton(scale)[(4,)](x, y, 1000, MASKED=True, BLOCK=256)
    assert (y == 2 * x).all()
    with pytest.raises(LegoError, match="out of bounds"):
        simulator.triton(scale)[(4,)](x, y, 1000, MASKED=False, BLOCK=256)


@triton.jit
def total(x, out, ATOMIC: tl.constexpr, BLOCK: tl.constexpr):
    value = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), 0)
    if ATOMIC:
        tl.atomic_add(out, value)
    else:
        tl.store(out, tl.load(out) + value)


def test_a_sum_without_an_atomic(simulator):
    x, out = np.ones(1024, np.float32), np.zeros(1, np.float32)
    simulator.triton(total)[(4,)](x, out, ATOMIC=True, BLOCK=256)
    assert out == 1024
    with pytest.raises(LegoError, match="data race"):
        simulator.triton(total)[(4,)](x, out, ATOMIC=False, BLOCK=256)


@triton.jit
def locked(x, out, lock, SEM: tl.constexpr, BLOCK: tl.constexpr):
    value = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), 0)
    while tl.atomic_cas(lock, 0, 1, sem=SEM) == 1:
        pass
    tl.store(out, tl.load(out) + value)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem=SEM)


def test_a_lock_that_orders_nothing(simulator):
    x, out, lock = np.ones(1024, np.float32), np.zeros(1, np.float32), np.zeros(1, np.int32)
    simulator.triton(locked)[(4,)](x, out, lock, SEM="acq_rel", BLOCK=256)
    assert out == 1024
    with pytest.raises(LegoError, match="data race"):
        simulator.triton(locked)[(4,)](x, out, lock, SEM="relaxed", BLOCK=256)


@triton.jit
def neighbours(x, y, BARRIER: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, 3 * tl.load(x + at))
    if BARRIER:
        tl.debug_barrier()
    tl.store(x + at, tl.load(y + BLOCK - 1 - at))


def test_a_missing_barrier_in_global_memory(simulator):
    x, y = random(256), np.zeros(256, np.float32)
    simulator.triton(neighbours)[(1,)](x, y, BARRIER=True, BLOCK=256)
    assert (x == y[::-1]).all()
    with pytest.raises(LegoError, match="data race"):
        simulator.triton(neighbours)[(1,)](x, y, BARRIER=False, BLOCK=256)
