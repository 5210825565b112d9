"""Kernels of our own, built on the public API: layout-free, their layouts are arguments."""

from lego_mlir.kernels.matmul import matmul
from lego_mlir.kernels.transpose import permute, transpose

__all__ = ["matmul", "permute", "transpose"]
