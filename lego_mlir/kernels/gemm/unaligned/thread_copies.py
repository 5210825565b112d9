"""The time of GEMMs whose producer warps copy tiles of operands that TMA does not take.

A re-pitched operand is read and written once more than one of aligned rows. Producer warps that
copy its tiles themselves save that, but issue an instruction for as few bytes as rows are aligned
to. Copies of 4 bytes and more are asynchronous (`cp.async`), as many in flight as the ring has
stages. Elements of less go through registers: a CTA waits for those of one tile before it loads
those of the next one.

Both pass through the L1 cache, which has what shared memory leaves. Where CTAs take more than
`MOST_SHARED`, copies take half as long again on an H200, so a ring has only as many stages.

Copies overlap with the rest of a launch, so their time and that of the others are joined by a
p-norm. The constants are `GpuSpec.unaligned_model`; `python -m bench calibrate` fits them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.gemm_models import UnalignedModel
from lego_mlir.hardware.limits import (
    KIB,
    LEAST_ASYNC_BYTES,
    MAX_ACCESS_BYTES,
    RESERVED_SHARED_BYTES,
    WARP_THREADS,
    WARPGROUP_THREADS,
)
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.wgmma.config_table import ConfigTable, Numbers, shared_bytes_of
from lego_mlir.kernels.gemm.wgmma.work import Work

MOST_SHARED = 196 * KIB
"""Shared memory of a multiprocessor that leaves its L1 cache 60 KiB; the next size leaves 28."""

_MOST_ELEMENTS = 64
"""Elements of a tile that a producer thread loads at once, at most: of more some kernels spill
registers. Beside several consumers it has registers for fewer."""


@dataclass(frozen=True, slots=True)
class CopyWork:
    """What producer warps copy, in columns as the table's.

    Attributes:
        element_copies: warp instructions of a multiprocessor that copy less than 4 bytes a lane.
        short_copies: those of 4 and 8 bytes.
        element_rounds: tiles whose elements a CTA waits for, one after another.
        short_rounds: the same of asynchronous copies, divided by the tiles in flight.
        crowded: whether shared memory leaves the L1 cache little.
        impossible: whether the CTAs of a cluster share what threads copy, or elements have too few
            registers.
    """

    element_copies: Numbers
    short_copies: Numbers
    element_rounds: Numbers
    short_rounds: Numbers
    crowded: Numbers
    impossible: Numbers


def copy_work(
    problem: Problem, widths: Mapping[str, int], table: ConfigTable, work: Work
) -> CopyWork:
    """Return what producer warps copy.

    Args:
        problem: the GEMM, with a row-major C.
        widths: bytes of a copy by operand, `a` or `b`, of those that threads copy.
        table: the configs.
        work: what they do besides.
    """
    t, w = table, work
    zero = np.zeros(len(t))
    copies, rounds, impossible = [zero, zero], [zero, zero], ~have_registers(problem, widths, t)
    for name, width in widths.items():
        is_left = _is_left(name, t)
        extent = np.where(is_left, t.m, t.n)
        sharers = np.where(is_left, t.across, t.down)
        tile = extent * t.k_bytes / width  # copies of a lane
        is_async = width >= LEAST_ASYNC_BYTES
        tiles = w.waves * w.steps
        in_flight = np.maximum(1, t.stages - 1) if is_async else 1.0
        copies[is_async] = copies[is_async] + tiles * w.side_by_side * tile / WARP_THREADS
        rounds[is_async] = rounds[is_async] + tiles / in_flight
        impossible = impossible | (sharers > 1)
    (elements, short), (element_rounds, short_rounds) = copies, rounds
    taken = shared_bytes_of(problem, t) + RESERVED_SHARED_BYTES
    crowded = (w.side_by_side * taken > MOST_SHARED).astype(float)
    flags = crowded, impossible.astype(float)
    return CopyWork(elements, short, element_rounds, short_rounds, *flags)


def have_registers(
    problem: Problem, widths: Mapping[str, int], table: ConfigTable
) -> npt.NDArray[np.bool_]:
    """Return whether producer threads have registers for the elements that they load at once.

    Arguments are those of `copy_work`.
    """
    t, size = table, ELEMENT_BYTES[problem.dtype]
    found = np.ones(len(t), bool)
    most = np.where(t.consumers == 1, _MOST_ELEMENTS, 0)
    for name, width in widths.items():
        if width < LEAST_ASYNC_BYTES:
            extent = np.where(_is_left(name, t), t.m, t.n)
            found &= extent * t.k_bytes / size / WARPGROUP_THREADS <= most
    return found


def _is_left(name: str, table: ConfigTable) -> npt.NDArray[np.bool_]:
    """Return whether tiles of an operand are those of rows of C that a kernel computes."""
    found: npt.NDArray[np.bool_] = (table.swap > 0) != (name == "a")
    return found


def with_room_for_copies(
    problem: Problem, table: ConfigTable, work: Work, *, stores_by_threads: bool
) -> ConfigTable:
    """Return configs with as many stages as leave room for the L1 cache, of 2 at least.

    Args:
        problem: the GEMM, with a row-major C.
        table: the configs.
        work: what they do.
        stores_by_threads: whether threads store C, and not TMA.
    """
    t = table
    fixed = shared_bytes_of(problem, t.replaced(stages=0), stores_by_threads=stores_by_threads)
    # A tile of C that is stored transposed does not lie where the ring was.
    fixed = np.maximum(fixed, t.m * t.n * ELEMENT_BYTES[problem.out] + MAX_ACCESS_BYTES * t.n)
    each = MOST_SHARED / work.side_by_side - RESERVED_SHARED_BYTES - fixed
    stage = (t.m + t.n) * t.k_bytes
    return t.replaced(stages=np.clip(np.floor(each / stage), 2, t.stages))


def joined_microseconds(us: Numbers, work: CopyWork, model: UnalignedModel) -> Numbers:
    """Return the times of launches whose producer warps copy tiles; infinite ones are impossible.

    Args:
        us: their times if TMA copied these tiles.
        work: what they copy.
        model: the constants of the card.
    """
    w, x = work, model
    issued = x.element_copy_us * w.element_copies + x.short_copy_us * w.short_copies
    waited = x.element_round_us * w.element_rounds + x.short_round_us * w.short_rounds
    copied = np.where(w.crowded > 0, x.crowded_copy, 1.0) * (issued + waited)
    norm = x.thread_copy_norm
    times = (us**norm + copied**norm) ** (1 / norm)
    found: Numbers = np.where(w.impossible > 0, np.inf, times)
    return found
