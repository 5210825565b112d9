"""The layout algebra: blocks, their composition in dots, and the text notation."""

from lego_mlir.algebra.blocks import Block, Col, GenP, RegP, Row
from lego_mlir.algebra.dots import GroupBy, OrderBy, TileBy, TileOrderBy
from lego_mlir.algebra.layout import Layout
from lego_mlir.algebra.notation.parser import parse_layout
from lego_mlir.algebra.parts import Skew
from lego_mlir.algebra.permutations import (
    Permutation,
    antidiagonal,
    block_cyclic,
    bricks,
    hilbert,
    inverse,
    morton,
    reverse,
    row_groups,
    swizzle,
    tma_swizzle,
)
from lego_mlir.algebra.sizes import ceildiv, size_symbol
from lego_mlir.algebra.strides import Strides, from_strides
from lego_mlir.algebra.verification.verdict import Counterexample, Verdict

__all__ = [
    "Block",
    "Col",
    "Counterexample",
    "GenP",
    "GroupBy",
    "Layout",
    "OrderBy",
    "Permutation",
    "RegP",
    "Row",
    "Skew",
    "Strides",
    "TileBy",
    "TileOrderBy",
    "Verdict",
    "antidiagonal",
    "block_cyclic",
    "bricks",
    "ceildiv",
    "from_strides",
    "hilbert",
    "inverse",
    "morton",
    "parse_layout",
    "reverse",
    "row_groups",
    "size_symbol",
    "swizzle",
    "tma_swizzle",
]
