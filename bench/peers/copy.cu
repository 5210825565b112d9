// The limit of data movements: a copy by 16-byte accesses, with four independent loads in flight
// per thread.

#include <cstdint>

constexpr int THREADS = 256;
constexpr int LOADS = 4;

extern "C" __global__ void __launch_bounds__(THREADS)
copy(const uint4 *in, uint4 *out, std::int64_t bytes) {
  const std::int64_t count = bytes / 16;
  const std::int64_t first = std::int64_t(blockIdx.x) * (THREADS * LOADS) + threadIdx.x;
  uint4 held[LOADS];
#pragma unroll
  for (int k = 0; k < LOADS; ++k)
    if (first + k * THREADS < count)
      held[k] = in[first + k * THREADS];
#pragma unroll
  for (int k = 0; k < LOADS; ++k)
    if (first + k * THREADS < count)
      out[first + k * THREADS] = held[k];
  // The bytes after the last whole vector.
  if (blockIdx.x == 0 && threadIdx.x < bytes % 16) {
    const std::int64_t at = count * 16 + threadIdx.x;
    reinterpret_cast<std::uint8_t *>(out)[at] = reinterpret_cast<const std::uint8_t *>(in)[at];
  }
}
