"""The planner: which schedule computes a GEMM, or several in one launch, and with which config.

On sm_90a the schedule is `persistent` if TMA can copy the matrices; else it is `cp_async`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.specs import GpuSpec, spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm import tile_program, tuned_table
from lego_mlir.kernels.gemm.choice import (
    WGMMA_TARGET,
    Option,
    needed_for_wgmma,
    not_along_k,
    options,
)
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.gemv import heuristic as gemv_heuristic
from lego_mlir.kernels.gemm.gemv.config import GemvConfig
from lego_mlir.kernels.gemm.heuristic import Heuristic
from lego_mlir.kernels.gemm.matrices import ALIGNMENT
from lego_mlir.kernels.gemm.mma import heuristic as mma_heuristic
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.problem import Problem, operands_of
from lego_mlir.kernels.gemm.unaligned.remedies import NO_REMEDIES, Remedies, refusals
from lego_mlir.kernels.gemm.wgmma import heuristic as wgmma_heuristic
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig
from lego_mlir.kernels.public import warn_user

PERSISTENT, CP_ASYNC, GEMV = WgmmaConfig.schedule, MmaConfig.schedule, GemvConfig.schedule

HEURISTICS: dict[str, Heuristic] = {
    CP_ASYNC: mma_heuristic,
    PERSISTENT: wgmma_heuristic,
    GEMV: gemv_heuristic,
}
"""By schedule. Schedules of users take the configs of `cp_async`."""

_ESTIMATES = 5
"""Estimates that an explanation shows."""


EpilogueKind: TypeAlias = Literal["values", "tiles"]
"""What an epilogue computes with besides the accumulator: numbers, rows and columns, or tiles of
matrices of C's size."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a GEMM is computed.

    Attributes:
        problem: the GEMM that is computed.
        config: its config.
        is_transposed: whether that is the transpose of the GEMM that the caller described.
        schedule: the name or file of the schedule.
        target: the GPU architecture.
        why_not_wgmma: why `wgmma` cannot compute the GEMM, if it is the target's schedule.
        remedies: what is done about matrices of the caller's GEMM that TMA does not take.
        options: the ways that were considered, the fastest first; none if the caller chose.
        gpu: the card that it is planned for.
    """

    problem: Problem
    config: GemmConfig
    is_transposed: bool
    schedule: str
    target: Target
    why_not_wgmma: LegoError | None
    remedies: Remedies = NO_REMEDIES
    options: tuple[Option, ...] = ()
    gpu: GpuSpec | None = None

    @property
    def steps(self) -> tuple[str, Mapping[str, int]]:
        """The schedule whose steps make the kernel, and its parameters."""
        if not isinstance(self.config, WgmmaConfig):
            return self.schedule, self.config.params(self.problem)
        by_threads = self.remedies.stores_by_threads
        params = tile_program.schedule_params(
            self.config, self.problem, self.target, stores_by_threads=by_threads
        )
        return self.schedule, params

    @property
    def explanation(self) -> str:
        """The config that was chosen, its parameters, and the estimates of the best configs."""
        canonical = with_row_major_c(self.problem)[0]
        gpu = (self.gpu or spec_of(self.target)).name
        p = self.problem
        batch = f", batch of {p.batch}" if p.batch > 1 else ""
        schedule, params = self.steps
        lines = [
            f"{p.m}×{p.n}×{p.k} of {p.dtype}, A by {p.a}, B by {p.b}, C of {p.out} by {p.c}{batch}"
            + (" (the transpose of C)" if self.is_transposed else ""),
            f"schedule   {schedule}, for {self.target.name}, planned for an {gpu}",
        ]
        if self.why_not_wgmma is not None:
            lines.append(f"not wgmma  {self.why_not_wgmma.message}")
        lines += [f"unaligned  {line}" for line in self.remedies.lines()]
        tuned = tuned_table.lookup(gpu, canonical, type(self.config))
        lines.append(f"config     {self.config}{', from the tuned table' * (tuned == self.config)}")
        lines.append("params     " + ", ".join(f"{name} = {n}" for name, n in params.items()))
        lines.append("estimates")
        estimates: Sequence[object] = self.options
        if not estimates:
            estimates = HEURISTICS[self.config.schedule].rank(canonical, self.target)
        return "\n".join(lines + [f"  {found}" for found in estimates[:_ESTIMATES]])


# --------------------------------------------------------------------------------- one GEMM
def plan(
    problem: Problem,
    layouts: Sequence[Layout],
    target: Target,
    schedule: str | None = None,
    config: GemmConfig | None = None,
    promote: int = 0,
    alignment: int = ALIGNMENT,
    gpu: GpuSpec | None = None,
    epilogue: EpilogueKind | None = None,
    by_threads: str = "",
) -> Plan:
    """Return the plan of a GEMM, or of a batch of GEMMs of one size.

    Args:
        problem: the GEMM that the caller describes.
        layouts: the layouts of A, B and C in memory.
        target: the GPU architecture.
        schedule: a schedule's name or file; `None` to choose.
        config: a config; `None` to choose.
        promote: iterations after which accumulators are promoted; 0 as the config says.
        alignment: bytes that the addresses of the matrices are a multiple of.
        gpu: the card; the target's default card if `None`.
        epilogue: what the epilogue computes with, if there is one; a config that is chosen leaves
            registers for it.
        by_threads: operands that nothing but threads can copy, if TMA does not take them.

    Raises:
        LegoError: the given schedule cannot compute the GEMM, or does not take the given config.
    """
    check_config("matmul", config)
    needed = needed_for_wgmma(problem, layouts, target, alignment)
    canonical, is_transposed = with_row_major_c(problem)
    gpu = gpu or spec_of(target)
    considered: list[Option] = []
    asked = (problem, layouts, target, gpu, needed, alignment, epilogue, by_threads)
    if schedule is None and config is None and not promote:
        config = _tuned(canonical, gpu, needed)
        if config is None or not _has_registers(config, epilogue):
            considered = _options(*asked)
            config = considered[0].config
    schedule = schedule or (config.schedule if config is not None else None)
    reason = needed if isinstance(needed, LegoError) else None
    if schedule is None:
        schedule = PERSISTENT if isinstance(needed, Remedies) else CP_ASYNC
    elif schedule == PERSISTENT and reason is not None:
        raise reason
    if config is not None and schedule in {PERSISTENT, CP_ASYNC, GEMV} - {config.schedule}:
        raise _wrong_schedule("matmul", config, schedule)
    done = needed if schedule == PERSISTENT and isinstance(needed, Remedies) else NO_REMEDIES
    if isinstance(config, WgmmaConfig):
        done = done.without_copies_of(operands_of(problem, config.copied_by_threads))
    canonical, _ = with_row_major_c(done.multiplied(problem))
    if config is None:
        heuristic = HEURISTICS.get(schedule, mma_heuristic)
        config = heuristic.choose(canonical, target, promote)
        if not promote and not _has_registers(config, epilogue):
            ranked = heuristic.enumerate_configs(canonical, target)
            config = next((c for c in ranked if _has_registers(c, epilogue)), config)
    elif promote:
        config = config.promoted(promote)
    if config.is_swapped:
        canonical, is_transposed = canonical.transpose, not is_transposed
    config.check(canonical, target.optin_shared_bytes)
    why_not = reason if schedule == CP_ASYNC and considered else None
    return Plan(
        canonical, config, is_transposed, schedule, target, why_not, done, tuple(considered), gpu
    )


def _has_registers(config: GemmConfig, epilogue: EpilogueKind | None) -> bool:
    """Return whether a config leaves registers for an epilogue."""
    return epilogue is None or config.has_epilogue_registers(loads_tiles=epilogue == "tiles")


def _tuned(
    problem: Problem, gpu: GpuSpec, needed: Remedies | LegoError | None
) -> GemmConfig | None:
    """Return the tuned config of a GEMM with a row-major C; `None` if it has none.

    Args:
        problem: the GEMM.
        gpu: the card.
        needed: what `wgmma` needs, which is preferred to `mma.sync` if it can compute the GEMM.
    """
    other = WgmmaConfig if isinstance(needed, Remedies) else MmaConfig
    kinds: tuple[type[GemmConfig], ...] = (GemvConfig, other)
    tuned = (tuned_table.lookup(gpu.name, problem, kind) for kind in kinds)
    return next((config for config in tuned if config is not None), None)


def ways(
    problem: Problem,
    layouts: Sequence[Layout],
    target: Target,
    alignment: int = ALIGNMENT,
    gpu: GpuSpec | None = None,
    epilogue: EpilogueKind | None = None,
    by_threads: str = "",
) -> list[GemmConfig]:
    """Return the configs of all ways to compute a GEMM, the best first; arguments as `plan`."""
    needed = needed_for_wgmma(problem, layouts, target, alignment)
    gpu = gpu or spec_of(target)
    found = _options(problem, layouts, target, gpu, needed, alignment, epilogue, by_threads)
    return [option.config for option in found]


def _options(
    problem: Problem,
    layouts: Sequence[Layout],
    target: Target,
    gpu: GpuSpec,
    needed: Remedies | LegoError | None,
    alignment: int,
    epilogue: EpilogueKind | None,
    by_threads: str,
) -> list[Option]:
    """Return the options that leave registers for the epilogue; all if none does."""
    stores = isinstance(needed, Remedies) and needed.stores_by_threads
    if epilogue is None and stores:
        epilogue = "tiles"  # addresses of C take registers as those of an operand do

    def accept(config: GemmConfig) -> bool:
        is_overlapped = isinstance(config, WgmmaConfig) and config.overlap_epilogue
        return _has_registers(config, epilogue) and not (stores and is_overlapped)

    asked = (problem, layouts, target, gpu, needed, alignment)
    return options(*asked, accept, by_threads) or options(*asked, lambda _: True, by_threads)


def ranked_configs(problem: Problem, target: Target, schedule: str) -> list[GemmConfig]:
    """Return the configs of a GEMM for a schedule, those with the best estimates first."""
    canonical = with_row_major_c(problem)[0]
    heuristic = HEURISTICS.get(schedule, mma_heuristic)
    return [found.config for found in heuristic.rank(canonical, target)]


def with_row_major_c(problem: Problem) -> tuple[Problem, bool]:
    """Return the GEMM with a row-major C, and whether it is the transpose of `problem`.

    Tiles of C are stored by rows, so a column-major C is computed as C' = B' A'.
    """
    is_transposed = problem.c == "col"
    return (problem.transpose if is_transposed else problem), is_transposed


# -------------------------------------------------------------------- several GEMMs in one launch
def plan_grouped(
    what: str,
    problems: Sequence[Problem],
    reason: Callable[[], LegoError | None],
    target: Target,
    schedule: str | None,
    config: GemmConfig | None,
    promote: int,
    count_tiles: Callable[[GemmConfig], int],
) -> GemmConfig:
    """Return the config of several GEMMs in one launch; its schedule is theirs.

    Args:
        what: the function that the user calls, two calls up.
        problems: the GEMMs.
        reason: says why `wgmma` cannot compute all of them; `None` if it can.
        target: the GPU architecture.
        schedule: the schedule's name; `None` to choose.
        config: a config; `None` to choose.
        promote: iterations after which accumulators are promoted; 0 as the config says.
        count_tiles: gives the tiles of all GEMMs in a config.

    Raises:
        LegoError: there is no such schedule, it cannot compute the GEMMs, or no config fits.
    """

    def check(config: GemmConfig) -> None:
        config.check_grouped(what)
        for problem in problems:
            config.check(problem, target.optin_shared_bytes)

    schedule = _schedule_of(what, problems[0], reason, target, schedule, config)
    if config is None:
        heuristic = HEURISTICS[schedule]
        config = heuristic.choose_grouped(problems, target, promote, count_tiles, check)
        if config is None:
            raise LegoError(f"{what}: no config fits all GEMMs")
    config = config.promoted(promote)
    check(config)
    return config


def _schedule_of(
    what: str,
    problem: Problem,
    reason: Callable[[], LegoError | None],
    target: Target,
    schedule: str | None,
    config: GemmConfig | None,
) -> str:
    """Return the schedule of several GEMMs; warn if it is not the target's own."""
    if schedule not in (None, PERSISTENT, CP_ASYNC):
        raise LegoError(
            f"{what}: there is no schedule '{schedule}'",
            hint=f"'{PERSISTENT}', '{CP_ASYNC}', or none",
        )
    check_config(what, config)
    if config is not None and schedule not in (None, config.schedule):
        raise _wrong_schedule(what, config, schedule)
    wanted = schedule or (config.schedule if config is not None else None)
    if wanted == PERSISTENT or (wanted is None and target.name == WGMMA_TARGET):
        found = reason()
        if found is None:
            return PERSISTENT
        if wanted == PERSISTENT:
            raise found
        warn_user(fallback_warning(what, found))
    elif not problem.is_along_k:
        warn_user(byte_copy_warning(what, problem))
    return CP_ASYNC


# ----------------------------------------------------------------------- errors and warnings
def check_config(what: str, config: object) -> None:
    """Check that a config is one, if it is not `None`.

    Raises:
        LegoError: it is not.
    """
    if config is not None and not isinstance(config, GemmConfig):
        raise LegoError(
            f"{what}: config is a MmaConfig, a WgmmaConfig or a GemvConfig, not {config!r}",
            hint="for example MmaConfig((128, 128, 64), (2, 2), stages=3)",
        )


def _wrong_schedule(what: str, config: GemmConfig, schedule: str) -> LegoError:
    return LegoError(
        f"{what}: the config {config} is for the schedule '{config.schedule}', not for "
        f"'{schedule}'",
        hint="leave out one of config and schedule",
    )


def byte_copy_warning(what: str, problem: Problem) -> str:
    """Return the warning that 8-bit elements are transposed on their way to shared memory.

    Args:
        what: the function that was called.
        problem: a GEMM of 8-bit elements.
    """
    return (
        f"{what}: tensor cores multiply {problem.dtype} along k, but A is by {problem.a} and B by "
        f"{problem.b}; so bytes are copied one by one, which is slow\n"
        "hint: a row-major A and a column-major B: b=OrderBy(Col(k, n))"
    )


def fallback_warning(what: str, reason: LegoError) -> str:
    """Return the warning that `cp_async` is used instead of `persistent`.

    Args:
        what: the function that was called.
        reason: why `wgmma` cannot compute the GEMM.
    """
    hint = f"\nhint: {reason.hint}" if reason.hint else ""
    return (
        f"{what}: {reason.message}; so the schedule is '{CP_ASYNC}', not '{PERSISTENT}', which is "
        f"up to twice as fast{hint}\nschedule='{CP_ASYNC}' silences this warning"
    )


def why_not_wgmma(problem: Problem, layouts: Sequence[Layout]) -> LegoError | None:
    """Return why TMA or `wgmma` cannot take the matrices of a GEMM; `None` if they can.

    Args:
        problem: the GEMM.
        layouts: the layouts of A, B and C in memory.
    """
    if not problem.is_along_k:
        return not_along_k(problem)
    return next(iter(refusals(problem, layouts).values()), None)
