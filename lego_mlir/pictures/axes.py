"""The rows and columns of a picture: which indices of a layout they stand for, and which are drawn.

A layout of tiles of tiles is drawn as its tensor: row i of tile t is row t*T + i. Tiles of a vector
have a row each. A layout of more than two dimensions has all but the last in its rows. Of an axis
that is too long, some positions of some tiles are drawn: the first ones and the last one, on each
level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

from lego_mlir.algebra import Layout


@dataclass(frozen=True, slots=True)
class Axis:
    """The rows, or the columns, of a picture.

    Attributes:
        levels: a size for each dimension of the layout's index that the axis joins, slowest first.
        positions: where each of these dimensions stands in the index.
        coordinates: how many of the levels each coordinate of a label joins, slowest first.
        is_of_tiles: whether each position is a whole tile of a vector.
    """

    levels: tuple[int, ...]
    positions: tuple[int, ...]
    coordinates: tuple[int, ...]
    is_of_tiles: bool = False

    @property
    def has_tiles(self) -> bool:
        """Whether its positions lie in several tiles: on several levels, or a row is a tile."""
        return len(self.levels) > 1 or self.is_of_tiles

    @property
    def size(self) -> int:
        """How many positions there are."""
        return prod(self.levels)

    def sampled(self, most: int) -> Sampled:
        """Return the positions to draw, at most `most` of them (but one at least)."""
        counts = _counts(self.levels, most)
        samples = [_ends(n, count) for n, count in zip(self.levels, counts, strict=True)]
        return Sampled(self, tuple(product(*samples)))


@dataclass(frozen=True, slots=True)
class Sampled:
    """The positions of an axis that are drawn.

    Attributes:
        axis: the axis.
        digits: of each position, its index on each level; ascending.
    """

    axis: Axis
    digits: tuple[tuple[int, ...], ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The position of each on the whole axis."""
        return tuple(joined(d, self.axis.levels) for d in self.digits)

    @property
    def labels(self) -> tuple[str, ...]:
        """The coordinates of each."""
        return tuple(",".join(map(str, self.coordinates(d))) for d in self.digits)

    def coordinates(self, digits: Sequence[int]) -> tuple[int, ...]:
        """Return the coordinates of a position, tiles of tiles joined."""
        found, start = [], 0
        for count in self.axis.coordinates:
            end = start + count
            found.append(joined(digits[start:end], self.axis.levels[start:end]))
            start = end
        return tuple(found)

    @property
    def gaps(self) -> frozenset[int]:
        """The positions k so that some are left out between drawn positions k-1 and k."""
        numbers = self.numbers
        return frozenset(k for k, (a, b) in enumerate(pairwise(numbers), 1) if b != a + 1)

    @property
    def cuts(self) -> frozenset[int]:
        """The positions k so that a tile, or another dimension, begins with drawn position k."""
        return frozenset(k for k, (a, b) in enumerate(pairwise(self.digits), 1) if a[:-1] != b[:-1])

    @property
    def is_whole(self) -> bool:
        """Whether all positions are drawn."""
        return len(self.digits) == self.axis.size


def axes_of(sizes: Sequence[int], levels: int = 1, widest: int = 32) -> tuple[Axis, Axis]:
    """Return rows and columns of a layout.

    Args:
        sizes: of its index, `levels` groups of as many dimensions each.
        levels: of tiles, the outermost first; 1 if the layout has no tiles.
        widest: the most columns of a layout of one dimension, which is drawn in several rows if a
            power of two that is not wider divides it.
    """
    rank = len(sizes) // levels
    if rank == 1 and levels == 1:
        columns = _row_of(sizes[0], widest)
        return Axis((sizes[0] // columns,), (0,), (1,)), Axis((columns,), (0,), (1,))

    if rank == 1:  # tiles of a vector: each has a row
        outer = tuple(range(levels - 1))
        rows = Axis(tuple(sizes[:-1]), outer, (levels - 1,), is_of_tiles=True)
        return rows, Axis((sizes[-1],), (levels - 1,), (1,))

    def axis(dims: range) -> Axis:
        positions = [level * rank + d for d in dims for level in range(levels)]
        return Axis(tuple(sizes[p] for p in positions), tuple(positions), (levels,) * len(dims))

    return axis(range(rank - 1)), axis(range(rank - 1, rank))


def axes_of_layout(layout: Layout, widest: int = 32) -> tuple[Axis, Axis]:
    """Return rows and columns of a layout whose sizes are numbers."""
    sizes = [int(n) for n in layout.dims]
    tiled = layout.view is not None and layout.view.kind == "TileBy"
    return axes_of(sizes, len(layout.view.tiles) if layout.view and tiled else 1, widest)


def joined(digits: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the number that has these digits, slowest first, to these bases."""
    number = 0
    for digit, size in zip(digits, sizes, strict=True):
        number = number * size + digit
    return number


def _row_of(n: int, widest: int) -> int:
    """Return how many of `n` elements stand in a row."""
    if n <= widest:
        return n
    even = n & -n  # the greatest power of two that divides n
    while even > widest:
        even //= 2
    return even if even > 1 else n


def _counts(levels: Sequence[int], most: int) -> list[int]:
    """Return how many positions are drawn of each level: at most `most` of all together."""
    if prod(levels) <= most:
        return list(levels)
    counts = [1] * len(levels)

    def grow(level: int, goal: int) -> None:
        others = prod(counts) // counts[level]
        counts[level] = max(1, min(levels[level], goal, most // others))

    innermost = len(levels) - 1
    grow(innermost, 4)
    for level in range(innermost):
        grow(level, 2)  # two tiles of each level, then more of what lies in them
    grow(innermost, most)
    for level in range(innermost):
        grow(level, most)
    return counts


def _ends(n: int, count: int) -> list[int]:
    """Return `count` of 0 .. n-1: the first ones, and the last if they are two or more."""
    return list(range(n)) if count == n else [*range(count - 1), n - 1] if count > 1 else [0]
