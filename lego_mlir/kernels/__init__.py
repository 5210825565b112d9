"""Kernels of our own, built on the public API: layout-free, their layouts are arguments."""

from lego_mlir.kernels.configuration import Config
from lego_mlir.kernels.grouped import grouped_matmul
from lego_mlir.kernels.hopper import HopperConfig
from lego_mlir.kernels.matmul import matmul
from lego_mlir.kernels.ragged import ragged_matmul
from lego_mlir.kernels.transpose import permute, transpose

__all__ = [
    "Config",
    "HopperConfig",
    "grouped_matmul",
    "matmul",
    "permute",
    "ragged_matmul",
    "transpose",
]
