"""Matrices that TMA does not take, and what makes a GEMM by `wgmma` possible nevertheless.

TMA takes matrices whose address and rows begin at multiples of 16 bytes. An operand that it does
not take is re-pitched (`repitch`); tiles of such a C are stored by threads. Both take time, so
small GEMMs are left to `mma.sync`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lego_mlir.algebra import Layout
from lego_mlir.analysis.instructions.tma_boxes import tensor_map_boxes
from lego_mlir.analysis.shared_tiles import tma_swizzled_tile, tma_swizzled_transpose
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.gemm_models import UnalignedModel
from lego_mlir.hardware.limits import WGMMA_ROWS
from lego_mlir.kernels.gemm.matrices import ALIGNMENT, order_of, tiled
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.unaligned.repitch import Repitch

_ROW_BYTES = 128
"""Bytes of a tile along its contiguous dimension, when TMA is asked whether it can copy tiles."""


@dataclass(frozen=True, slots=True)
class Remedies:
    """What is done about the matrices of a GEMM that TMA does not take.

    Attributes:
        repitched: the operands that are copied first, by name, `a` or `b`.
        stores_by_threads: whether threads store C.
    """

    repitched: Mapping[str, Repitch] = field(default_factory=dict)
    stores_by_threads: bool = False

    def __bool__(self) -> bool:
        return bool(self.repitched) or self.stores_by_threads

    def multiplied(self, problem: Problem) -> Problem:
        """Return the GEMM of the operands and of the copies, for the GEMM of the operands."""
        return replace(problem, repitched="".join(sorted(self.repitched)))

    def without_copies_of(self, names: Container[str]) -> Remedies:
        """Return what is left to do where producer warps copy tiles of these operands."""
        rest = {name: copy for name, copy in self.repitched.items() if name not in names}
        return replace(self, repitched=rest)

    def microseconds(self, model: UnalignedModel) -> float:
        """Return the time that the copies take.

        Args:
            model: the constants of the card.
        """
        return float(copy_microseconds(self.moved_bytes, model))

    @property
    def moved_bytes(self) -> int:
        """The bytes that copies read and write."""
        return sum(repitch.bytes for repitch in self.repitched.values())

    def written_bytes(self, problem: Problem) -> int:
        """Return the bytes of C that threads store."""
        written = problem.batch * problem.m * problem.n * ELEMENT_BYTES[problem.out]
        return written if self.stores_by_threads else 0

    def lines(self) -> list[str]:
        """Return a line of an explanation for each."""
        found = []
        for name, repitch in self.repitched.items():
            sizes = "×".join(map(str, repitch.workspace.shape))
            found.append(
                f"re-pitched {name.upper()}, {repitch.bytes / 1e6:.1f} MB moved, to a workspace of "
                f"{repitch.dtype} {sizes}"
            )
        return found + ["C stored by threads"] * self.stores_by_threads


NO_REMEDIES = Remedies()


def copy_microseconds(moved: Any, model: UnalignedModel) -> Any:
    """Return the time of copies, a number or an array.

    Args:
        moved: bytes that the copies read and write.
        model: the constants of the card.
    """
    return moved / model.copy_bytes_per_us + (moved > 0) * model.copy_launch_us


def store_microseconds(
    written: Any, by_rows: npt.NDArray[np.bool_], model: UnalignedModel
) -> npt.NDArray[np.float64]:
    """Return the times of stores of C by threads beyond those of TMA.

    Args:
        written: bytes of C that threads store.
        by_rows: whether a warp stores 256 bytes of a row.
        model: the constants of the card.
    """
    rate = np.where(by_rows, model.row_store_bytes_per_us, model.store_bytes_per_us)
    times: npt.NDArray[np.float64] = written / rate
    return times


def refusals(
    problem: Problem, layouts: Sequence[Layout], alignment: int = ALIGNMENT
) -> dict[str, LegoError]:
    """Return why TMA does not take matrices of a GEMM, by the names of these, `a` to `c`.

    Args:
        problem: the GEMM.
        layouts: the layouts of A, B and C in memory.
        alignment: bytes that their addresses are a multiple of.
    """
    found = {}
    for name, layout in zip("abc", layouts, strict=True):
        try:
            _check_tma(layout, problem.out if name == "c" else problem.dtype)
        except LegoError as e:
            found[name] = LegoError(f"{name.upper()}: {e.message}", hint=e.hint)
            continue
        if alignment % ALIGNMENT:
            found[name] = LegoError(
                f"{name.upper()}: TMA takes matrices whose address is a multiple of {ALIGNMENT}, "
                f"not of {alignment}"
            )
    return found


def _check_tma(layout: Layout, dtype: str) -> None:
    """Check that TMA copies tiles of a matrix.

    Raises:
        LegoError: it does not.
    """
    size = ELEMENT_BYTES[dtype]
    width = _ROW_BYTES // size
    is_row = order_of(layout) == "row"
    tile = (WGMMA_ROWS, width) if is_row else (width, WGMMA_ROWS)
    shared = (tma_swizzled_tile if is_row else tma_swizzled_transpose)(*tile, size)
    ones = (1,) * (layout.rank - 2)
    tensor_map_boxes(tiled(layout, (*ones, *tile)), shared[:, :], size)


def remedies(
    problem: Problem, layouts: Sequence[Layout], refused: Mapping[str, LegoError], alignment: int
) -> Remedies | LegoError:
    """Return what is done about the matrices that TMA does not take, or why nothing can be done.

    Args:
        problem: the GEMM.
        layouts: the layouts of A, B and C in memory.
        refused: what `refusals` returns.
        alignment: bytes that their addresses are a multiple of.
    """
    repitched = {}
    for name, layout in zip("abc", layouts, strict=True):
        if name not in refused:
            continue
        try:
            tiled(layout, [1] * layout.rank)  # threads copy and store tiles
            if name != "c":
                repitched[name] = Repitch(layout, problem.dtype, alignment)
                _check_tma(repitched[name].target, problem.dtype)
        except LegoError:
            return refused[name]
    return Remedies(repitched, "c" in refused)
