"""The movements that are measured."""

from __future__ import annotations

from bench.moves.case import MoveCase
from bench.moves.others import other_cases
from bench.moves.permutations import COUNT, permute_case, random_cases

_SHORT: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((64, 3, 512, 512), (0, 2, 3, 1)),
    ((64, 512, 512, 3), (0, 3, 1, 2)),
    ((16, 20, 384, 384), (0, 2, 3, 1)),
    ((5, 8388608), (1, 0)),
    ((8388608, 5), (1, 0)),
    ((128, 96, 1024, 4), (0, 2, 1, 3)),
)
"""With short dimensions: channels of images, few rows, few columns."""


def cases(seed: int) -> list[MoveCase]:
    """Return all cases, with random permutations of a seed."""
    short = [
        permute_case("short", *shape, dtype) for shape in _SHORT for dtype in ("f32", "f16", "i8")
    ]
    return [*short, *other_cases(), *random_cases(COUNT, seed)]
