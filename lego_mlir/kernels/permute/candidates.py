"""Configs to choose from: the least that each one costs is known before it is worked out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from lego_mlir.kernels.permute.accesses import Accesses

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
