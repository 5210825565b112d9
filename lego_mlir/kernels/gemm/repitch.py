"""Re-pitching: copy a matrix to rows that TMA can copy.

TMA copies rows that begin at multiples of 16 bytes. The rows of any other matrix, those of 1001
f16 elements for example, are copied to a workspace first, in which each begins at a multiple of
128 bytes. There the matrix is wider, and what it is wider by is zeros.

A thread loads as much of a row as one store of 16 bytes takes. Its loads are as wide as the rows
are aligned, so their lanes do not access neighbouring bytes; the L1 cache makes up for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.frontend import Kernel, TensorType, Workspace, block_id, kernel, thread_id
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
        return tuple(n for n in self._source.dims if isinstance(n, int))

    @property
    def _padded(self) -> tuple[int, ...]:
        """The sizes of the copy."""
        *outer, columns = self._dims
        line = CACHE_LINE_BYTES // ELEMENT_BYTES[self.dtype]
        return (*outer, -(-columns // line) * line)

    def kernel(self, name: str) -> Kernel:
        """Return the kernel that copies its parameter `source` to its parameter `target`.

        Args:
            name: of the kernel.
        """
        width = MAX_ACCESS_BYTES // ELEMENT_BYTES[self.dtype]
        *lead, rows, columns = self._padded
        across = min(_THREADS, columns // width)
        down = min(_THREADS // across, rows)
        each = min(_ROWS, -(-rows // down))
        ones = [1] * len(lead)
        levels = [[*ones, each, 1], [*ones, down, across], [*ones, 1, width]]
        source, target = (tiled(at, *levels) for at in (self._source, OrderBy(Row(*self._padded))))
        grid = [*lead, -(-rows // (each * down)), -(-columns // (across * width))]
        ctas, threads = OrderBy(Row(*grid)), OrderBy(Row(down, across))
        zeros = (0,) * len(lead)

        def repitch(source: Any, target: Any) -> None:
            tile, thread = ctas.inv(block_id()), threads.inv(thread_id())
            places = [(*tile, *zeros, r, 0, *zeros, *thread, *zeros, 0) for r in range(each)]
            read, written = source.view(source_tiles), target.view(target_tiles)
            values = [read[*place, :] for place in places]
            for place, value in zip(places, values, strict=True):
                written[*place, :] = value

        source_tiles, target_tiles = source, target
        repitch.__name__ = name
        return kernel(
            grid=prod(grid),
            block=down * across,
            parameters={
                "source": TensorType(self.dtype, self.layout, self.alignment),
                "target": TensorType(self.dtype, self.target, MAX_ACCESS_BYTES),
            },
            strict=True,
            pdl=True,
        )(repitch)
