// Tiles of Needleman-Wunsch on a diagonal of tiles with indices by hand, after Rodinia.
// scores: (N + 1) x (N + 1), its first row and column given; similarity: N x N.
extern "C" __global__ void needleman_wunsch(int* scores, const int* similarity, int penalty,
                                            int diagonal) {
  __shared__ int buff[B + 1][B + 1];
  int tile_row = blockIdx.x + max(0, diagonal - (N / B - 1)), tile_column = diagonal - tile_row;
  int* corner = scores + tile_row * B * (N + 1) + tile_column * B;
  const int* own = similarity + tile_row * B * N + tile_column * B;
  for (int k = threadIdx.x; k < B + 1; k += blockDim.x) {
    buff[0][k] = corner[k];
    buff[k][0] = corner[k * (N + 1)];
  }
  __syncthreads();
  for (int d = 0; d < 2 * B - 1; ++d) {
    int i = threadIdx.x, j = d - i;
    if (i < B && 0 <= j && j < B) {
      int match = buff[i][j] + own[i * N + j];
      buff[i + 1][j + 1] = max(match, max(buff[i][j + 1], buff[i + 1][j]) - penalty);
    }
    __syncthreads();
  }
  for (int i = 1; i < B + 1; ++i)
    for (int j = 1 + threadIdx.x; j < B + 1; j += blockDim.x)
      corner[i * (N + 1) + j] = buff[i][j];
}
