"""The cost models whose constants are fitted: one for each kind of config, and one for copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.gemm.cases import layout_of
from bench.gemm.references import GemmReference
from bench.sample.shapes import ANY
from lego_mlir.algebra import Layout
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.gemm_models import UnalignedModel, WgmmaModel
from lego_mlir.hardware.specs import GpuSpec
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm.choice import needed_for_wgmma
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.gemv import model as gemv
from lego_mlir.kernels.gemm.gemv.config import GemvConfig
from lego_mlir.kernels.gemm.matrices import ALIGNMENT, copy_widths, order_of
from lego_mlir.kernels.gemm.mma import model as mma
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.problem import Problem, operands_of
from lego_mlir.kernels.gemm.unaligned.remedies import (
    Remedies,
    copy_microseconds,
    store_microseconds,
)
from lego_mlir.kernels.gemm.unaligned.thread_copies import (
    CopyWork,
    copy_work,
    have_registers,
    joined_microseconds,
)
from lego_mlir.kernels.gemm.wgmma import model, work
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig
from lego_mlir.kernels.gemm.wgmma.config_table import ConfigTable, stores_rows

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Family:
    """A cost model, and the configs that it is for.

    Attributes:
        key: the name of its constants in a card's `gemm_model`.
        schedule: the schedule of its configs, as in results.
        config: their class.
        takes: whether a result is one that the model explains.
        work_of: returns what configs do for a GEMM, in columns.
        times_of: returns their microseconds with these constants.
        model_of: returns a card's constants.
    """

    key: str
    schedule: str | None
    config: Callable[..., GemmConfig]
    takes: Callable[[dict[str, Any]], bool]
    work_of: Callable[[GemmReference, Sequence[Any], GpuSpec], Any]
    times_of: Callable[[Any, Any], Numbers]
    model_of: Callable[[GpuSpec], Any]


@dataclass(frozen=True, slots=True)
class CopiesWork:
    """What a GEMM by `wgmma` and the copies of its unaligned operands take, in columns.

    Attributes:
        base: microseconds of the GEMM by the model of `wgmma`.
        moved: bytes that are copied before.
        written: bytes of C that threads store.
        by_rows: whether a warp stores 256 bytes of a row.
        element_copies, short_copies, element_rounds, short_rounds, crowded: what producer warps
            copy; see `CopyWork`.
    """

    base: Numbers
    moved: Numbers
    written: Numbers
    by_rows: Numbers
    element_copies: Numbers
    short_copies: Numbers
    element_rounds: Numbers
    short_rounds: Numbers
    crowded: Numbers

    @staticmethod
    def joined(works: Sequence[CopiesWork]) -> CopiesWork:
        """Return the rows of all, one behind the other."""
        names = [f.name for f in fields(CopiesWork)]
        return CopiesWork(*(np.concatenate([getattr(w, n) for w in works]) for n in names))


def families() -> tuple[Family, ...]:
    """Return the families in the order in which they are fitted: `unaligned` uses `wgmma`."""
    return (
        Family(
            "wgmma",
            WgmmaConfig.schedule,
            WgmmaConfig,
            lambda result: result["class"] != ANY,
            _work_of_wgmma,
            _times_of_wgmma,
            work.model_of,
        ),
        Family(
            "gemv",
            None,
            GemvConfig,
            lambda result: True,
            _work_of_gemv,
            lambda done, constants: gemv.times_of(done, constants).total,
            lambda gpu: gpu.gemv_model,
        ),
        Family(
            "mma",
            MmaConfig.schedule,
            MmaConfig,
            lambda result: True,
            _work_of_mma,
            mma.times_of,
            lambda gpu: gpu.mma_model,
        ),
        Family(
            "unaligned",
            WgmmaConfig.schedule,
            WgmmaConfig,
            lambda result: result["class"] == ANY,
            _work_of_copies,
            _times_of_copies,
            lambda gpu: gpu.unaligned_model,
        ),
    )


def problem_of(reference: GemmReference) -> tuple[Problem, list[Layout]]:
    """Return a GEMM as `matmul` sees it, and the layouts of A, B and C.

    The order of a matrix of one row or column is that of its layout, so C of one column, which is
    row-major, counts as column-major.
    """
    r = reference
    sizes = ((r.a, r.m, r.k), (r.b, r.k, r.n), (r.c, r.m, r.n))
    layouts = [layout_of(order, rows, columns) for order, rows, columns in sizes]
    return Problem(r.m, r.n, r.k, r.dtype, r.out, *map(order_of, layouts)), layouts


def _canonical(problem: Problem) -> Problem:
    """Return the GEMM that configs are for: with a row-major C."""
    return problem.transpose if problem.c == "col" else problem


def _work_of_wgmma(
    reference: GemmReference, configs: Sequence[WgmmaConfig], gpu: GpuSpec
) -> work.Work:
    return _wgmma(problem_of(reference)[0], configs, gpu)


def _wgmma(problem: Problem, configs: Sequence[WgmmaConfig], gpu: GpuSpec) -> work.Work:
    table = ConfigTable.of(configs, ELEMENT_BYTES[problem.dtype])
    return work.work_of(_canonical(problem), table, gpu)


def _times_of_wgmma(done: work.Work, constants: WgmmaModel) -> Numbers:
    return model.times_of(done, constants).total


def _work_of_mma(reference: GemmReference, configs: Sequence[MmaConfig], gpu: GpuSpec) -> mma.Work:
    return mma.work_of(_canonical(problem_of(reference)[0]), configs, gpu)


def _work_of_gemv(
    reference: GemmReference, configs: Sequence[GemvConfig], gpu: GpuSpec
) -> gemv.Work:
    problem = _canonical(problem_of(reference)[0])
    return gemv.Work.joined(
        [gemv.work_of(problem.transpose if c.swap_ab else problem, [c], gpu) for c in configs]
    )


def _work_of_copies(
    reference: GemmReference, configs: Sequence[WgmmaConfig], gpu: GpuSpec
) -> CopiesWork:
    problem, layouts = problem_of(reference)
    needed = needed_for_wgmma(problem, layouts, Target.parse("sm_90a"), ALIGNMENT)
    if not isinstance(needed, Remedies):
        needed = Remedies()
    table = ConfigTable.of(configs, ELEMENT_BYTES[problem.dtype])
    done = work.work_of(_canonical(needed.multiplied(problem)), table, gpu)
    base = _times_of_wgmma(done, work.model_of(gpu))
    ones = np.ones(len(base))
    by_rows = stores_rows(_canonical(problem), table) * ones
    moved = np.array([copied_before(problem, needed, c).moved_bytes for c in configs], float)
    by_threads = copies_of_configs(problem, needed, configs, table, done)
    copies = (by_threads.element_copies, by_threads.short_copies)
    rounds = (by_threads.element_rounds, by_threads.short_rounds)
    written = needed.written_bytes(problem) * ones
    return CopiesWork(base, moved, written, by_rows, *copies, *rounds, by_threads.crowded)


def copied_before(problem: Problem, needed: Remedies, config: WgmmaConfig) -> Remedies:
    """Return what is done about operands whose tiles threads do not copy."""
    return needed.without_copies_of(operands_of(problem, config.copied_by_threads))


def is_considered(reference: GemmReference, config: GemmConfig) -> bool:
    """Return whether the library may choose a config: its producer threads have registers."""
    if not isinstance(config, WgmmaConfig) or not config.copied_by_threads:
        return True
    canonical = _canonical(problem_of(reference)[0])
    widths = dict(zip("ab", copy_widths(canonical), strict=True))
    some = {name: widths[name] for name in config.copied_by_threads}
    table = ConfigTable.of([config], ELEMENT_BYTES[canonical.dtype])
    return bool(have_registers(canonical, some, table).all())


def copies_of_configs(
    problem: Problem,
    needed: Remedies,
    configs: Sequence[WgmmaConfig],
    table: ConfigTable,
    done: work.Work,
) -> CopyWork:
    """Return what the producer warps of configs copy.

    Args:
        problem: the GEMM.
        needed: what is done about operands that TMA does not take, if threads copy none of them.
        configs: the configs.
        table: the same as a table.
        done: what they do besides.
    """
    canonical = _canonical(problem)
    widths = dict(zip("ab", copy_widths(canonical), strict=True))
    refused = operands_of(problem, "".join(needed.repitched))
    columns = np.zeros((len(fields(CopyWork)), len(configs)))
    for names in sorted({config.copied_by_threads for config in configs}):
        some = {name: widths[name] for name in names if name in refused}
        rows = np.array([config.copied_by_threads == names for config in configs])
        found = copy_work(canonical, some, table, done)
        for column, f in zip(columns, fields(CopyWork), strict=True):
            column[rows] = getattr(found, f.name)[rows]
    return replace(CopyWork(*columns), impossible=np.zeros(len(configs)))  # they were measured


def _times_of_copies(done: CopiesWork, constants: UnalignedModel) -> Numbers:
    stores = store_microseconds(done.written, done.by_rows > 0, constants)
    copies = CopyWork(
        done.element_copies,
        done.short_copies,
        done.element_rounds,
        done.short_rounds,
        done.crowded,
        np.zeros(len(done.base)),
    )
    by_threads = joined_microseconds(done.base + stores, copies, constants)
    return by_threads + copy_microseconds(done.moved, constants)
