// The limit of GEMMs with few rows or columns: two arrays are read once by 16-byte accesses, with
// eight independent loads in flight per thread, and nothing is written.

#include <cstdint>

constexpr int THREADS = 256;
constexpr int LOADS = 8;

extern "C" __global__ void __launch_bounds__(THREADS)
read_only(const uint4 *a, std::int64_t count_a, const uint4 *b, std::int64_t count_b, unsigned *out) {
  const std::int64_t count = count_a + count_b;
  const std::int64_t first = std::int64_t(blockIdx.x) * (THREADS * LOADS) + threadIdx.x;
  uint4 held[LOADS] = {};
#pragma unroll
  for (int k = 0; k < LOADS; ++k) {
    const std::int64_t at = first + k * THREADS;
    if (at < count)
      held[k] = at < count_a ? a[at] : b[at - count_a];
  }
  unsigned bits = 0;
#pragma unroll
  for (int k = 0; k < LOADS; ++k)
    bits += held[k].x ^ held[k].y ^ held[k].z ^ held[k].w;
  if (bits == 0x9e3779b9u && out) // out is null: the loads are needed, and nothing is stored
    *out = bits;
}
