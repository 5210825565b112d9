"""The index expressions that are derived, and the reference implementation's figures for each.

The figures are SymPy operation counts and seconds of the paper's implementation (SymPy and Z3) on
one CPU. If the source does not print a layout or index, the note says which one is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Expression:
    """An index expression: a layout, and the function of it that is derived.

    Attributes:
        name: describes the expression.
        layout: its text; sizes may contain `max` and `min`.
        function: `apply` to a logical index with a symbol per dimension, `inv` of an offset, or
            `mask`.
        operations: the reference's count; `None` if it does not derive the expression.
        seconds: the reference's time.
        sizes: values for the symbols, at which the result is checked.
        note: what is assumed if the source does not say.
    """

    name: str
    layout: str
    function: str = "apply"
    operations: int | None = None
    seconds: float | None = None
    sizes: tuple[Sizes, ...] = ({},)
    note: str = ""


_MATMUL = ({"M": 96, "K": 60, "BM": 32, "BK": 4}, {"M": 35, "K": 22, "BM": 7, "BK": 11})
_FLOOR = (*_MATMUL, {"M": 100, "K": 70, "BM": 32, "BK": 16})
_GROUPS = ({"m": 8, "n": 5, "G": 4}, {"m": 6, "n": 6, "G": 1}, {"m": 9, "n": 2, "G": 9})
_PARTIAL = ({"m": 8, "n": 5, "G": 4}, {"m": 3, "n": 4, "G": 8}, {"m": 7, "n": 3, "G": 2})
_LUD = ({"M": 64, "B": 16}, {"M": 21, "B": 3}, {"M": 5, "B": 5})
_BRICKS = "OrderBy(Row(48, 48, 48), Row(8, 8, 8))"
_BRICKS_OF_BRICKS = (
    "OrderBy(RegP([48, 4, 2, 48, 4, 2, 48, 4, 2], [0, 3, 6, 1, 4, 7, 2, 5, 8]))"
    ".GroupBy([384, 384, 384])"
)
_NESTED = "OrderBy(Row(8, 8), Col(4, 4), Row(2, 2)).TileBy([8, 8], [4, 4], [2, 2])"
_EQUATION_7 = "OrderBy(RegP([2, 2, 2, 2, 2], [4, 1, 3, 2, 0])).GroupBy([2, 2, 2, 2, 2])"

COMPARED = (
    Expression(
        "matmul A, Row, sliced tile",
        "OrderBy(Row(M, K)).TileBy([M/BM, K/BK], [BM, BK])",
        "apply", 10, 0.34, _MATMUL,
    ),
    Expression(
        "matmul A, Col, sliced tile",
        "OrderBy(Col(M, K)).TileBy([M/BM, K/BK], [BM, BK])",
        "apply", 10, 0.18, _MATMUL,
    ),
    Expression(
        "matmul A, floor division, nothing known to divide",
        "TileBy([M//BM, K//BK], [BM, BK])",
        "apply", 17, 0.59, _FLOOR,
        "Row(M, K) is not the tiled space where BK does not divide K, and is refused over it",
    ),
    Expression(
        "grouped pid, with Max and Min",
        "OrderBy(Col(max(m//G, 1), 1), Col(min(m, G), n)).TileBy([max(m//G, 1)*min(m, G), n])",
        "inv", 19, 0.72, _PARTIAL,
    ),
    Expression(
        "grouped pid, m/G",
        "OrderBy(Col(m/G, 1), Col(G, n)).TileBy([m, n])",
        "inv", 82, 1.30, _GROUPS,
    ),
    Expression(
        "transpose, 6-D index into 1024²",
        "OrderBy(Row(1024, 1024)).TileBy([32, 32], [4, 1], [8, 32])",
        "apply", 10, 0.39,
    ),
    Expression(
        "shared tile, 4-D", "OrderBy(Row(32, 32)).TileBy([4, 1], [8, 32])", "apply", 6, 0.09
    ),
    Expression("block id to tile, row", "OrderBy(Row(32, 32))", "inv", 3, 0.07),
    Expression("block id to tile, col", "OrderBy(Col(32, 32))", "inv", 3, 0.12),
    Expression(
        "bricks, read through Row",
        "OrderBy(Row(384, 384, 384)).TileBy([48, 48, 48], [8, 8, 8])",
        "apply", 15, 0.95,
        note="brick and element within it, into the plain array",
    ),
    Expression(
        "bricks, read through bricks",
        f"{_BRICKS}.TileBy([384, 384, 384])",
        "apply", 15, 3.11,
        note="element of the array, into the bricks",
    ),
    Expression(
        "bricks, write",
        f"{_BRICKS}.TileBy([48, 48, 48], [8, 8, 8])",
        "apply", 10, 2.61,
        note="brick and element within it, into the bricks",
    ),
    Expression(
        "LUD, inverse with four constraints",
        "OrderBy(Row(M/B, M/B))",
        "inv", 3, 0.80, _LUD,
        "block id to tile of an M×M matrix: 0 < B, 0 < M, B divides M, id < (M/B)²",
    ),
    Expression(
        "antidiagonal n×n", "OrderBy(GenP([n, n], antidiagonal))",
        "apply", 42, 0.33, ({"n": 5}, {"n": 32}, {"n": 1}),
    ),
    Expression("equation 7", _EQUATION_7, "apply", 8, 0.17),
    Expression("equation 7, inverse", _EQUATION_7, "inv", 12, 0.41),
    Expression(
        "Figure 9",
        "OrderBy(RegP([2, 2], [1, 0]), GenP([3, 3], antidiagonal))"
        ".OrderBy(RegP([2, 3, 2, 3], [0, 2, 1, 3])).GroupBy([6, 6])",
        "apply", 93, 1.19,
    ),
    Expression(
        "four-level tile of 4096²",
        "OrderBy(Row(4096, 4096)).TileBy([32, 32], [4, 4], [4, 4], [8, 8])",
        "apply", 14, 0.90,
    ),
    Expression("three nested levels, inverse", _NESTED, "inv", 38, 4.98),
)  # fmt: skip
"""Expressions that the reference derives, too."""

_PADDED = "OrderBy(Row(M, K)).TileBy([ceildiv(M, 128), ceildiv(K, 64)], [128, 64])"
_UNDIVIDED = ({"M": 300, "K": 130}, {"M": 128, "K": 64}, {"M": 1, "K": 1})

NOT_COMPARED = (
    Expression("XOR swizzle 32×32", "OrderBy(GenP([32, 32], swizzle))"),
    Expression("XOR swizzle 32×32, inverse", "OrderBy(GenP([32, 32], swizzle))", "inv"),
    Expression("TMA swizzle of 128 bytes, f16", "OrderBy(GenP([64, 64], tma_swizzle(128, 2)))"),
    Expression("Morton 1024²", "OrderBy(GenP([1024, 1024], morton))"),
    Expression("Morton 1024², inverse", "OrderBy(GenP([1024, 1024], morton))", "inv"),
    Expression("Hilbert 32²", "OrderBy(GenP([32, 32], hilbert))"),
    Expression("Hilbert 32², inverse", "OrderBy(GenP([32, 32], hilbert))", "inv"),
    Expression("bricks of bricks, read through Row", _BRICKS_OF_BRICKS),
    Expression("bricks of bricks, inverse", _BRICKS_OF_BRICKS, "inv"),
    Expression("bricks by name", "OrderBy(GenP([384, 384, 384], bricks(8, 8, 8)))"),
    Expression("block-cyclic", "OrderBy(GenP([4096], block_cyclic(32, 4)))"),
    Expression("antidiagonal 32², inverse", "OrderBy(GenP([32, 32], antidiagonal))", "inv"),
    Expression("partial tile, offset", _PADDED, "apply", sizes=_UNDIVIDED),
    Expression("partial tile, mask", _PADDED, "mask", sizes=_UNDIVIDED),
)
"""Expressions that the reference does not derive."""
