// Transposes of an N x N matrix of f32 with indices by hand; 32 x 32 threads.
extern "C" __global__ void naive(const float* a, float* b) {
  int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
  b[(blockIdx.x * 32 + threadIdx.x) * N + blockIdx.y * 32 + threadIdx.y] = a[row * N + column];
}

extern "C" __global__ void shared_memory(const float* a, float* b) {
  __shared__ float tile[32][33];
  tile[threadIdx.y][threadIdx.x] =
      a[(blockIdx.y * 32 + threadIdx.y) * N + blockIdx.x * 32 + threadIdx.x];
  __syncthreads();
  b[(blockIdx.x * 32 + threadIdx.y) * N + blockIdx.y * 32 + threadIdx.x] =
      tile[threadIdx.x][threadIdx.y];
}
