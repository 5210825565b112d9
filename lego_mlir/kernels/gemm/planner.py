"""The planner: which schedule computes a GEMM, or several in one launch, and with which config.

On sm_90a the schedule is `wgmma` if TMA can copy the matrices; else it is `hmma`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.specs import spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm import gemv_heuristic, mma_heuristic, tuned_table, wgmma_heuristic
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.gemv_config import MAX_COLUMNS, GemvConfig
from lego_mlir.kernels.gemm.heuristic import Heuristic
from lego_mlir.kernels.gemm.matrices import ALIGNMENT, is_plain
from lego_mlir.kernels.gemm.mma_config import MmaConfig
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.unaligned import NO_REMEDIES, Remedies, refusals, remedies
from lego_mlir.kernels.gemm.wgmma_config import WgmmaConfig

WGMMA, HMMA, GEMV = WgmmaConfig.schedule, MmaConfig.schedule, GemvConfig.schedule
WGMMA_TARGET = "sm_90a"

HEURISTICS: dict[str, Heuristic] = {
    HMMA: mma_heuristic,
    WGMMA: wgmma_heuristic,
    GEMV: gemv_heuristic,
}
"""By schedule. Schedules of users take the configs of `hmma`."""

_ESTIMATES = 5
"""Estimates that an explanation shows."""


_NEAR = 1.1
"""How much longer, by its estimate, a config for few columns may take and still be chosen: the
models of the others have no term for tiles that are mostly padding."""


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
        reasons: lines of an explanation that say why that, or something else, is done.
    """

    problem: Problem
    config: GemmConfig
    is_transposed: bool
    schedule: str
    target: Target
    why_not_wgmma: LegoError | None
    remedies: Remedies = NO_REMEDIES
    reasons: tuple[str, ...] = ()

    @property
    def explanation(self) -> str:
        """The config that was chosen, its parameters, and the estimates of the best configs."""
        canonical = _canonical(self.problem)[0]
        gpu = spec_of(self.target).name
        p = self.problem
        batch = f", batch of {p.batch}" if p.batch > 1 else ""
        lines = [
            f"{p.m}×{p.n}×{p.k} of {p.dtype}, A by {p.a}, B by {p.b}, C of {p.out} by {p.c}{batch}"
            + (" (the transpose of C)" if self.is_transposed else ""),
            f"schedule   {self.schedule}, for {self.target.name}, planned for an {gpu}",
        ]
        if self.why_not_wgmma is not None:
            lines.append(f"not {WGMMA}  {self.why_not_wgmma.message}")
        lines += [f"unaligned  {line}" for line in (*self.reasons, *self.remedies.lines())]
        tuned = tuned_table.lookup(gpu, canonical, type(self.config))
        lines.append(f"config     {self.config}{', from the tuned table' * (tuned == self.config)}")
        params = self.config.params(self.problem)
        lines.append("params     " + ", ".join(f"{name} = {n}" for name, n in params.items()))
        lines.append("estimates")
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

    Raises:
        LegoError: the given schedule cannot compute the GEMM, or does not take the given config.
    """
    check_config("matmul", config)
    schedule = schedule or (config.schedule if config is not None else None)
    is_free = schedule is None
    reason: LegoError | None = None
    done, reasons = NO_REMEDIES, tuple[str, ...]()
    if schedule in (None, WGMMA) and (schedule or target.name == WGMMA_TARGET):
        found = _for_wgmma(problem, layouts, alignment)
        if isinstance(found, LegoError):
            if schedule == WGMMA:
                raise found
            schedule, reason = HMMA, found
        elif found and schedule is None:
            schedule, reasons = _faster(problem, found, target)
        else:
            schedule = WGMMA
        if schedule == WGMMA and isinstance(found, Remedies):
            done = found
    schedule = schedule or HMMA
    if config is not None and schedule in {WGMMA, HMMA, GEMV} - {config.schedule}:
        raise _wrong_schedule("matmul", config, schedule)
    canonical, is_transposed = _canonical(problem)
    if config is None:
        config = HEURISTICS.get(schedule, mma_heuristic).choose(canonical, target, promote)
        few = None
        if is_free and alignment % ALIGNMENT == 0:
            is_refused = reason is not None or bool(done or reasons)
            few = _few_columns(canonical, layouts, target, config, is_refused=is_refused)
        if few is not None:
            config, schedule, reason, done, reasons = few, GEMV, None, NO_REMEDIES, ()
    elif promote:
        config = config.promoted(promote)
    if config.is_swapped:
        canonical, is_transposed = canonical.transpose, not is_transposed
    config.check(canonical, target.optin_shared_bytes)
    return Plan(canonical, config, is_transposed, schedule, target, reason, done, reasons)


def _for_wgmma(problem: Problem, layouts: Sequence[Layout], alignment: int) -> Remedies | LegoError:
    """Return what `wgmma` needs for the matrices of a GEMM, or why it cannot compute it."""
    if not is_along_k(problem):
        return _not_along_k(problem)
    return remedies(problem, layouts, refusals(problem, layouts, alignment), alignment)


def _faster(problem: Problem, done: Remedies, target: Target) -> tuple[str, tuple[str, ...]]:
    """Return the schedule that is estimated to be faster for unaligned matrices, and why.

    Args:
        problem: the GEMM that the caller describes.
        done: what `wgmma` needs.
        target: the GPU architecture.
    """
    model, canonical = spec_of(target).unaligned_model, _canonical(problem)[0]
    estimates = wgmma_heuristic.rank(canonical, target)
    if model is None or not estimates:
        return WGMMA, ()
    mma = mma_heuristic.rank(canonical, target)[0]
    copied = done.mma_bytes(problem, mma.config) / spec_of(target).multiprocessors
    times = {
        WGMMA: estimates[0].microseconds + done.microseconds(problem, model),
        HMMA: mma.microseconds + copied / model.mma_bytes_per_us,
    }
    chosen = min(times, key=lambda schedule: times[schedule])
    said = ", ".join(f"{schedule} {time:.1f} µs" for schedule, time in times.items())
    return chosen, (f"{said}: {chosen}",)


def ranked_configs(problem: Problem, target: Target, schedule: str) -> list[GemmConfig]:
    """Return the configs of a GEMM for a schedule, those with the best estimates first."""
    canonical = _canonical(problem)[0]
    heuristic = HEURISTICS.get(schedule, mma_heuristic)
    return [found.config for found in heuristic.rank(canonical, target)]


def _few_columns(
    problem: Problem,
    layouts: Sequence[Layout],
    target: Target,
    config: GemmConfig,
    *,
    is_refused: bool,
) -> GemvConfig | None:
    """Return the config for few columns of C, if its estimate is better than that of `config`.

    Args:
        problem: the GEMM, with a row-major C.
        layouts: the layouts of A, B and C in memory.
        target: the GPU architecture.
        config: the config that the target's schedule would have.
        is_refused: whether TMA does not take the matrices, so that `config` reads them twice, or
            element by element.
    """
    gpu = spec_of(target)
    is_tuned = tuned_table.lookup(gpu.name, problem, type(config)) is not None
    if is_tuned or min(problem.m, problem.n) > MAX_COLUMNS or not all(map(is_plain, layouts)):
        return None
    found = gemv_heuristic.rank(problem, target)
    multiplied = problem.transpose if config.is_swapped else problem
    match config:
        case WgmmaConfig():
            other = wgmma_heuristic.estimate(problem, config, gpu).microseconds
        case MmaConfig():
            other = mma_heuristic.estimate(multiplied, config, gpu).microseconds
        case _:
            return None
    is_faster = is_refused or (found and found[0].microseconds <= _NEAR * other)
    return found[0].config if found and is_faster else None


def _canonical(problem: Problem) -> tuple[Problem, bool]:
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
    if schedule not in (None, WGMMA, HMMA):
        raise LegoError(
            f"{what}: there is no schedule '{schedule}'", hint=f"'{WGMMA}', '{HMMA}', or none"
        )
    check_config(what, config)
    if config is not None and schedule not in (None, config.schedule):
        raise _wrong_schedule(what, config, schedule)
    wanted = schedule or (config.schedule if config is not None else None)
    if wanted == WGMMA or (wanted is None and target.name == WGMMA_TARGET):
        found = reason()
        if found is None:
            return WGMMA
        if wanted == WGMMA:
            raise found
        warnings.warn(fallback_warning(what, found), stacklevel=4)
    elif not is_along_k(problem):
        warnings.warn(byte_copy_warning(what, problem), stacklevel=4)
    return HMMA


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


def is_along_k(problem: Problem) -> bool:
    """Return whether 8-bit elements of A and B are contiguous along k; True for wider ones."""
    return ELEMENT_BYTES[problem.dtype] > 1 or (problem.a, problem.b) == ("row", "col")


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
    """Return the warning that `hmma` is used instead of `wgmma`.

    Args:
        what: the function that was called.
        reason: why `wgmma` cannot compute the GEMM.
    """
    hint = f"\nhint: {reason.hint}" if reason.hint else ""
    return (
        f"{what}: {reason.message}; so the schedule is '{HMMA}', not '{WGMMA}', which is up to "
        f"twice as fast{hint}\nschedule='{HMMA}' silences this warning"
    )


def why_not_wgmma(problem: Problem, layouts: Sequence[Layout]) -> LegoError | None:
    """Return why TMA or `wgmma` cannot take the matrices of a GEMM; `None` if they can.

    Args:
        problem: the GEMM.
        layouts: the layouts of A, B and C in memory.
    """
    if not is_along_k(problem):
        return _not_along_k(problem)
    return next(iter(refusals(problem, layouts).values()), None)


def _not_along_k(problem: Problem) -> LegoError:
    return LegoError(
        f"wgmma multiplies {problem.dtype} only along k, and A is by {problem.a}, B by {problem.b}",
        hint="a row-major A and a column-major B: b=OrderBy(Col(k, n))",
    )
