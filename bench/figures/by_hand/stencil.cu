// Stencils of radius R over N^3 elements with indices by hand: row-major, and in bricks of 4^3.
// STAR is 1 for a star, 0 for a cube.
__device__ int row_major(int z, int y, int x) { return (z * N + y) * N + x; }

__device__ int bricks(int z, int y, int x) {
  int brick = ((z >> 2) * (N / 4) + (y >> 2)) * (N / 4) + (x >> 2);
  return brick * 64 + (z & 3) * 16 + (y & 3) * 4 + (x & 3);
}

template <int (*AT)(int, int, int)>
__device__ void stencil(int z, int y, int x, const float* in, float* out) {
  float sum = 0.0f;
  if (R <= z && z < N - R && R <= y && y < N - R && R <= x && x < N - R) {
    if (STAR) {
      sum = in[AT(z, y, x)];
      for (int r = 1; r <= R; ++r) {
        sum += in[AT(z - r, y, x)] + in[AT(z + r, y, x)];
        sum += in[AT(z, y - r, x)] + in[AT(z, y + r, x)];
        sum += in[AT(z, y, x - r)] + in[AT(z, y, x + r)];
      }
    } else {
      for (int k = -R; k <= R; ++k)
        for (int j = -R; j <= R; ++j)
          for (int i = -R; i <= R; ++i) sum += in[AT(z + k, y + j, x + i)];
    }
  }
  out[AT(z, y, x)] = sum;
}

extern "C" __global__ void in_bricks(const float* in, float* out) {
  stencil<bricks>(blockIdx.z * 4 + threadIdx.z, blockIdx.y * 4 + threadIdx.y,
                  blockIdx.x * 4 + threadIdx.x, in, out);
}

extern "C" __global__ void in_rows(const float* in, float* out) {
  stencil<row_major>(blockIdx.z * 4 + threadIdx.z, blockIdx.y * 4 + threadIdx.y,
                     blockIdx.x * 4 + threadIdx.x, in, out);
}
