"""Whether a table of factors is a bijection, and which registers show that it is not."""

from __future__ import annotations

import numpy as np

from lego_mlir.analysis.distributed.factors import Factor, Place, Places, size_of, weights
from lego_mlir.diagnostics import LegoError

_SEARCHED = 1 << 20
"""The most coordinates of one dimension among which a clash is looked for."""


def check_bijection(shape: tuple[int, ...], places: Places) -> None:
    """Refuse factors that hold an element twice as one replica, not at all, or outside the tile.

    The factors of each dimension, sorted by stride, must leave no gap and not overlap: each stride
    is the product of the sizes of the faster ones. So no element is enumerated, unless for the
    message of the error.

    Raises:
        LegoError: names two registers and the element that both hold, or an element that no
            register holds.
    """
    for dim, size in enumerate(shape):
        found = [
            (place, factor, weight)
            for place, factors in zip(Place, places, strict=True)
            for factor, weight in zip(factors, weights(factors), strict=True)
            if factor.dim == dim
        ]
        found.sort(key=lambda x: x[1].stride)
        expected = 1
        for _, factor, _ in found:
            if factor.stride != expected:
                break
            expected *= factor.size
        else:
            if expected == size:
                continue
        raise _clash(shape, dim, found)


def _clash(shape: tuple[int, ...], dim: int, found: list[tuple[Place, Factor, int]]) -> LegoError:
    """Return the error of a dimension whose factors are wrong."""
    size, sizes = shape[dim], [f.size for _, f, _ in found]
    held = size_of(f for _, f, _ in found)
    table = ", ".join(f"{f.size} by {f.stride} ({place.word})" for place, f, _ in found)
    what = f"the factors of dimension {dim}, {table or 'none'}, do not fit its size {size}"
    if held > _SEARCHED or size > _SEARCHED:
        return LegoError(f"{what}: sorted by stride, each stride is the product of faster sizes")

    def element(coordinate: int) -> str:
        return str(tuple(coordinate if k == dim else 0 for k in range(len(shape))))

    def holder(number: int) -> str:
        at = dict.fromkeys(Place, 0)
        for (place, _, weight), digit in zip(
            found, np.unravel_index(number, sizes) if sizes else (), strict=True
        ):
            at[place] += int(digit) * weight
        shown = list(Place)[1:] if not at[Place.CTA] else list(Place)
        return " ".join(f"{place.word} {at[place]}" for place in shown)

    coordinates = np.zeros(1, np.int64)
    for _, f, _ in found:
        coordinates = (coordinates[:, None] + np.arange(f.size) * f.stride).reshape(-1)
    first: dict[int, int] = {}
    for number, coordinate in enumerate(coordinates.tolist()):
        if coordinate >= size:
            return LegoError(
                f"{what}: {holder(number)} would hold element {element(coordinate)}, outside of "
                f"the tile {list(shape)}"
            )
        if coordinate in first:
            return LegoError(
                f"{what}: {holder(first[coordinate])} and {holder(number)} both hold element "
                f"{element(coordinate)}",
                hint="copies of an element are a factor of replicas",
            )
        first[coordinate] = number
    missing = next(c for c in range(size) if c not in first)
    return LegoError(f"{what}: no register holds element {element(missing)}")
