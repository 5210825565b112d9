"""The cost models whose constants are fitted: one for each kind of config, and one for copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
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
from lego_mlir.kernels.gemm.matrices import ALIGNMENT, order_of
from lego_mlir.kernels.gemm.mma import model as mma
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.unaligned.remedies import (
    Remedies,
    copy_microseconds,
    store_microseconds,
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
        moved: bytes that are copied.
        written: bytes of C that threads store.
        by_rows: whether a warp stores 256 bytes of a row.
    """

    base: Numbers
    moved: Numbers
    written: Numbers
    by_rows: Numbers

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
    done = _wgmma(needed.multiplied(problem), configs, gpu)
    base = _times_of_wgmma(done, work.model_of(gpu))
    ones = np.ones(len(base))
    table = ConfigTable.of(configs, ELEMENT_BYTES[problem.dtype])
    by_rows = stores_rows(_canonical(problem), table) * ones
    moved, written = needed.moved_bytes * ones, needed.written_bytes(problem) * ones
    return CopiesWork(base, moved, written, by_rows)


def _times_of_copies(done: CopiesWork, constants: UnalignedModel) -> Numbers:
    stores = store_microseconds(done.written, done.by_rows > 0, constants)
    return done.base + copy_microseconds(done.moved, constants) + stores
