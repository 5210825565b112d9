"""Blocked orders: an array stored brick by brick, by groups of rows, or dealt out among parts."""

from __future__ import annotations

from functools import partial
from typing import Any

from lego_mlir.algebra.permutations.permutation import Index, Permutation, flatten, unflatten
from lego_mlir.algebra.sizes import sizes_text
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, maximum, minimum, where
from lego_mlir.index.polynomial import divides


def bricks(*sizes: int) -> Permutation:
    """Return an array stored brick by brick: row-major among the bricks, and within each.

    A stencil then finds its neighbours in few pages and cache lines
    (papers/lego, on performance portability).

    Args:
        sizes: a brick, one size a dimension; each divides its dimension.

    Raises:
        LegoError: a size is no positive integer; on use, if it is not known to divide.
    """
    text = _text("bricks", sizes)

    def levels(dims: tuple[Int, ...]) -> tuple[Int, ...]:
        return *(n // b for n, b in zip(dims, sizes, strict=True)), *sizes

    def forward(dims: tuple[Int, ...], index: Index) -> Any:
        brick = (i // b for i, b in zip(index, sizes, strict=True))
        within = (i % b for i, b in zip(index, sizes, strict=True))
        return flatten(levels(dims), (*brick, *within))

    def inverse(dims: tuple[Int, ...], flat: Any) -> Index:
        index = unflatten(levels(dims), flat)
        split = zip(index[: len(sizes)], index[len(sizes) :], sizes, strict=True)
        return tuple(brick * b + within for brick, within, b in split)

    check = partial(_check, text, sizes)
    return Permutation(text, forward, inverse, check, divisors=sizes)


def block_cyclic(*pairs: int) -> Permutation:
    """Return an array dealt out in blocks, in turn, to parts; each part's elements lie together.

    Along a dimension, block k belongs to part `k % parts` and is that part's block `k // parts`,
    as ScaLAPACK distributes a matrix over a grid of processes. The order is row-major among the
    parts, then row-major within a part.

    Args:
        pairs: for each dimension the size of a block and the number of parts, one after the
            other: `block_cyclic(block, parts)` for a vector,
            `block_cyclic(row_block, row_parts, column_block, column_parts)` for a matrix.

    Raises:
        LegoError: a parameter is no positive integer, or one is missing; on use, if
            `block * parts` is not known to divide the dimension.
    """
    text = _text("block_cyclic", pairs)
    if len(pairs) % 2:
        raise LegoError(f"{text}: each dimension takes a block and a number of parts")
    blocks, parts = pairs[::2], pairs[1::2]
    rounds = tuple(b * p for b, p in zip(blocks, parts, strict=True))

    def levels(dims: tuple[Int, ...]) -> tuple[Int, ...]:
        return *parts, *(n // p for n, p in zip(dims, parts, strict=True))

    def forward(dims: tuple[Int, ...], index: Index) -> Any:
        dealt = [*zip(index, blocks, parts, strict=True)]
        part = (i // b % p for i, b, p in dealt)
        within = (i // (b * p) * b + i % b for i, b, p in dealt)
        return flatten(levels(dims), (*part, *within))

    def inverse(dims: tuple[Int, ...], flat: Any) -> Index:
        index = unflatten(levels(dims), flat)
        dealt = zip(index[: len(parts)], index[len(parts) :], blocks, parts, strict=True)
        return tuple((i // b * p + part) * b + i % b for part, i, b, p in dealt)

    return Permutation(text, forward, inverse, partial(_check, text, rounds), divisors=rounds)


def row_groups(rows: int) -> Permutation:
    """Return matrices stored in groups of rows, each group column by column.

    The last group may have fewer rows. Tiles of a matmul that are computed in this order need few
    tiles of the operands at a time. The last two dimensions are those of a matrix; others count
    matrices, one after another.

    Args:
        rows: the rows of a group.

    Raises:
        LegoError: it is no positive integer; on use, if there are fewer than two dimensions, or if
            the number of rows is a symbol.
    """
    text = _text("row_groups", (rows,))

    def parts(dims: tuple[Int, ...]) -> tuple[tuple[Int, ...], Int, int, int, int]:
        """Return the outer sizes, columns, and rows: a group, all whole groups, the last."""
        *lead, m, n = dims
        assert isinstance(m, int)
        height = min(rows, m)
        return (*lead, m * n), n, height, m // height * height, m % height

    # Both branches stay in bounds for every index, so that intervals prove those of the result.
    def forward(dims: tuple[Int, ...], index: Index) -> Any:
        outer, n, height, whole, rest = parts(dims)
        *first, i, j = index
        row = minimum(i, whole - 1)
        flat = row // height * (height * n) + j * height + row % height
        if rest:
            last = whole * n + j * rest + maximum(i - whole, 0)
            flat = where(i < whole, flat, last)
        return flatten(outer, (*first, flat))

    def inverse(dims: tuple[Int, ...], flat: Any) -> Index:
        outer, n, height, whole, rest = parts(dims)
        *first, flat = unflatten(outer, flat)
        at = minimum(flat, whole * n - 1)
        i, j = at // (height * n) * height + at % height, at % (height * n) // height
        if rest:
            last = maximum(flat - whole * n, 0)
            is_whole = flat < whole * n
            i, j = where(is_whole, i, whole + last % rest), where(is_whole, j, last // rest)
        return *first, i, j

    def check(dims: tuple[Int, ...]) -> None:
        if len(dims) < 2:
            raise LegoError(f"{text} permutes a matrix, not {sizes_text(dims)}")
        if not isinstance(dims[-2], int):
            raise LegoError(
                f"{text}: the number of rows is the symbol {dims[-2]!r}",
                hint="give it a value, or take RegP if the groups divide the rows",
            )

    return Permutation(text, forward, inverse, check)


def _text(name: str, parameters: tuple[Any, ...]) -> str:
    """Return the permutation's text, once its parameters are known to be positive integers."""
    if not parameters:
        raise LegoError(f"{name} takes positive integers, at least one")
    for n in parameters:
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise LegoError(f"{name} takes positive integers, not {n!r}")
    return f"{name}({', '.join(map(str, parameters))})"


def _check(owner: str, divisors: tuple[int, ...], dims: tuple[Int, ...]) -> None:
    if len(dims) != len(divisors):
        raise LegoError(
            f"{owner} permutes a tile of rank {len(divisors)}, not {sizes_text(dims)} "
            f"of rank {len(dims)}"
        )
    for d, n in zip(divisors, dims, strict=True):
        if divides(d, n):
            continue
        if isinstance(n, int):
            raise LegoError(f"{owner}: {d} does not divide {n} in {sizes_text(dims)}")
        raise LegoError(
            f"{owner}: {d} is not known to divide {n!r}",
            hint=f"declare the symbol with size_symbol(name, multiple_of=[{d}])",
        )
