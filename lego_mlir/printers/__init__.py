"""Layouts printed into other languages: C, CUDA C++, Triton, CuTe, Python and NumPy.

What is printed is the simplified index expression that the compiler builds, too. SymPy's printers
take the expressions that layouts give for SymPy symbols; MLIR's operations are built in `mlir`.
"""

from lego_mlir.printers.c import to_c, to_cuda
from lego_mlir.printers.cute import CuteLayout, to_cute
from lego_mlir.printers.python import to_numpy, to_python
from lego_mlir.printers.triton import TritonTile, to_triton

__all__ = [
    "CuteLayout",
    "TritonTile",
    "to_c",
    "to_cuda",
    "to_cute",
    "to_numpy",
    "to_python",
    "to_triton",
]
