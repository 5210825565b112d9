"""Linear layouts: layouts of powers of two as linear maps over F2 (papers/linear_layouts).

Overview. Where all sizes are powers of two, a layout maps bits to bits, and very often it is
linear over F2, the field of two elements: the image of `x ^ y` is the XOR of their images. Such a
map is known by the images of the single bits, a small matrix, and linear algebra answers what
otherwise takes a search: is it a bijection, what undoes it, who holds copies, how wide a vector
load may be, whether `ldmatrix` fits.

A worked table. A 4×4 tile in shared memory, row i's elements moved to column `j ^ i`, so that
neither rows nor columns meet in one bank; the offsets by row i and column j:

            j=0  1  2  3
       i=0    0  1  2  3           j: 1 -> 1, 2 -> 2
       i=1    5  4  7  6           i: 1 -> 5, 2 -> 10
       i=2   10 11  8  9
       i=3   15 14 13 12

On the right is all there is to know. Element (3, 2) has the bits i=1, i=2 and j=2, so it lies at
5 ^ 10 ^ 2 = 13. The bits of j make the identity: two elements next to each other stay so only in
even rows, hence no vector of 2 divides the layout.

Examples.
1. Row-major, column-major and every tiling by powers of two permute bits: one bit a column, no
   two the same. These are the RegP, Row and Col of the algebra, in any nesting.
2. XOR swizzles have two bits in some columns: `swizzled`, and GenP's `swizzle`.
3. Threads: the 16×8 accumulator of an `mma` takes (register, lane) to (row, column); register bit
   0 and lane bits 0 and 1 are the bits of the column, the rest those of the row.
4. A tensor smaller than its threads: zero columns. What a zero bit of `lane` tells apart is two
   lanes with the same element (`copies`).
5. The vectors of a copy from memory layout A to registers B: how much of `A⁻¹ B` is the identity
   from register to offset (`vectorization`).
6. What is not linear: the antidiagonal order, sizes like 3; and `reverse`, which is linear but
   for a constant XOR. `from_layout` says so, and which elements show it.

Conventions. Dimensions have names and meet by name: in `A @ B` (first B), `tile * repeats` (the
product: bits of `repeats` above those of `tile`, label by label) and `divide_left`, which undoes
that. They are listed fastest first, as in the paper, where the algebra's sizes are listed slowest
first: Row(4, 8) of (i, j) is a linear layout from (j, i).
"""

from lego_mlir.analysis.linear.access import (
    MatrixAccess,
    Vectorization,
    contiguous_elements,
    conversion,
    matrix_access,
    matrix_tile,
    vectorization,
)
from lego_mlir.analysis.linear.catalogue import (
    LANE,
    OFFSET,
    REGISTER,
    WARP,
    blocked,
    copies,
    is_distributed,
    is_memory,
    mma_accumulator,
    mma_lhs,
    mma_rhs,
    swizzled,
    unswizzled,
    wgmma_accumulator,
    wgmma_lhs,
)
from lego_mlir.analysis.linear.layout import LinearLayout, broadcast, identity, linear
from lego_mlir.analysis.linear.spaces import Dim
from lego_mlir.analysis.linear.translation import (
    from_layout,
    is_bit_permutation,
    to_genp,
    to_layout,
    to_regp,
)

__all__ = [
    "LANE",
    "OFFSET",
    "REGISTER",
    "WARP",
    "Dim",
    "LinearLayout",
    "MatrixAccess",
    "Vectorization",
    "blocked",
    "broadcast",
    "contiguous_elements",
    "conversion",
    "copies",
    "from_layout",
    "identity",
    "is_bit_permutation",
    "is_distributed",
    "is_memory",
    "linear",
    "matrix_access",
    "matrix_tile",
    "mma_accumulator",
    "mma_lhs",
    "mma_rhs",
    "swizzled",
    "to_genp",
    "to_layout",
    "to_regp",
    "unswizzled",
    "vectorization",
    "wgmma_accumulator",
    "wgmma_lhs",
]
