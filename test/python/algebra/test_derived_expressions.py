"""What the compiler derives for the layouts people write: the form, and how many operations.

The limits are those that the reference implementation reaches on the same expression (SymPy
operations after its own simplification); an expression may be shorter, never longer.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from lego_mlir.algebra import Col, Layout, OrderBy, Row, parse_layout, size_symbol
from lego_mlir.index import Int, Sym, evaluate, maximum, minimum
from lego_mlir.index.extraction.cost import count
from lego_mlir.index.nodes import plain

FIGURE_9 = (
    "OrderBy(RegP([2, 2], [1, 0]), GenP([3, 3], antidiagonal))"
    ".OrderBy(RegP([2, 3, 2, 3], [0, 2, 1, 3])).GroupBy([6, 6])"
)
EQUATION_7 = "OrderBy(RegP([2, 2, 2, 2, 2], [4, 1, 3, 2, 0])).GroupBy([2, 2, 2, 2, 2])"
NESTED = "OrderBy(Row(8, 8), Col(4, 4), Row(2, 2)).TileBy([8, 8], [4, 4], [2, 2])"


def index_of(layout: Layout, names: Iterable[str]) -> list[Sym]:
    return [Sym(s, 0, n - 1) for s, n in zip(names, layout.dims, strict=True)]


# Layout, names of its indices, the offset's text, the most operations.
APPLY: list[tuple[str, str, str | None, int]] = [
    (
        "OrderBy(Row(M, K)).TileBy([M/BM, K/BK], [BM, BK])",
        "m k i j",
        "BK*k + BM*K*m + K*i + j",  # K*(BM*m + i) + BK*k + j
        10,
    ),
    (
        "OrderBy(Col(M, K)).TileBy([M/BM, K/BK], [BM, BK])",
        "m k i j",
        "BK*M*k + BM*m + M*j + i",  # M*(BK*k + j) + BM*m + i
        10,
    ),
    (
        "OrderBy(Row(M, K)).TileBy([M/128, K/64], [128, 64])",
        "m k i j",
        "K*i + 128*K*m + j + 64*k",
        10,
    ),
    (
        "TileBy([M//BM, K//BK], [BM, BK])",  # nothing is known to divide
        "m k i j",
        "BK*BM*m*(K//BK) + BK*i*(K//BK) + BK*k + j",  # BK*(K//BK*(BM*m + i) + k) + j
        17,
    ),
    (
        "OrderBy(Row(1024, 1024)).TileBy([32, 32], [4, 1], [8, 32])",
        "by bx r z ty tx",
        "32*bx + 32768*by + 8192*r + tx + 1024*ty",  # z has one value: gone
        8,
    ),
    ("OrderBy(Row(32, 32)).TileBy([4, 1], [8, 32])", "r z ty tx", "256*r + tx + 32*ty", 4),
    ("OrderBy(Row(384, 384, 384)).TileBy([48, 48, 48], [8, 8, 8])", "a b c x y z", None, 15),
    ("OrderBy(Row(48, 48, 48), Row(8, 8, 8)).TileBy([48, 48, 48], [8, 8, 8])", "a b c x y z",
     "1179648*a + 24576*b + 512*c + 64*x + 8*y + z", 10),
    ("OrderBy(GenP([n, n], antidiagonal))", "i j", None, 42),
    (EQUATION_7, "a b c d e", "a + 8*b + 2*c + 4*d + 16*e", 8),
    (FIGURE_9, "u v", None, 93),
    ("OrderBy(Row(4096, 4096)).TileBy([32, 32], [4, 4], [4, 4], [8, 8])", "a b c d e f g h",
     None, 14),
    (NESTED, "a b c d e f", "512*a + 64*b + 4*c + 16*d + 2*e + f", 10),
    ("OrderBy(GenP([32, 32], swizzle))", "y x", "32*y + (x ^ y)", 3),
]  # fmt: skip

# Layout, the index at flat position p, the most operations of all together.
INVERSE: list[tuple[str, tuple[str, ...] | None, int]] = [
    ("OrderBy(Row(32, 32))", ("p//32", "p%32"), 3),
    ("OrderBy(Col(32, 32))", ("p%32", "p//32"), 3),
    ("OrderBy(Row(M/BM, N/BN))", ("p//(N//BN)", "p%(N//BN)"), 3),
    ("OrderBy(Row(M/B, M/B))", ("p//(M//B)", "p%(M//B)"), 3),
    (
        "OrderBy(Col(max(m//G, 1), 1), Col(min(m, G), n)).TileBy([max(m//G, 1)*min(m, G), n])",
        None,
        19,
    ),
    (EQUATION_7, ("p%2", "(p//8)%2", "(p//2)%2", "(p//4)%2", "p//16"), 12),
    (NESTED, ("p//512", "(p//64)%8", "(p//4)%4", "(p//16)%4", "(p//2)%2", "p%2"), 38),
    ("OrderBy(Col(m/G, 1), Col(G, n)).TileBy([m, n])", ("G*(p//(G*n)) + p%G", "(p//G)%n"), 82),
    ("OrderBy(GenP([32, 32], swizzle))", ("p//32", "((p//32) ^ (p%32))"), 3),
]


@pytest.mark.parametrize(("text", "names", "offset", "limit"), APPLY, ids=[t for t, *_ in APPLY])
def test_derived_offsets_are_short(text: str, names: str, offset: str | None, limit: int) -> None:
    layout = parse_layout(text)
    x = layout.apply(*index_of(layout, names.split()))
    if offset is not None:
        assert repr(x) == offset
    assert count(x) <= limit


@pytest.mark.parametrize(("text", "index", "limit"), INVERSE, ids=[t for t, *_ in INVERSE])
def test_derived_indices_are_short(text: str, index: tuple[str, ...] | None, limit: int) -> None:
    layout = parse_layout(text)
    xs = layout.inv(Sym("p", 0, layout.size - 1))
    if index is not None:
        assert tuple(repr(x) for x in xs) == index
    assert count(xs) <= limit


def test_a_matmul_tile_is_six_operations() -> None:
    """K*(BM*m + i) + BK*k + j: what one would write by hand."""
    for block, text in (("Row", "Row"), ("Col", "Col")):
        layout = parse_layout(f"OrderBy({block}(M, K)).TileBy([M/BM, K/BK], [BM, BK])")
        assert count(layout.apply(*index_of(layout, ["m", "k", "i", "j"]))) == 6, text


def test_grouped_pid_with_max_and_min() -> None:
    """Rasterization of a matmul in groups of G rows, for any G: right at every pid."""
    m, n, g = size_symbol("m"), size_symbol("n"), size_symbol("G")
    layout = OrderBy(Col(maximum(m // g, 1), 1), Col(minimum(m, g), n))
    pid = Sym("pid", 0, layout.size - 1)
    xs = layout.inv(pid)
    assert count(xs) <= 19
    for sizes in ({"m": 8, "n": 5, "G": 4}, {"m": 3, "n": 4, "G": 8}, {"m": 6, "n": 6, "G": 1}):
        number = layout.bind(**sizes)
        flat = np.arange(number.size)
        for x, truth in zip(xs, number.inv(flat), strict=True):
            assert (evaluate(x, {"pid": flat} | sizes) == truth).all()


def test_no_division_is_left_in_a_transpose() -> None:
    """Every index of the tiled kernel comes from ranges: the offsets are sums and products."""
    layout = OrderBy(Row(256, 256)).TileBy([8, 8], [32, 32])
    block = OrderBy(Row(8, 8)).inv(Sym("b", 0, 63))
    thread = OrderBy(Row(32, 32)).inv(Sym("t", 0, 1023))
    offset = layout.apply(*block, *thread)
    assert repr(plain(offset)) == "8192*(b//8) + 256*(t//32) + 32*(b%8) + t%32"
    assert repr(offset) == "32*b + t + 7936*(b//8) + 224*(t//32)"  # the same, without remainders


def test_inv_and_apply_undo_each_other() -> None:
    for text in (
        "OrderBy(Row(M, K)).TileBy([M/128, K/64], [128, 64])",
        "OrderBy(Col(M, K)).TileBy([M/BM, K/BK], [BM, BK])",
        "OrderBy(Row(24, 10))",
        NESTED,
        EQUATION_7,
    ):
        layout = parse_layout(text)
        p = Sym("p", 0, layout.size - 1)
        assert layout.apply(*layout.inv(p)) is p, text
        index = tuple(index_of(layout, [f"i{k}" for k in range(layout.rank)]))
        assert layout.inv(layout.apply(*index)) == index, text


def test_indices_may_be_expressions() -> None:
    layout = OrderBy(Row(64, 64))
    t: Int = Sym("t", 0, 63)
    assert repr(layout.apply(t, t)) == "65*t"
    assert layout.apply(3, t) is 192 + t


def test_a_remainder_that_is_the_quotient_of_another() -> None:
    """Both are taken out of one sum: the second one's factor is what the first one left of it."""
    layout = parse_layout(
        "OrderBy(Col(2, 11, 1), RegP([2, 1, 3], [2, 0, 1]))"
        ".OrderBy(GenP([66], block_cyclic(33, 2)), RegP([2], [0])).TileBy([12], [1], [11])"
    )
    index = np.unravel_index(np.arange(132), (12, 1, 11))
    offset = layout.apply(*(Sym(f"i{k}") for k in range(3)))
    values = {f"i{k}": i for k, i in enumerate(index)}
    assert (evaluate(offset, values) == layout.apply(*index)).all()
    assert count(offset) < count(plain(offset))
