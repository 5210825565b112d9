"""The layout algebra: blocks, their composition in dots, and the text notation."""

from lego_mlir.algebra.blocks import Block, Col, GenP, RegP, Row
from lego_mlir.algebra.layout import GroupBy, Layout, OrderBy, TileBy, TileOrderBy
from lego_mlir.algebra.notation import parse_layout
from lego_mlir.algebra.permutations import Permutation, antidiagonal, reverse, swizzle
from lego_mlir.algebra.sizes import size_symbol

__all__ = [
    "Block",
    "Col",
    "GenP",
    "GroupBy",
    "Layout",
    "OrderBy",
    "Permutation",
    "RegP",
    "Row",
    "TileBy",
    "TileOrderBy",
    "antidiagonal",
    "parse_layout",
    "reverse",
    "size_symbol",
    "swizzle",
]
