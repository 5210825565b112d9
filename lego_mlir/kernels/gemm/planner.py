"""Which schedule computes a product, and how it divides it.

On Hopper, `wgmma` where TMA can copy the matrices; anything else is for `hmma`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lego_mlir.algebra import Layout
from lego_mlir.analysis.instructions.tma_boxes import tensor_map
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.specs import spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm import mma_heuristic, tuned_table, wgmma_heuristic
from lego_mlir.kernels.gemm.matrices import tiled
from lego_mlir.kernels.gemm.problem import BYTES, MmaConfig, Problem
from lego_mlir.kernels.gemm.wgmma_config import WgmmaConfig
from lego_mlir.kernels.gemm.wgmma_shared_layouts import ROWS, panels, panels_of_columns

HOPPER, OTHER = WgmmaConfig.schedule, MmaConfig.schedule
HOPPER_TARGET = "sm_90a"
_ROW = 128
"""Bytes of a tile's contiguous dimension."""

_SHOWN = 5
"""Estimates in an explanation."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a product is computed.

    Attributes:
        problem: what is multiplied.
        config: how it is divided.
        is_transposed: that is the transpose of what was asked for, B' A'.
        schedule: the name or file of the schedule.
        target: that it is for.
        refusal: why `wgmma` cannot do it, where that would be the target's schedule.
    """

    problem: Problem
    config: MmaConfig | WgmmaConfig
    is_transposed: bool
    schedule: str
    target: Target
    refusal: LegoError | None

    @property
    def explanation(self) -> str:
        """What was chosen, what it is thought to take, and what else could have been."""
        canonical = _canonical(self.problem)[0]
        gpu = spec_of(self.target).name
        estimates: Sequence[mma_heuristic.Estimate] | Sequence[wgmma_heuristic.WgmmaEstimate]
        if isinstance(self.config, WgmmaConfig):
            estimates = wgmma_heuristic.estimates(canonical, self.target)
        else:
            estimates = mma_heuristic.estimates(canonical, self.target)
        p = self.problem
        batch = f", {p.batch} products" if p.batch > 1 else ""
        lines = [
            f"{p.m}×{p.n}×{p.k} of {p.dtype}, A by {p.a}, B by {p.b}, C of {p.out} by {p.c}{batch}"
            + (" (the transpose of what is asked for)" if self.is_transposed else ""),
            f"schedule   {self.schedule}, for {self.target.name}, taken for an {gpu}",
        ]
        if self.refusal is not None:
            lines.append(f"not {HOPPER}  {self.refusal.message}")
        measured = tuned_table.lookup(gpu, canonical, type(self.config))
        lines.append(f"division   {self.config}{', as measured' * (measured == self.config)}")
        lines.append(
            "settings   "
            + ", ".join(f"{name} = {n}" for name, n in self.config.params(self.problem).items())
        )
        lines.append("estimates")
        return "\n".join(lines + [f"  {found}" for found in estimates[:_SHOWN]])


def plan(
    problem: Problem,
    places: Sequence[Layout],
    target: Target,
    schedule: str | None = None,
    config: MmaConfig | WgmmaConfig | None = None,
    promote: int = 0,
) -> Plan:
    """How a product is computed.

    Args:
        problem: what is asked for.
        places: where A, B and C lie.
        target: the GPU architecture.
        schedule: a schedule's name or file, if it is not to be chosen.
        config: the division, if it is not to be chosen.
        promote: steps over k that tensor cores add up before threads do; 0 as the division says.

    Raises:
        LegoError: the schedule that is asked for cannot compute it, or not divided so.
    """
    if config is not None and not isinstance(config, MmaConfig | WgmmaConfig):
        raise LegoError(
            f"matmul: {config!r} is no division of a product",
            hint="Config((128, 128, 64), (2, 2), stages=3) is one",
        )
    schedule = schedule or (config.schedule if config is not None else None)
    refusal = None
    if schedule in (None, HOPPER) and (schedule or target.name == HOPPER_TARGET):
        refusal = refusal_of(problem, places)
        if refusal is not None and schedule == HOPPER:
            raise refusal
        schedule = OTHER if refusal is not None else HOPPER
    schedule = schedule or OTHER
    for kind in (MmaConfig, WgmmaConfig):
        if isinstance(config, kind) and schedule in {HOPPER, OTHER} - {kind.schedule}:
            raise LegoError(
                f"matmul: {config} is a division for the schedule '{kind.schedule}', "
                f"not for '{schedule}'",
                hint="leave out one of config and schedule",
            )
    canonical, is_transposed = _canonical(problem)
    if config is None:
        config = _chosen(canonical, target, schedule, promote)
    elif promote and isinstance(config, WgmmaConfig):
        config = replace(config, promote=promote)
    if isinstance(config, WgmmaConfig) and config.swap_ab:
        canonical, is_transposed = canonical.transpose, not is_transposed
    config.check(canonical, target.optin_shared_bytes)
    return Plan(canonical, config, is_transposed, schedule, target, refusal)


def divisions(problem: Problem, target: Target, schedule: str) -> list[MmaConfig | WgmmaConfig]:
    """The ways to divide a product by a schedule, those first that the model thinks the fastest."""
    canonical = _canonical(problem)[0]
    if schedule == HOPPER:
        return [found.config for found in wgmma_heuristic.estimates(canonical, target)]
    return [found.config for found in mma_heuristic.estimates(canonical, target)]


def _canonical(problem: Problem) -> tuple[Problem, bool]:
    """The product with a row-major C, and whether it is that of the transposes.

    Tiles of C leave by rows: of a column-major C the transpose is computed.
    """
    is_transposed = problem.c == "col"
    return (problem.transpose if is_transposed else problem), is_transposed


def _chosen(
    problem: Problem, target: Target, schedule: str, promote: int
) -> MmaConfig | WgmmaConfig:
    """The division that was measured to be the fastest, else the model's."""
    if schedule != HOPPER:
        return mma_heuristic.choose(problem, target)
    measured = tuned_table.lookup(spec_of(target).name, problem, WgmmaConfig)
    if measured is not None and not promote:
        return measured
    found = [e.config for e in wgmma_heuristic.estimates(problem, target)]
    return _promoting(problem, target, found, promote) if promote else found[0]


def _promoting(
    problem: Problem, target: Target, configs: Sequence[WgmmaConfig], promote: int
) -> WgmmaConfig:
    """The first of some divisions whose threads have registers for parts of their sums too."""
    for config in configs:
        candidate = replace(config, promote=promote, overlap_epilogue=False)
        multiplied = problem.transpose if config.swap_ab else problem
        try:
            candidate.check(multiplied, target.optin_shared_bytes)
        except LegoError:
            continue
        return candidate
    raise LegoError(f"matmul: no division of the product can promote {promote} steps")


def slower(what: str, refusal: LegoError) -> str:
    """A warning that another schedule has to do, and what would change that.

    Args:
        what: the function that was called.
        refusal: why the target's own schedule cannot.
    """
    hint = f"\nhint: {refusal.hint}" if refusal.hint else ""
    return (
        f"{what}: {refusal.message}; so the schedule is '{OTHER}', not '{HOPPER}', which "
        f"is up to twice as fast{hint}\nschedule='{OTHER}' says that this is meant"
    )


def refusal_of(problem: Problem, places: Sequence[Layout]) -> LegoError | None:
    """Why TMA or `wgmma` cannot take a product's matrices; `None` if they can.

    Args:
        problem: what is multiplied.
        places: where A, B and C lie.
    """
    size = BYTES[problem.dtype]
    if size == 1 and (problem.a, problem.b) != ("row", "col"):
        return LegoError(
            f"wgmma multiplies {problem.dtype} only along k, and A is by {problem.a}, "
            f"B by {problem.b}",
            hint="a row-major A and a column-major B: b=OrderBy(Col(k, n))",
        )
    kinds = ((problem.a, size), (problem.b, size), (problem.c, BYTES[problem.out]))
    for name, layout, (order, bytes_) in zip("ABC", places, kinds, strict=True):
        width = _ROW // bytes_
        is_row = order == "row"
        tile = (ROWS, width) if is_row else (width, ROWS)
        shared = (panels if is_row else panels_of_columns)(*tile, bytes_)
        try:
            ones = (1,) * (layout.rank - 2)
            tensor_map(tiled(layout, (*ones, *tile)), shared[:, :], bytes_)
        except LegoError as e:
            return LegoError(f"{name}: {e.message}", hint=e.hint)
    return None
