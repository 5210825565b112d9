"""The choice among all ways to compute one GEMM: every heuristic's configs, by their estimates.

On sm_90a these are `wgmma`, where TMA takes the matrices or copies and stores by threads help it,
and for unaligned matrices `mma.sync`, which small GEMMs win; elsewhere `mma.sync`. A C with few
rows or columns may also be computed from registers, without tiles of shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
import numpy.typing as npt

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.specs import GpuSpec
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.gemv import heuristic as gemv_heuristic
from lego_mlir.kernels.gemm.gemv.config import MAX_COLUMNS
from lego_mlir.kernels.gemm.heuristic import Estimate
from lego_mlir.kernels.gemm.matrices import ALIGNMENT, copy_widths, is_plain
from lego_mlir.kernels.gemm.mma import heuristic as mma_heuristic
from lego_mlir.kernels.gemm.problem import Problem, operands_of
from lego_mlir.kernels.gemm.unaligned.remedies import (
    Remedies,
    copy_microseconds,
    refusals,
    remedies,
    store_microseconds,
)
from lego_mlir.kernels.gemm.unaligned.thread_copies import (
    copy_work,
    joined_microseconds,
    with_room_for_copies,
)
from lego_mlir.kernels.gemm.wgmma import heuristic as wgmma_heuristic
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig
from lego_mlir.kernels.gemm.wgmma.config_table import ConfigTable, Numbers, stores_rows
from lego_mlir.kernels.gemm.wgmma.heuristic import Copying
from lego_mlir.kernels.gemm.wgmma.work import Work, work_of

WGMMA_TARGET = "sm_90a"

_RANKED = 32
"""Configs of a heuristic that are considered."""

_KEPT = 0.985
"""The model's first config stays the first unless the corrected time of another one is less than
this part of its own. Of 53 layers whose config changed so, none became slower than by 2 % on an
H200 (bench/results/gemm_corrections_layers.jsonl)."""

_MAX_UNALIGNED_ACCUMULATORS = 64
"""Accumulators of a thread, at most, where addresses of single elements take registers too."""


@dataclass(frozen=True, slots=True)
class Option:
    """One way to compute a GEMM.

    Attributes:
        estimate: the config and its time, without what is done about unaligned matrices.
        extra_us: the time that this takes.
    """

    estimate: Estimate
    extra_us: float = 0.0

    @property
    def config(self) -> GemmConfig:
        """The config."""
        return self.estimate.config

    @property
    def microseconds(self) -> float:
        """The time of the whole."""
        return self.estimate.microseconds + self.extra_us

    def __str__(self) -> str:
        extra = f", and {self.extra_us:.1f} µs for unaligned matrices" if self.extra_us else ""
        return f"{self.estimate}{extra}"


def needed_for_wgmma(
    problem: Problem, layouts: Sequence[Layout], target: Target, alignment: int
) -> Remedies | LegoError | None:
    """Return what `wgmma` needs for the matrices of a GEMM, or why it cannot compute it.

    Args:
        problem: the GEMM that the caller describes.
        layouts: the layouts of A, B and C in memory.
        target: the GPU architecture; `None` is returned if it has no `wgmma`.
        alignment: bytes that the addresses of the matrices are a multiple of.
    """
    if target.name != WGMMA_TARGET:
        return None
    if not problem.is_along_k:
        return not_along_k(problem)
    return remedies(problem, layouts, refusals(problem, layouts, alignment), alignment)


def not_along_k(problem: Problem) -> LegoError:
    """Return the error for 8-bit elements of A or B that are not contiguous along k."""
    return LegoError(
        f"wgmma multiplies {problem.dtype} only along k, and A is by {problem.a}, B by {problem.b}",
        hint="a row-major A and a column-major B: b=OrderBy(Col(k, n))",
    )


def options(
    problem: Problem,
    layouts: Sequence[Layout],
    target: Target,
    gpu: GpuSpec,
    needed: Remedies | LegoError | None,
    alignment: int,
    accept: Callable[[GemmConfig], bool],
    by_threads: str = "",
) -> list[Option]:
    """Return the ways to compute a GEMM, the fastest first.

    Args:
        problem: the GEMM that the caller describes.
        layouts: the layouts of A, B and C in memory.
        target: the GPU architecture.
        gpu: the card.
        needed: what `needed_for_wgmma` returns.
        alignment: bytes that the addresses of the matrices are a multiple of.
        accept: says which configs are considered.
        by_threads: operands that nothing but threads can copy, of those that TMA does not take.
    """
    canonical = problem.transpose if problem.c == "col" else problem
    found: list[Option] = []
    plain = all(map(is_plain, layouts))
    if isinstance(needed, Remedies):
        copying = copies(problem, gpu, needed, alignment) if plain else []
        required = {operands_of(problem, n) for n in by_threads if n in needed.repitched}
        copying = [way for way in copying if required <= set(way.by_threads)]
        if copying or not required:
            found += _wgmma(problem, target, gpu, needed, copying, accept)
    if needed is None or isinstance(needed, LegoError) or needed or not found:
        found += _mma(canonical, target, gpu, needed, alignment)
    is_free = alignment % ALIGNMENT == 0 and plain
    if is_free and min(problem.m, problem.n) <= MAX_COLUMNS:
        found += [Option(e) for e in gemv_heuristic.rank(canonical, target, gpu)[:_RANKED]]
    accepted = [option for option in found if accept(option.config)]
    if not accepted:
        return []
    first = min(accepted, key=lambda option: option.estimate.model_us + option.extra_us)
    times = {id(option): option.microseconds for option in accepted}
    times[id(first)] *= _KEPT
    return sorted(accepted, key=lambda option: times[id(option)])


def _wgmma(
    problem: Problem,
    target: Target,
    gpu: GpuSpec,
    needed: Remedies,
    copying: Sequence[Copying],
    accept: Callable[[GemmConfig], bool],
) -> Iterator[Option]:
    """Yield the best accepted configs for `wgmma`; none without a cost model."""
    if gpu.wgmma_model is None:
        return
    model = gpu.unaligned_model
    multiplied = needed.multiplied(problem)
    canonical = multiplied.transpose if multiplied.c == "col" else multiplied
    extra = 0.0 if model is None or copying else needed.microseconds(model)
    written = 0 if model is None else needed.written_bytes(problem)

    def stores(table: ConfigTable) -> Numbers:
        assert model is not None
        return store_microseconds(written, stores_rows(canonical, table), model)

    further = stores if written else None
    found = wgmma_heuristic.estimates(canonical, target, gpu, further, copying)
    accepted = (estimate for estimate in found if accept(estimate.config))
    for estimate in islice(accepted, _RANKED):
        yield Option(estimate, estimate.extra_us if copying else extra)


def microseconds(
    problem: Problem,
    configs: Sequence[WgmmaConfig],
    gpu: GpuSpec,
    needed: Remedies,
    alignment: int,
) -> npt.NDArray[np.float64]:
    """Return the times of configs for `wgmma`, with those of copies of unaligned operands.

    Args:
        problem: the GEMM that the caller describes.
        configs: the configs; what their threads copy is what TMA does not take.
        gpu: a card with models of `wgmma` and of unaligned matrices.
        needed: what `needed_for_wgmma` returns.
        alignment: bytes that the addresses of the matrices are a multiple of.
    """
    multiplied = needed.multiplied(problem)
    canonical = multiplied.transpose if multiplied.c == "col" else multiplied
    times = np.array(wgmma_heuristic.microseconds(canonical, configs, gpu))
    table = ConfigTable.of(configs, ELEMENT_BYTES[problem.dtype])
    work = work_of(canonical, table, gpu)
    for way in copies(problem, gpu, needed, alignment):
        rows = np.array([config.copied_by_threads == way.by_threads for config in configs])
        times = np.where(rows, way.joined(table, work, times) + way.extra_us, times)
    return times


def copies(problem: Problem, gpu: GpuSpec, needed: Remedies, alignment: int) -> list[Copying]:
    """Return the ways to copy operands that TMA does not take: each before, or by threads."""
    model = gpu.unaligned_model
    if model is None or not needed.repitched:
        return []
    canonical = problem.transpose if problem.c == "col" else problem
    widths = dict(zip("ab", copy_widths(canonical, alignment), strict=True))
    by_threads = needed.stores_by_threads

    def way(names: str) -> Copying:
        some = {name: widths[name] for name in names}

        def adapted(table: ConfigTable, work: Work) -> ConfigTable:
            if not some:
                return table
            return with_room_for_copies(canonical, table, work, stores_by_threads=by_threads)

        def joined(table: ConfigTable, work: Work, us: Numbers) -> Numbers:
            if not some:
                return us
            return joined_microseconds(us, copy_work(canonical, some, table, work), model)

        rest = sum(moved[name] for name in refused if name not in names)
        return Copying(names, float(copy_microseconds(rest, model)), adapted, joined)

    moved = {operands_of(problem, name): copy.bytes for name, copy in needed.repitched.items()}
    refused = sorted(moved)
    counts = range(len(refused) + 1)
    return [way("".join(names)) for n in counts for names in combinations(refused, n)]


def _accumulators(config: GemmConfig) -> float:
    """Return the accumulators of a thread."""
    return config.tile[0] * config.tile[1] / config.threads


def _mma(
    canonical: Problem,
    target: Target,
    gpu: GpuSpec,
    needed: Remedies | LegoError | None,
    alignment: int,
) -> Iterator[Option]:
    """Yield the configs for `mma.sync`, whose copies of unaligned rows are narrow."""
    for estimate in mma_heuristic.rank(canonical, target, gpu, alignment)[:_RANKED]:
        if needed is None or _accumulators(estimate.config) <= _MAX_UNALIGNED_ACCUMULATORS:
            yield Option(estimate)
