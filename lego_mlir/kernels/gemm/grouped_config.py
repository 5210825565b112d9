"""What products that share a launch have in common: one schedule, and one division for all."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.specs import spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm import mma_heuristic, wgmma_heuristic
from lego_mlir.kernels.gemm.matmul import by_bytes
from lego_mlir.kernels.gemm.planner import HOPPER, HOPPER_TARGET, OTHER, slower
from lego_mlir.kernels.gemm.problem import BYTES, MmaConfig, Problem
from lego_mlir.kernels.gemm.wgmma_config import WgmmaConfig

Division: TypeAlias = MmaConfig | WgmmaConfig

_PLAIN = ("cluster", "overlap_epilogue", "swap_ab", "split_k")
"""What of a `WgmmaConfig` has to be as it is by default: products differ, and share no tiles."""


def schedule_of(
    what: str,
    problem: Problem,
    refusal: Callable[[], LegoError | None],
    target: Target,
    schedule: str | None,
    config: Division | None,
) -> str:
    """Which schedule it is to be; warns where it is not the target's own.

    Args:
        what: the function that its user calls, two calls up.
        problem: one of the products.
        refusal: says why `wgmma` cannot compute all of them; `None` if it can.
        target: the GPU architecture.
        schedule: its name, if it is not to be chosen.
        config: the division, if it is not to be chosen.

    Raises:
        LegoError: there is no such schedule, it cannot compute them, or not divided so.
    """
    if schedule not in (None, HOPPER, OTHER):
        raise LegoError(f"{what}: no schedule '{schedule}'", hint=f"'{HOPPER}', '{OTHER}', or none")
    if config is not None and schedule not in (None, config.schedule):
        raise LegoError(
            f"{what}: {config} is a division for the schedule '{config.schedule}', not for "
            f"'{schedule}'",
            hint="leave out one of config and schedule",
        )
    asked = schedule or (config.schedule if config is not None else None)
    if asked == HOPPER or (asked is None and target.name == HOPPER_TARGET):
        found = refusal()
        if found is None:
            return HOPPER
        if asked == HOPPER:
            raise found
        warnings.warn(slower(what, found), stacklevel=3)
    elif BYTES[problem.dtype] == 1 and (problem.a, problem.b) != ("row", "col"):
        warnings.warn(by_bytes(what, problem), stacklevel=3)
    return OTHER


def division_of(
    what: str,
    problems: Sequence[Problem],
    target: Target,
    schedule: str,
    promote: int,
    count: Callable[[Division], int],
    check: Callable[[Division], None],
) -> Division:
    """The division that suits the products best, of those that all can be divided by.

    Args:
        what: the function that its user calls.
        problems: the products.
        target: the GPU architecture.
        schedule: that computes them.
        promote: steps over k that tensor cores add up before threads do.
        count: the tiles of all products in a division.
        check: raises where they cannot be divided so.

    Raises:
        LegoError: there is none.
    """
    largest = max(problems, key=lambda p: p.m * p.n * p.k)
    candidates: list[Division] = []
    if schedule == OTHER:
        candidates += [found.config for found in mma_heuristic.estimates(largest, target)]
    else:
        processors = spec_of(target).multiprocessors
        for found in wgmma_heuristic.estimates(largest, target):
            tile, consumers, stages = found.config.tile, found.config.consumers, found.config.stages
            plain = WgmmaConfig(tile, consumers, stages, promote=promote)
            persistent_ctas = processors if count(plain) > processors else 0
            candidates.append(replace(plain, persistent_ctas=persistent_ctas))
    fitting = [candidate for candidate in candidates if _fits(candidate, check)]
    if not fitting:
        raise LegoError(f"{what}: no division suits all products")
    on_hopper = [config for config in fitting if isinstance(config, WgmmaConfig)]
    if on_hopper:
        return wgmma_heuristic.ordered_together(on_hopper, problems, spec_of(target))[0]
    return fitting[0]


def _fits(config: Division, check: Callable[[Division], None]) -> bool:
    try:
        check(config)
    except LegoError:
        return False
    return True


def check_plain(what: str, config: Division) -> None:
    """Check that a division has nothing that only a product by itself has.

    Raises:
        LegoError: it has.
    """
    plain = WgmmaConfig((64, 16, 128), 1, 2)
    if isinstance(config, WgmmaConfig) and any(
        getattr(config, name) != getattr(plain, name) for name in _PLAIN
    ):
        raise LegoError(
            f"{what}: {config}", hint=f"leave {', '.join(_PLAIN)} as they are by default"
        )


def promoting(config: Division, promote: int) -> Division:
    """A division whose tensor cores add up so many steps before threads do; 0 as it says."""
    if isinstance(config, WgmmaConfig):
        return replace(config, promote=promote or config.promote)
    return config
