"""Kernels and bundles as operators of PyTorch: under torch.compile, with gradients, on any stream.

`custom_op` registers any kernel or bundle; `matmul` and the others are registered already, as
`torch.ops.lego.*`. What computes is in `lego_mlir.kernels`; this room knows tensors and autograd.
Importing it imports PyTorch, and nothing else here does. Tensors in host memory run in the
simulator.
"""

from lego_mlir.torch.custom_op import custom_op
from lego_mlir.torch.gemm import Linear, linear, matmul
from lego_mlir.torch.permutations import permute, transpose
from lego_mlir.torch.several import grouped_matmul, ragged_matmul

__all__ = [
    "Linear",
    "custom_op",
    "grouped_matmul",
    "linear",
    "matmul",
    "permute",
    "ragged_matmul",
    "transpose",
]
