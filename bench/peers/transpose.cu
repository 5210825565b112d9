// Textbook transposes of row-major matrices, as peers: the three algorithms of introductions to
// CUDA, with a tile of 32x32 elements for each CTA of 32x8 threads.
//
//   naive      reads rows, writes columns: one side is not coalesced
//   coalesced  through a tile in shared memory, whose columns lie in one bank
//   padded     the same with one more element per row, which spreads a column over the banks
//
// `whole` kernels need sizes that are multiples of 32; `masked` ones take any size. blockIdx.z is the
// matrix of a batch.

#include <cstdint>

namespace {

constexpr int TILE = 32;
constexpr int ROWS = 8;

template <typename T, bool MASKED>
__device__ __forceinline__ void naive(const T *in, T *out, int m, int n) {
  const std::int64_t matrix = std::int64_t(blockIdx.z) * m * n;
  const int column = blockIdx.x * TILE + threadIdx.x;
  const int row = blockIdx.y * TILE + threadIdx.y;
#pragma unroll
  for (int step = 0; step < TILE; step += ROWS)
    if (!MASKED || (column < n && row + step < m))
      out[matrix + std::int64_t(column) * m + row + step] =
          in[matrix + std::int64_t(row + step) * n + column];
}

template <typename T, bool MASKED, int PAD>
__device__ __forceinline__ void tiled(const T *in, T *out, int m, int n) {
  __shared__ T tile[TILE][TILE + PAD];
  const std::int64_t matrix = std::int64_t(blockIdx.z) * m * n;
  const int column = blockIdx.x * TILE + threadIdx.x;
  const int row = blockIdx.y * TILE + threadIdx.y;
#pragma unroll
  for (int step = 0; step < TILE; step += ROWS)
    if (!MASKED || (column < n && row + step < m))
      tile[threadIdx.y + step][threadIdx.x] =
          in[matrix + std::int64_t(row + step) * n + column];
  __syncthreads();
  const int across = blockIdx.y * TILE + threadIdx.x;
  const int down = blockIdx.x * TILE + threadIdx.y;
#pragma unroll
  for (int step = 0; step < TILE; step += ROWS)
    if (!MASKED || (across < m && down + step < n))
      out[matrix + std::int64_t(down + step) * m + across] =
          tile[threadIdx.x][threadIdx.y + step];
}

} // namespace

#define KERNELS(BYTES, TYPE, MASK, MASKED)                                                         \
  extern "C" __global__ void naive_##BYTES##_##MASK(const TYPE *in, TYPE *out, int m, int n) {     \
    naive<TYPE, MASKED>(in, out, m, n);                                                            \
  }                                                                                                \
  extern "C" __global__ void coalesced_##BYTES##_##MASK(const TYPE *in, TYPE *out, int m, int n) { \
    tiled<TYPE, MASKED, 0>(in, out, m, n);                                                         \
  }                                                                                                \
  extern "C" __global__ void padded_##BYTES##_##MASK(const TYPE *in, TYPE *out, int m, int n) {    \
    tiled<TYPE, MASKED, 1>(in, out, m, n);                                                         \
  }

#define SIZES(BYTES, TYPE)                                                                         \
  KERNELS(BYTES, TYPE, whole, false)                                                               \
  KERNELS(BYTES, TYPE, masked, true)

SIZES(1, std::uint8_t)
SIZES(2, std::uint16_t)
SIZES(4, std::uint32_t)
SIZES(8, std::uint64_t)
