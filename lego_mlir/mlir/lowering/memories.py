"""What the operations of the lego dialect access: memory through layouts, checked."""

from __future__ import annotations

from functools import partial
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.algebra.slices import Slice
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.launch_sizes.promises import is_open, promises_of
from lego_mlir.mlir.lowering.access_checks import check_value, other_attribute, whole_dimensions
from lego_mlir.mlir.lowering.accesses import LayoutAccess
from lego_mlir.mlir.lowering.buffers import FlatBuffers, alignment_of, elements_of
from lego_mlir.mlir.lowering.derivations import exists, located
from lego_mlir.mlir.lowering.indices.index_checks import IndexChecks
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.lowering.indices.layout_operands import LayoutOperands
from lego_mlir.mlir.lowering.indices.printed_indices import PrintedIndices
from lego_mlir.mlir.lowering.parts_access.offsets import Factor, last_index
from lego_mlir.mlir.lowering.parts_access.plan import PartsMemory
from lego_mlir.mlir.lowering.streamed_loads import prefetched_bytes
from lego_mlir.mlir.lowering.strided_buffers import StridedBuffers


class Memories:
    """What the operations of one module access.

    Attributes:
        strided: gives tensors of run-time strides their layouts.
    """

    def __init__(
        self,
        source: Source,
        target: Target,
        reader: IndexReader,
        printed: PrintedIndices,
        checks: IndexChecks,
        operands: LayoutOperands,
    ) -> None:
        self.source = source
        self.target = target
        self.reader = reader
        self.printed = printed
        self.checks = checks
        self.operands = operands
        self.flat = FlatBuffers(source)
        self.strided = StridedBuffers(reader, checks, source)

    def access(
        self, op: Any, layout: Layout, buffer: Any, operands: list[Any], value: Any
    ) -> LayoutAccess:
        """Return the memory accesses of a load or store of a value of this type."""
        kind = ir.MemRefType(buffer.type)
        whole = whole_dimensions(op, layout, self.source)
        bound, index = self.operands.indexed(op, layout, operands, whole)
        bound = self.strided.layout(op, bound, buffer)
        piece = Slice(bound, tuple(index))
        check_value(op, value, piece if whole else None, kind.element_type, self.source)
        flat, base, limit = self.view(op, layout, buffer)
        other = other_attribute(op, kind.element_type, self.source)
        printers = self.printed.printers(op, limit)
        mask = located(self.source, op, lambda: exists(piece))
        self.checks.indices(op, bound, index, buffer, mask)
        streamed = prefetched_bytes(self.target) if dialect.STREAMED in op.attributes else 0
        return LayoutAccess(piece, value, flat, base, other, *printers, streamed)

    def of_parts(
        self,
        op: Any,
        layout: Layout,
        buffer: Any,
        operands: list[Any],
        written: list[Factor] | None = None,
    ) -> PartsMemory:
        """Return the memory that the parts of a tile are in.

        Args:
            op: the access.
            layout: of the memory.
            buffer: the memory.
            operands: the index of the thread's first element, then the values of symbols.
            written: the register factors in the memory that a copy writes, all of which is there.
        """
        bound, index = self.operands.indexed(op, layout, operands)
        bound = self.strided.layout(op, bound, buffer)
        flat, base, limit = self.view(op, layout, buffer)
        in_bounds = written is not None or tiles.is_in_bounds(op)
        factors = tiles.registers_of(op) if written is None else written
        if in_bounds and tiles.is_masked(op):
            pass  # all that the mask lets through exists
        elif in_bounds:
            for end in {tuple(index), last_index(index, factors)}:
                self.checks.indices(op, bound, end, buffer)
        else:
            self.checks.starts(op, index, buffer)
        return PartsMemory(
            bound,
            index,
            factors,
            in_bounds,
            flat,
            base,
            self.reader.read,
            partial(self.printed.note, limit=limit),
            *self.printed.printers(op, limit),
        )

    def view(self, op: Any, layout: Layout, buffer: Any) -> tuple[Any, int, int]:
        """Return a buffer as a view of one dimension, and what is known of its addresses.

        Returns:
            The view, the bytes that divide the address of its first element, and the exclusive
            upper bound of offsets that are accessed, 0 if there is none.

        Raises:
            LegoError: it is too small for the layout.
        """
        kind = ir.MemRefType(buffer.type)
        elements = elements_of(kind)
        if elements is not None and isinstance(layout.size, int) and layout.size > elements:
            raise self.source.error(
                f"'{op.name}': the layout '{layout}' has {layout.size} elements, "
                f"the buffer {kind} only {elements}",
                op.location,
                hint="the buffer's shape and the sizes of the layout must agree",
            )
        limit = (promises_of(buffer).elements if is_open(kind) else elements) or 0
        if not limit or limit >= 1 << 31:
            self.printed.fit_32_bits = False
        scope = self.printed.blocks.scope(op)
        flat = self.flat(buffer, scope, op)
        return flat, alignment_of(buffer, scope), limit if is_open(kind) else 0
