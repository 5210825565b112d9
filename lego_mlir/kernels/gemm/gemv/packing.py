"""B packed for an A whose rows (or columns) begin at different positions in a chunk.

A warp multiplies aligned chunks of A by B shifted (`shifted`), whose elements it would load one by
one, each for every tile of rows. A kernel that runs first packs them instead, once for each of
those positions: what a lane multiplies by a chunk of A is then a vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import Parameter, Signature
from math import prod
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, RegP, Row, ceildiv
from lego_mlir.frontend import (
    Kernel,
    TensorType,
    Workspace,
    block_id,
    choose,
    concatenate,
    kernel,
    thread_id,
)
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import MMA_K_BYTES
from lego_mlir.index import minimum
from lego_mlir.kernels.gemm.gemv.chunks import CHUNK_BYTES, THREADS, chunk_elements, shift_classes
from lego_mlir.kernels.gemm.matrices import ALIGNMENT
from lego_mlir.kernels.gemm.problem import Problem

PACKED = "b_packed"
"""The workspace of the packed elements."""

_THREADS = 256
"""Threads of a CTA, each of which packs a vector."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How B is packed for a GEMM.

    Attributes:
        problem: the GEMM, whose A has several shift classes.
    """

    problem: Problem

    @property
    def classes(self) -> int:
        """The positions in a chunk at which rows (or columns) of A begin."""
        return shift_classes(self.problem)

    @property
    def width(self) -> int:
        """Elements of a vector: those along k that a lane multiplies by its chunks."""
        chunk = chunk_elements(self.problem)
        return chunk if self.problem.a == "row" else MMA_K_BYTES // CHUNK_BYTES * chunk // THREADS

    @property
    def vectors(self) -> int:
        """Vectors of a column of B and a class.

        If A is contiguous along k, vector 0 belongs to chunk 1: the chunks at the ends of a row
        are loaded otherwise. Else the elements are those of k = class, class + classes, ...
        """
        if self.problem.a == "row":
            return self.problem.k // self.width - 1
        return self.problem.k // (self.classes * self.width)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Classes, columns, vectors of each, and elements of a vector."""
        return self.classes, self.problem.n, self.vectors, self.width

    @property
    def layout(self) -> Layout:
        """The layout of (class, column, vector, element)."""
        return OrderBy(Row(*self.sizes))

    @property
    def workspace(self) -> Workspace:
        """The memory of the packed elements."""
        return Workspace(self.problem.dtype, (prod(self.sizes),))

    @property
    def bytes(self) -> int:
        """The bytes that are read and written."""
        return 2 * prod(self.sizes) * ELEMENT_BYTES[self.problem.dtype]

    def at(self, of_class: Any, vector: Any, element: int) -> Any:
        """Return the k of an element of a vector."""
        if self.problem.a == "col":
            whole = OrderBy(Row(self.vectors, self.width, self.classes))
            return whole.apply(vector, element, of_class)
        chunks = OrderBy(Row(self.vectors + 1, self.width))
        return chunks.apply(vector + 1, element) - self.shift(of_class)

    def shift(self, of_class: Any) -> Any:
        """Return the position in a chunk at which the rows of a class begin, of an A by row."""
        k, chunk = self.problem.k, chunk_elements(self.problem)
        start = OrderBy(Row(self.classes, k)).apply(of_class, 0)
        return OrderBy(Row(self.classes * k // chunk, chunk)).inv(start)[1]


def pack_kernel(packing: Packing, name: str, source: TensorType, b: Layout) -> Kernel:
    """Return the kernel that packs B; its parameters are the matrix and `PACKED`.

    Args:
        packing: how.
        name: the matrix's name.
        source: its type.
        b: the layout of B, k×n, in it.
    """
    classes, columns, vectors, width = packing.sizes
    count = classes * columns * vectors
    # Neighbouring threads read neighbours in memory.
    numbers = OrderBy(RegP([classes, vectors, columns], [0, 2, 1]))
    if packing.problem.b == "row":
        numbers = OrderBy(Row(classes, vectors, columns))
    ctas = ceildiv(count, _THREADS)

    def pack(**buffers: Any) -> None:
        number = OrderBy(Row(ctas, _THREADS)).apply(block_id(), thread_id())
        of_class, vector, column = numbers.inv(minimum(number, count - 1))
        is_outside = minimum(OrderBy(Row(ceildiv(ctas * _THREADS, count), count)).inv(number)[0], 1)

        def one() -> None:
            elements = buffers[name].view(b)
            at = [packing.at(of_class, vector, i) for i in range(width)]
            found = concatenate([elements[k, column] for k in at])
            buffers[PACKED].view(packing.layout)[of_class, column, vector, :] = found

        choose(is_outside, [one, _nothing])

    workspace = packing.workspace
    types = {name: source}
    types[PACKED] = TensorType(workspace.dtype, OrderBy(Row(*workspace.shape)), ALIGNMENT)
    pack.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in types]
    )
    return kernel(grid=ctas, block=_THREADS, parameters=types, strict=True, pdl=True)(pack)


def _nothing() -> None:
    """Do nothing."""
