"""GEMM configs as programs on tiles and not: which are measured, and how the two compare.

A form is what configs have in common whose kernels are made in one way. Of each form the config is
measured that the library's model ranks first for a GEMM, whether the library chooses it or not.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path

from bench.gemm.references import GemmReference
from bench.sample.families import problem_of
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.planner import plan, ways
from lego_mlir.kernels.gemm.tile_program import why_no_tile_program
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig

FORMS: Mapping[str, Callable[[WgmmaConfig], bool]] = {
    "one tile a CTA": lambda c: not c.persistent_ctas and c.split_k == 1,
    "persistent": lambda c: c.persistent_ctas > 0 and not (c.overlap_epilogue or c.ping_pong),
    "overlapped epilogue": lambda c: c.overlap_epilogue,
    "ping-pong": lambda c: c.ping_pong,
    "split-K through a cluster": lambda c: c.column_slices > 1,
    "split-K through the L2 cache": lambda c: c.sums_through_l2,
    "clusters": lambda c: prod(c.cluster) > 1,
    "clusters of rows and columns": lambda c: min(c.cluster) > 1,
    "persistent clusters": lambda c: prod(c.cluster) > 1 and c.persistent_ctas > 0,
    "split-K of clusters": lambda c: c.sums_through_l2 and prod(c.cluster) > 1,
    "24 or 40 columns": lambda c: c.tile[1] in (24, 40),
    "three consumers": lambda c: c.consumers == 3,
    "persistent with three consumers": lambda c: c.consumers == 3 and c.persistent_ctas > 0,
}
"""By name, whether a config has the form."""

_SLOW = 0.97
"""Ratios below which the report names a kernel."""


def ways_of_choice(reference: GemmReference, target: str) -> list[GemmConfig]:
    """Return the config that is chosen, on tiles and not; none if it has no two ways."""
    chosen = plan(*problem_of(reference), Target.parse(target))
    config = chosen.config
    if not isinstance(config, WgmmaConfig) or why_no_tile_program(config, chosen.problem):
        return []
    return _both_ways([config])


def ways_of_forms(reference: GemmReference, target: str) -> list[GemmConfig]:
    """Return the first config of each form for a GEMM, on tiles and not.

    Those that are not made on tiles yet are left out.
    """
    problem, layouts = problem_of(reference)
    found = ways(problem, layouts, Target.parse(target))
    ranked = [c for c in found if isinstance(c, WgmmaConfig)]
    firsts = [next(filter(has_form, ranked), None) for has_form in FORMS.values()]
    known = [c for c in firsts if c is not None]
    return _both_ways([c for c in known if why_no_tile_program(c, problem) is None])


def _both_ways(configs: Iterable[WgmmaConfig]) -> list[GemmConfig]:
    each = dict.fromkeys(configs)
    return [replace(config, on_tiles=on_tiles) for config in each for on_tiles in (True, False)]


def report(files: Iterable[Path]) -> str:
    """Return a table of ratios of both ways by form, and the kernels that are slow on tiles.

    Args:
        files: results of `sample run`.
    """
    results = [line for file in files for line in file.read_text().splitlines()]
    pairs = [pair for line in results for pair in _pairs(line)]
    measured = [(c, case, r) for c, case, r in pairs if r is not None]
    lines = [
        "The time of a config's kernel by the schedule wgmma, over that of its program on tiles.",
        "",
        "| form | kernels | mean | least | < 0.97 | measured one way only |",
        "|---|" + "--:|" * 5,
    ]
    for name, has_form in {"all": lambda c: True, **FORMS}.items():
        ratios = [r for c, _, r in measured if has_form(c)]
        missing = sum(r is None and has_form(c) for c, _, r in pairs)
        if ratios:
            mean, least = statistics.geometric_mean(ratios), min(ratios)
            cells = [f"{mean:.3f}", f"{least:.3f}", sum(r < _SLOW for r in ratios), missing]
            lines.append(f"| {name} | {len(ratios)} | {' | '.join(map(str, cells))} |")
        elif missing:
            lines.append(f"| {name} | 0 | | | | {missing} |")
    lines += ["", "Slow on tiles:", ""]
    slowest = sorted((x for x in measured if x[2] < _SLOW), key=lambda x: x[2])
    lines += [f"- {r:.3f} {case}: {config}" for config, case, r in slowest]
    return "\n".join(lines) + "\n"


def _pairs(line: str) -> list[tuple[WgmmaConfig, str, float | None]]:
    """Return the configs of a result, its name, and their ratios; `None` if one way is missing."""
    result = json.loads(line)
    rounds = result.get("rounds", {})
    times: dict[WgmmaConfig, dict[bool, list[float]]] = {}
    for candidate in result.get("candidates", ()):
        given = candidate["config"]
        if given is None or given.get("on_tiles") is None or "consumers" not in given:
            continue  # of the choice, or by mma.sync
        lists = {k: tuple(x) if isinstance(x, list) else x for k, x in given.items()}
        config = WgmmaConfig(**{**lists, "on_tiles": None})
        found = times.setdefault(config, {})
        if candidate["name"] in rounds:
            found[given["on_tiles"]] = rounds[candidate["name"]]
    return [(config, result["case"], _ratio(found)) for config, found in times.items()]


def _ratio(times: Mapping[bool, list[float]]) -> float | None:
    if len(times) < 2:
        return None
    both = zip(times[False], times[True], strict=True)
    return statistics.median(before / on_tiles for before, on_tiles in both)
