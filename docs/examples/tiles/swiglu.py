"""SwiGLU of tiles of a matrix: silu(gate) * up."""

import numpy as np

import lego_mlir as lg

ROWS, COLUMNS = 100, 300
MATRIX = lg.Tensor["f32", (ROWS, COLUMNS)]


@lg.kernel(grid=(-(-COLUMNS // 128), -(-ROWS // 32)), warps=4)
def swiglu(gate: MATRIX, up: MATRIX, out: MATRIX):
    n, m = lg.block_id("x"), lg.block_id("y")
    out.tile(32, 128)[m, n] = lg.silu(gate.tile(32, 128)[m, n]) * up.tile(32, 128)[m, n]


gate, up = np.random.default_rng(0).standard_normal((2, ROWS, COLUMNS), np.float32)
out = np.empty_like(gate)
swiglu(gate, up, out)
np.testing.assert_allclose(out, gate / (1 + np.exp(-gate)) * up, rtol=1e-5)
