"""Kernels of our own, built on the public API: layout-free, their layouts are arguments."""

from lego_mlir.kernels.gemm.grouped import grouped_matmul
from lego_mlir.kernels.gemm.matmul import matmul
from lego_mlir.kernels.gemm.problem import MmaConfig
from lego_mlir.kernels.gemm.ragged import ragged_matmul
from lego_mlir.kernels.gemm.wgmma_config import WgmmaConfig
from lego_mlir.kernels.permute.transpose import permute, transpose

__all__ = [
    "MmaConfig",
    "WgmmaConfig",
    "grouped_matmul",
    "matmul",
    "permute",
    "ragged_matmul",
    "transpose",
]
