"""Re-pitching: copy a matrix to rows that TMA can copy.

TMA copies rows that begin at multiples of 16 bytes. The rows of any other matrix, those of 1001
f16 elements for example, are copied to a workspace first, in which each begins at a multiple of
128 bytes. There the matrix is wider, and what it is wider by is zeros.

A thread loads as much of a row as one store of 16 bytes takes. Its loads are as wide as the rows
are aligned, so their lanes do not access neighbouring bytes; the L1 cache makes up for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, Signature
from math import prod
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.frontend import (
    Kernel,
    TensorType,
    Workspace,
    block_id,
    choose,
    kernel,
    segment,
    thread_id,
)
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import CACHE_LINE_BYTES, MAX_ACCESS_BYTES
from lego_mlir.kernels.gemm.matrices import order_of, tiled, transposed

_THREADS = 256
"""Threads of a CTA."""

_ROWS = 2
"""Rows of a thread, at most, whose loads are in flight at the same time."""


@dataclass(frozen=True, slots=True)
class Repitch:
    """The copy of one matrix, or of those of a batch.

    Attributes:
        layout: of the matrix in memory, m×k, or batch×m×k.
        dtype: the element type.
        alignment: bytes that the address of the matrix is a multiple of.
    """

    layout: Layout
    dtype: str
    alignment: int

    @property
    def target(self) -> Layout:
        """The layout of the copy: of a matrix that is wider in its contiguous dimension."""
        found = OrderBy(Row(*self._padded))
        return found if self._is_row else transposed(found)

    @property
    def workspace(self) -> Workspace:
        """The memory of the copy."""
        return Workspace(self.dtype, self._padded)

    @property
    def bytes(self) -> int:
        """The bytes that are read and written."""
        return (prod(self._dims) + prod(self._padded)) * ELEMENT_BYTES[self.dtype]

    @property
    def _is_row(self) -> bool:
        return order_of(self.layout) == "row"

    @property
    def _source(self) -> Layout:
        """The layout in memory, with the contiguous dimension as the last one."""
        return self.layout if self._is_row else transposed(self.layout)

    @property
    def _dims(self) -> tuple[int, ...]:
        *lead, m, n = (n for n in self.layout.dims if isinstance(n, int))
        return (*lead, m, n) if self._is_row else (*lead, n, m)

    @property
    def _padded(self) -> tuple[int, ...]:
        """The sizes of the copy."""
        *outer, columns = self._dims
        line = CACHE_LINE_BYTES // ELEMENT_BYTES[self.dtype]
        return (*outer, -(-columns // line) * line)

    @property
    def grid(self) -> tuple[int, ...]:
        """The tiles of the matrix, one for each CTA."""
        *lead, rows, columns = self._padded
        _, down, across, width = self._tile
        return (*lead, -(-rows // down), -(-columns // (across * width)))

    @property
    def _tile(self) -> tuple[int, int, int, int]:
        """Rows of a thread, rows of a CTA, vectors of a CTA's row, and elements of a vector."""
        *_, rows, columns = self._padded
        width = MAX_ACCESS_BYTES // ELEMENT_BYTES[self.dtype]
        across = min(_THREADS, 1 << (columns // width - 1).bit_length())
        each = max(1, min(_ROWS, rows * across // _THREADS))
        return each, each * (_THREADS // across), across, width

    def copy(self, source: Any, target: Any, cta: Any) -> None:
        """Copy a CTA's tile, in a kernel.

        Args:
            source: the matrix.
            target: its copy.
            cta: the number of the tile in `grid`.
        """
        each, down, across, width = self._tile
        ones, zeros = ([n] * (len(self._padded) - 2) for n in (1, 0))
        levels = [*ones, each, 1], [*ones, down // each, across], [*ones, 1, width]
        threads = OrderBy(Row(down // each, across))
        tile, thread = OrderBy(Row(*self.grid)).inv(cta), threads.inv(thread_id())
        read = source.view(tiled(self._source, *levels))
        written = target.view(tiled(OrderBy(Row(*self._padded)), *levels))
        places = [(*tile, *zeros, r, 0, *zeros, *thread, *zeros, 0) for r in range(each)]
        values = [read[*place, :] for place in places]
        for place, value in zip(places, values, strict=True):
            written[*place, :] = value


def repitch_kernel(copies: Mapping[str, Repitch]) -> Kernel:
    """Return the kernel that makes several copies.

    Its parameters are the matrices, by their names, and the copies, by `copy_name`.

    Args:
        copies: by the names of the matrices.
    """
    counts = [prod(copy.grid) for copy in copies.values()]

    def repitch(**buffers: Any) -> None:
        which, cta = segment(block_id(), counts)

        def one(name: str) -> None:
            copies[name].copy(buffers[name], buffers[copy_name(name)], cta)

        choose(which, [partial(one, name) for name in copies])

    types = {name: TensorType(r.dtype, r.layout, r.alignment) for name, r in copies.items()}
    types |= {
        copy_name(name): TensorType(r.dtype, r.target, MAX_ACCESS_BYTES)
        for name, r in copies.items()
    }
    repitch.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in types]
    )
    return kernel(grid=sum(counts), block=_THREADS, parameters=types, strict=True, pdl=True)(
        repitch
    )


def copy_name(name: str) -> str:
    """Return the name of a matrix's copy."""
    return f"{name}_repitched"
