"""What the papers report, on their own GPUs: figures beside which ours stand."""

from __future__ import annotations

PUBLISHED = {
    "matmul f16 row row 8192": "LEGO on an A100: 250 TFLOP/s, as Triton and cuBLAS",
    "grouped GEMM 4 1024": "LEGO on an A100: 0.087 ms, as Triton; cuBLAS 0.073 ms",
    "grouped GEMM 4 4096": "LEGO on an A100: 4.38 ms, as Triton; cuBLAS 2.23 ms",
    "grouped GEMM 4 8192": "LEGO on an A100: 37.0 ms, as Triton; cuBLAS 16.9 ms",
    "softmax f32 4096×8192": "LEGO on an A100: 1506 GB/s; Triton 1499, PyTorch 1540",
    "LayerNorm forward f32 4096×8192": "LEGO on an A100: 1443 GB/s; Triton 1302, PyTorch 975",
    "LayerNorm backward f32 4096×8192": "LEGO on an A100: 1027 GB/s; Triton 1023, PyTorch 581",
    "transpose f32 8192": "LEGO on an A100: 0.707 ms by MLIR; CUDA 0.730 ms",
    "Needleman-Wunsch 4096": "LEGO on an A100: 4.02 ms row-major, 3.03 ms by antidiagonals",
    "Needleman-Wunsch 16384": "LEGO on an A100: 19.7 ms row-major, 12.4 ms by antidiagonals",
    "LU decomposition f32 4096": "LEGO on an A100: 33.7 ms; Rodinia 25.6 ms",
    "LU decomposition f32 8192": "LEGO on an A100: 89 ms; Rodinia 112 ms",
    "stencil star 1 384": "LEGO on an A100: 3.42 ms in rows, 0.99 ms in bricks",
    "stencil star 4 384": "LEGO on an A100: 9.65 ms in rows, 2.50 ms in bricks",
    "stencil cube 1 384": "LEGO on an A100: 11.3 ms in rows, 3.21 ms in bricks",
}
"""By the name of a case; from the LEGO paper's figures and the results in its artifact."""
