"""Configs to choose from: the least that each one costs is known before it is worked out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from lego_mlir.kernels.permute.costs.accesses import Accesses

Tile = tuple[int, ...]
Config = TypeVar("Config")


@dataclass(frozen=True, slots=True)
class Candidate(Generic[Config]):
    """A config that is worked out only if it may be the cheapest.

    Attributes:
        least: cycles that it takes at least.
        order: what comes first of configs that cost the same.
        work_out: returns the config, and what it accesses.
    """

    least: float
    order: tuple[object, ...]
    work_out: Callable[[], tuple[Config, Accesses]]


def of_tiles(
    tiles: Iterable[Tile],
    configs_of: Callable[[Tile], Iterable[Config]],
    count: Callable[..., Accesses],
    work_out: Callable[[Config], tuple[Config, Accesses]],
    most: int,
) -> list[Candidate[Config]]:
    """Return the configs of tiles as candidates, in the order of the tiles.

    Args:
        tiles: the best ones first.
        configs_of: returns the configs of a tile.
        count: returns what a config accesses, with `at_least` the least that it may access.
        work_out: as of a candidate, of its config.
        most: so many tiles are looked at, of those that have configs.
    """
    found: list[Candidate[Config]] = []
    looked_at = 0
    for tile in tiles:
        configs = list(configs_of(tile))
        for number, config in enumerate(configs):
            least = count(config, at_least=True).cycles
            found.append(Candidate(least, (tile, number), partial(work_out, config)))
        looked_at += bool(configs)
        if looked_at == most:
            break
    return found


def ranked(candidates: Iterable[Candidate[Config]]) -> list[tuple[Config, Accesses]]:
    """Return all configs and what they access, the cheapest first."""
    found = [(each.order, *each.work_out()) for each in candidates]
    found.sort(key=lambda each: (each[2].cycles, each[0]))
    return [(config, accesses) for _, config, accesses in found]


def cheapest(
    candidates: Iterable[Candidate[Config]], below: float = float("inf")
) -> tuple[Config, Accesses] | None:
    """Return the cheapest config and what it accesses; `None` if none costs so little.

    Configs that cost more than another one at least are not worked out.

    Args:
        candidates: the configs.
        below: the most cycles.
    """
    best: tuple[float, tuple[object, ...], Config, Accesses] | None = None
    for each in sorted(candidates, key=lambda each: each.least):
        if each.least > below:
            break
        config, accesses = each.work_out()
        if accesses.cycles > below:
            continue
        if best is None or (accesses.cycles, each.order) < best[:2]:
            best = (accesses.cycles, each.order, config, accesses)
            below = accesses.cycles
    return best and best[2:]
