// The LU decomposition of an N x N matrix in tiles of B x B with indices by hand, after Rodinia.
extern "C" __global__ void diagonal(float* a, int step) {
  __shared__ float tile[B][B];
  int t = threadIdx.x;
  float* own = a + step * B * N + step * B;
  for (int i = 0; i < B; ++i) tile[i][t] = own[i * N + t];
  __syncthreads();
  for (int k = 0; k < B - 1; ++k) {
    if (t > k) {
      tile[t][k] /= tile[k][k];
      for (int j = k + 1; j < B; ++j) tile[t][j] -= tile[t][k] * tile[k][j];
    }
    __syncthreads();
  }
  for (int i = 0; i < B; ++i) own[i * N + t] = tile[i][t];
}

extern "C" __global__ void perimeter(float* a, int step) {
  __shared__ float tile[B][B];
  int later = step + 1 + blockIdx.x, t = threadIdx.x & (B - 1);
  if (threadIdx.x < B)
    for (int i = 0; i < B; ++i) tile[i][t] = a[(step * B + i) * N + step * B + t];
  __syncthreads();
  if (threadIdx.x < B) {
    float* top = a + step * B * N + later * B + t;
    for (int i = 1; i < B; ++i) {
      float x = top[i * N];
      for (int k = 0; k < i; ++k) x -= tile[i][k] * top[k * N];
      top[i * N] = x;
    }
  } else {
    float* left = a + (later * B + t) * N + step * B;
    for (int j = 0; j < B; ++j) {
      float x = left[j];
      for (int k = 0; k < j; ++k) x -= left[k] * tile[k][j];
      left[j] = x / tile[j][j];
    }
  }
}

extern "C" __global__ void internal(float* a, int step) {
  __shared__ float left[B][B], top[B][B];
  int row = step + 1 + blockIdx.y, column = step + 1 + blockIdx.x, i = threadIdx.y, j = threadIdx.x;
  left[i][j] = a[(row * B + i) * N + step * B + j];
  top[i][j] = a[(step * B + i) * N + column * B + j];
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < B; ++k) sum += left[i][k] * top[k][j];
  a[(row * B + i) * N + column * B + j] -= sum;
}
