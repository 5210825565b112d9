"""Lower the operations that access what one thread holds of a tile, and boxes that TMA copies.

Of each operation the memory is found and checked, then `mlir.lowering.parts_access` and
`mlir.lowering.parts_access.copy_boxes` print the accesses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.algebra.slices import Slice
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import Layouts, symbols_of
from lego_mlir.mlir.lowering.access_checks import other_attribute, whole_dimensions
from lego_mlir.mlir.lowering.bijectivity import check_stored
from lego_mlir.mlir.lowering.derivations import derive_offset, located
from lego_mlir.mlir.lowering.memories import Memories
from lego_mlir.mlir.lowering.parts_access.checks import check_parts, check_registers
from lego_mlir.mlir.lowering.parts_access.copies import alternate, by_rows, lower_copy
from lego_mlir.mlir.lowering.parts_access.copy_boxes import BoxCopies, box_copy, in_buffer
from lego_mlir.mlir.lowering.parts_access.lower import lower_load, lower_store
from lego_mlir.mlir.lowering.parts_access.matrices import read_matrices, write_matrices
from lego_mlir.mlir.lowering.parts_access.matrix_descriptors import lower_matrix_descriptor
from lego_mlir.mlir.lowering.parts_access.plan import bytes_of
from lego_mlir.mlir.lowering.parts_access.sends import arrive, send
from lego_mlir.mlir.lowering.parts_access.updates import Updates


class TileAccesses:
    """Lowers these operations of one module.

    Attributes:
        alternating: the lego.copy_parts whose copies alternate with those of the one before.
    """

    def __init__(self, memories: Memories, layouts: Layouts) -> None:
        self.memories = memories
        self.layouts = layouts
        self.source = memories.source
        self.target = memories.target
        self.printed = memories.printed
        self.checks = memories.checks
        self.operands = memories.operands
        self.boxes = BoxCopies(memories.source)
        self.alternating: set[Any] = set()
        self._copies: list[list[Any]] = []
        self.lowered_by = {
            tiles.LOAD_PARTS: self.load_parts,
            tiles.STORE_PARTS: self.store_parts,
            tiles.COPY_PARTS: self.copy_parts,
            tiles.COPY_BOX: self.copy_box,
            tiles.SEND_PARTS: self.send_parts,
            tiles.LOAD_MATRICES: self.load_matrices,
            tiles.STORE_MATRICES: self.store_matrices,
            tiles.MATRIX_DESCRIPTOR: self.matrix_descriptor,
        }

    def lower(self, op: Any, layout: Layout) -> None:
        """Lower an operation through a layout; others are left as they are."""
        if op.name in self.lowered_by:
            self.lowered_by[op.name](op, layout)

    def load_parts(self, op: Any, layout: Layout) -> None:
        (buffer,), operands, mask = tiles.segments_of(op)
        registers = check_registers(op, layout, self.source)
        memory = self.memories.of_parts(op, layout, buffer, operands)
        kinds = [part.type for part in op.results]
        check_parts(op, kinds, mask, buffer, registers, self.source)
        other = other_attribute(op, memory.element, self.source)
        with ir.InsertionPoint(op), op.location:
            parts = located(self.source, op, lambda: lower_load(memory, kinds, mask, other))
        for old, new in zip(op.results, parts, strict=True):
            old.replace_all_uses_with(new)

    def store_parts(self, op: Any, layout: Layout) -> None:
        (buffer,), operands, parts, mask = tiles.segments_of(op)
        registers = check_registers(op, layout, self.source)
        memory = self.memories.of_parts(op, layout, buffer, operands)
        check_stored(op, memory.layout, self.source)
        check_parts(op, [part.type for part in parts], mask, buffer, registers, self.source)
        updates = None
        if dialect.KIND in op.attributes:
            updates = Updates(op.attributes[dialect.KIND].value, self.target)
        with ir.InsertionPoint(op), op.location:
            located(self.source, op, lambda: lower_store(memory, parts, mask, updates))

    def copy_parts(self, op: Any, layout: Layout) -> None:
        (buffer,), operands, (room,), index = tiles.segments_of(op)
        check_registers(op, layout, self.source)
        source = self.memories.of_parts(op, layout, buffer, operands)
        to = self.layouts(op.attributes[tiles.TARGET], op.location)
        factors = tiles.registers_of(op, tiles.TARGET_REGISTERS)
        target = self.memories.of_parts(op, to, room, index, factors)
        with ir.InsertionPoint(op), op.location:
            copies = located(self.source, op, lambda: lower_copy(source, target))
        rows = 1
        if factors:
            dim, size, _ = factors[0]
            rows = size if size == to.dims[dim] else 1  # else other threads have some of them
        before = self._copies if op in self.alternating else []
        self._copies = alternate(before, by_rows(copies, rows))

    def copy_box(self, op: Any, layout: Layout) -> None:
        if self.target.capability < (9, 0):
            raise self.source.error(
                f"{self.target.name} has no TMA", op.location, hint="--target=sm_90a"
            )
        (buffer,), operands, (room,), into, _ = tiles.segments_of(op)
        whole = whole_dimensions(op, layout, self.source)
        bound, index = self.operands.indexed(op, layout, operands)
        self.memories.strided.layout(op, bound, buffer)  # refuses what has no strides
        at = tuple(None if k in whole else i for k, i in enumerate(index))
        self.checks.indices(op, bound, at, buffer)
        to = self.layouts(op.attributes[tiles.TARGET], op.location)
        whole = whole_dimensions(op, to, self.source, tiles.TARGET_SLICE)
        target, begin = self.operands.indexed(op, to, into)
        written = Slice(target, tuple(None if k in whole else i for k, i in enumerate(begin)))
        self.checks.indices(op, target, written.index, room)
        flat, _, _ = self.memories.view(op, to, room)
        size = bytes_of(ir.MemRefType(flat.type).element_type)
        symbols = symbols_of(layout, dialect.layout_attribute_of(op))
        sizes = zip(
            (s.name for s in symbols), operands[len(operands) - len(symbols) :], strict=True
        )

        def build() -> None:
            copy = box_copy(Slice(bound, at), written, size)
            known = box_copy(Slice(in_buffer(layout, buffer), at), written, size).map
            start = derive_offset(target, tuple(begin))
            print_index, _ = self.printed.printers(op)
            for x in copy.coordinates:
                self.printed.note(x)
            self.boxes.build(
                op, replace(copy, map=known), layout, dict(sizes), flat, start, print_index
            )

        with ir.InsertionPoint(op), op.location:
            located(self.source, op, build)

    def send_parts(self, op: Any, layout: Layout) -> None:
        (buffer,), operands, parts, (barrier,), slot, (cta,) = tiles.segments_of(op)
        registers = check_registers(op, layout, self.source)
        memory = self.memories.of_parts(op, layout, buffer, operands)
        check_parts(op, [part.type for part in parts], (), buffer, registers, self.source)
        with ir.InsertionPoint(op), op.location:
            located(self.source, op, lambda: send(memory, parts, barrier, cta, *slot))
            if tiles.ARRIVES in op.attributes:
                arrive(barrier, cta, *slot)

    def load_matrices(self, op: Any, layout: Layout) -> None:
        (buffer,), operands = tiles.segments_of(op)
        memory = self.memories.of_parts(op, layout, buffer, operands)
        kinds = [part.type for part in op.results]
        with ir.InsertionPoint(op), op.location:
            words = located(self.source, op, lambda: read_matrices(memory, op, kinds))
        for old, new in zip(op.results, words, strict=True):
            old.replace_all_uses_with(new)

    def store_matrices(self, op: Any, layout: Layout) -> None:
        (buffer,), operands, words = tiles.segments_of(op)
        memory = self.memories.of_parts(op, layout, buffer, operands)
        check_stored(op, memory.layout, self.source)
        with ir.InsertionPoint(op), op.location:
            located(self.source, op, lambda: write_matrices(memory, op, words))

    def matrix_descriptor(self, op: Any, layout: Layout) -> None:
        buffer, *operands = list(op.operands)
        bound, index = self.operands.indexed(op, layout, operands)
        flat, _, _ = self.memories.view(op, layout, buffer)
        size = bytes_of(ir.MemRefType(buffer.type).element_type)
        offset = located(self.source, op, lambda: derive_offset(bound, tuple(index)))
        with ir.InsertionPoint(op), op.location:
            at, _ = self.printed.printers(op)
            word = lower_matrix_descriptor(flat, at(offset), size, tiles.word_of(op))
        op.results[0].replace_all_uses_with(word)
