"""Random descriptions of layouts (`random_layouts`), drawn fast, without Hypothesis."""

from __future__ import annotations

from math import prod
from random import Random
from typing import Any

from random_layouts import REGULAR, B, Dim, L, kinds_for

MIXED = (2, 2, 2, 2, 3, 3, 4, 5, 7, 8, 11)
POWERS = (2, 2, 4, 8)


def pool(random: Random, most: int) -> list[int]:
    """Return factors whose product, at most `most`, is the number of elements."""
    numbers = random.choice((MIXED, MIXED, POWERS))
    factors: list[int] = []
    for factor in random.choices(numbers, k=random.randint(1, 12)):
        if prod(factors) * factor <= most:
            factors.append(factor)
    return factors


def dealt(random: Random, factors: list[int], slots: int) -> list[Dim]:
    """Return the factors in a random order, dealt to so many dimensions."""
    dims: list[list[int]] = [[] for _ in range(slots)]
    for factor in random.sample(factors, len(factors)):
        random.choice(dims).append(factor)
    return [tuple(dim) for dim in dims]


def layout(random: Random, factors: list[int]) -> L:
    """Return a layout of as many elements as the product of the factors."""
    view = random.choice(("GroupBy", "TileBy", "TileBy", None))
    least = 0 if view else 1
    orders = tuple(
        (kind, blocks(random, factors, kind == "TileOrderBy" or view == "TileBy"))
        for kind in random.choices(
            ("OrderBy", "OrderBy", "TileOrderBy"), k=max(least, random.randint(0, 3))
        )
    )
    if view is None:
        return L(orders, None)
    levels = random.randint(1, 3)
    rank = random.randint(1, 6 // levels)
    dims = dealt(random, factors, levels * rank)
    return L(orders, (view, tuple(tuple(dims[k * rank : (k + 1) * rank]) for k in range(levels))))


def blocks(random: Random, factors: list[int], one_rank: bool) -> tuple[B, ...]:
    """Return blocks that use up the factors; all of one rank where levels must meet."""
    count = random.randint(1, 3)
    rank = random.randint(1, 6 // count)
    ranks = [rank if one_rank else random.randint(1, 6 // count) for _ in range(count)]
    twins = [f for f in set(factors) if factors.count(f) >= 2]
    if 2 in ranks and twins and random.random() < 0.3:  # two equal dimensions, for antidiagonal
        return _with_square(random, factors, ranks, random.choice(sorted(twins)))
    dims = iter(dealt(random, factors, sum(ranks)))
    return tuple(block(random, tuple(next(dims) for _ in range(r))) for r in ranks)


def _with_square(random: Random, factors: list[int], ranks: list[int], side: int) -> tuple[B, ...]:
    rest = list(factors)
    rest.remove(side)
    rest.remove(side)
    square = ranks.index(2)
    others = sum(ranks) - 2
    if not others and rest:  # nowhere to go for the rest
        return tuple(block(random, ((side,), (side, *rest))) for _ in ranks)
    dims = iter(dealt(random, rest, others)) if others else iter(())
    shapes = [
        ((side,), (side,)) if k == square else tuple(next(dims) for _ in range(r))
        for k, r in enumerate(ranks)
    ]
    return tuple(block(random, shape) for shape in shapes)


def block(random: Random, dims: tuple[Dim, ...]) -> B:
    """Return a block of these dimensions, permuted by anything that can permute them."""
    sizes = [prod(dim) for dim in dims]
    kinds = ["Row", "Col", "RegP", "RegP", "reverse", "bricks", "block_cyclic", *kinds_for(sizes)]
    if len(sizes) == 2 and sizes[0] == sizes[1]:
        kinds += ["antidiagonal"] * 4
    if len(sizes) > 1 and all(isinstance(n, int) for n in dims[-2]):
        kinds += ["row_groups"] * 2
    kind = random.choice(kinds)
    inverted = kind not in REGULAR and random.random() < 0.2
    return B(dims, kind, parameters(random, kind, dims), inverted)


def parameters(random: Random, kind: str, dims: tuple[Dim, ...]) -> tuple[int, ...]:
    """Return the arguments of a permutation for the tile that it permutes."""
    sizes = [prod(dim) for dim in dims]
    match kind:
        case "RegP":
            return tuple(random.sample(range(len(dims)), len(dims)))
        case "swizzle":
            columns = sizes[1].bit_length() - 1
            vec = random.randint(0, columns)
            return 1 << vec, 1 << random.randint(0, 2), 1 << random.randint(0, columns - vec)
        case "tma_swizzle":
            fits: list[Any] = [
                (mode, element)
                for mode in (32, 64, 128)
                for element in (1, 2, 4, 8, 16)
                if prod(sizes) % (mode // element) == 0
            ]
            return random.choice(fits)  # type: ignore[no-any-return]
        case "row_groups":
            return (random.randint(1, sizes[-2] + 1),)
        case "bricks":
            return tuple(prod(dealt(random, list(dim), 2)[0]) for dim in dims)
        case "block_cyclic":
            return tuple(prod(part) for dim in dims for part in dealt(random, list(dim), 3)[:2])
    return ()
