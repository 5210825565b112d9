"""Permutations of a tile, for GenP: each a pair of functions that invert one another.

They are written with the operators and the functions of `index.functions` alone, so they run on
integers, arrays and symbols alike.
"""

from lego_mlir.algebra.permutations.blocked import block_cyclic, bricks, row_groups
from lego_mlir.algebra.permutations.curves import hilbert, morton
from lego_mlir.algebra.permutations.functions import as_permutation, from_functions, inverse
from lego_mlir.algebra.permutations.names import NAMES, named
from lego_mlir.algebra.permutations.permutation import Index, Permutation
from lego_mlir.algebra.permutations.swizzles import swizzle, tma_swizzle
from lego_mlir.algebra.permutations.traversals import antidiagonal, reverse

__all__ = [
    "NAMES",
    "Index",
    "Permutation",
    "antidiagonal",
    "as_permutation",
    "block_cyclic",
    "bricks",
    "from_functions",
    "hilbert",
    "inverse",
    "morton",
    "named",
    "reverse",
    "row_groups",
    "swizzle",
    "tma_swizzle",
]
