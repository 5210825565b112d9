"""Kernels and bundles as functions of TVM FFI: launched from PyTorch or C++ without our Python.

`function` compiles the host side of an artifact, its checks and its launches, to machine code. It
needs the extra `lego-mlir[tvm-ffi]`: apache-tvm-ffi calls the code, llvmlite compiles it.
"""

from lego_mlir.tvm_ffi.function import function

__all__ = ["function"]
