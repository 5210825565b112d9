"""Space-filling curves: orders in which what is near in the tile is near in memory."""

from __future__ import annotations

from typing import Any, TypeAlias

from lego_mlir.algebra.permutations.permutation import Index, Permutation, is_power_of_two, log2
from lego_mlir.algebra.sizes import sizes_text
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, where

Run: TypeAlias = tuple[int, int, int]
"""Bits of one index that stay side by side: the first, how many, how far up they move."""


def _runs(bits: tuple[int, ...]) -> list[list[Run]]:
    """Return where interleaving takes the bits of each index, the last index lowest.

    A dimension without bits left drops out: what follows of the longest one is a single run.
    """
    runs: list[list[Run]] = [[] for _ in bits]
    position = 0
    for bit in range(max(bits)):
        for mine in (r for r, n in reversed([*zip(runs, bits, strict=True)]) if bit < n):
            if mine and mine[-1][2] == position - bit:
                first, width, distance = mine.pop()
                mine.append((first, width + 1, distance))
            else:
                mine.append((bit, 1, position - bit))
            position += 1
    return runs


def _spread(x: Any, runs: list[Run]) -> Any:
    """Return `x` with its runs of bits moved up.

    Each term moves all bits from the run's first one upwards, on from where the term before has
    left them: that takes a shift, a scale and an addition, and no mask.
    """
    total, behind = 0 * x, 0
    for first, _, distance in runs:
        total = total + x // 2**first * (2 ** (first + distance) - behind * 2**first)
        behind = 2**distance
    return total


def _gathered(flat: Any, runs: list[Run]) -> Any:
    """Return the inverse of `_spread`: the runs of bits moved down, and the others left out."""
    total = 0 * flat
    for first, width, distance in runs:
        total = total + flat // 2 ** (first + distance) % 2**width * 2**first
    return total


def _morton(dims: tuple[Int, ...], index: Index) -> Any:
    runs = _runs(tuple(log2(n) for n in dims))
    first, *others = (_spread(x, r) for x, r in zip(index, runs, strict=True))
    return sum(others, first)


def _morton_inverse(dims: tuple[Int, ...], flat: Any) -> Index:
    return tuple(_gathered(flat, runs) for runs in _runs(tuple(log2(n) for n in dims)))


def _check_powers(dims: tuple[Int, ...]) -> None:
    if not all(is_power_of_two(n) for n in dims):
        raise LegoError(
            f"morton permutes dimensions that are powers of two, not {sizes_text(dims)}"
        )


morton = Permutation("morton", _morton, _morton_inverse, _check_powers)
"""Z-order: the bits of the indices interleaved, the lowest bit being the last dimension's.

Dimensions are powers of two, not necessarily the same: one that runs out of bits drops out. So the
tile is laid out as large cubes, one after another along the longer dimensions.
"""


def _bit(x: Any, b: int) -> Any:
    return x // 2**b % 2


def _evens(bits: int) -> int:
    """Return the number with the lowest so many bits of even position: 0b...10101."""
    return ((1 << 2 * bits) - 1) // 3


def _even_bits(bits: int) -> list[Run]:
    """Return the runs that take bit b to position 2*b."""
    return [(b, 1, b) for b in range(bits)]


def _hilbert(dims: tuple[Int, ...], index: Index) -> Any:
    (i, j), bits = index, log2(dims[0])
    low = i ^ j
    gray = low ^ (low // 2)
    crossed, kept, other = 0 * low, 1, 0
    for b in reversed(range(bits)):
        kept, other = _swapped(_bit(gray, b), kept, other)
        crossed_here = _bit(i, b) ^ kept
        other = other ^ crossed_here
        crossed = crossed + crossed_here * 4**b
    low = _spread(low, _even_bits(bits))
    return 2 * (crossed ^ low ^ _evens(bits)) ^ low


def _hilbert_inverse(dims: tuple[Int, ...], flat: Any) -> Index:
    bits = log2(dims[0])
    crossed = flat ^ (flat // 2) ^ _evens(bits)
    i, low, kept, other, low_above = 0 * flat, 0 * flat, 1, 0, 0
    for b in reversed(range(bits)):
        low_here, crossed_here = _bit(flat, 2 * b), _bit(crossed, 2 * b)
        kept, other = _swapped(low_here ^ low_above, kept, other)
        i, low = i + (crossed_here ^ kept) * 2**b, low + low_here * 2**b
        other, low_above = other ^ crossed_here, low_here
    return i, i ^ low


def _swapped(turned: Any, kept: Any, other: Any) -> tuple[Any, Any]:
    return where(turned, other, kept), where(turned, kept, other)


def _check_power_square(dims: tuple[Int, ...]) -> None:
    if len(dims) != 2 or dims[0] != dims[1] or not is_power_of_two(dims[0]):
        raise LegoError(
            f"hilbert permutes a square tile with a power of two as its side, "
            f"not {sizes_text(dims)}"
        )


hilbert = Permutation("hilbert", _hilbert, _hilbert_inverse, _check_power_square)
"""Hilbert's curve on a 2**k × 2**k tile: elements that follow one another are neighbours.

It begins at (0, 0), ends at (2**k - 1, 0), and goes through the quadrants in the order (0, 0),
(0, 1), (1, 1), (1, 0); through the first it runs transposed, through the last transposed and
point-reflected. From one level of quadrants to the next, two bits go down: `w`, whether the curve
is transposed, and `c`, whether it is reflected. With the bits i and j of a level,

    low  = i ^ j                            neither w nor c changes it
    high = i ^ c ^ (w if low else 0)        the row, were the curve upright
    position of the quadrant = 2*high + low

Instead of w and c we hand down `1 ^ c` and `c ^ w`. A level uses one of them, which it keeps, and
changes the other:

    kept, other = (c ^ w, 1 ^ c) if low else (1 ^ c, c ^ w)
    crossed = i ^ kept                      it is high ^ low ^ 1
    other = other ^ crossed

so they swap roles only where low differs from the level above. That leaves one selection of a
pair and two XORs a level; all else is done on whole words.
"""
