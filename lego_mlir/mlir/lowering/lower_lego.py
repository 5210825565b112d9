"""Lower the lego dialect to arith, affine, memref and gpu.

Every lego operation becomes the arithmetic that its layout derives. Index operations (`apply`,
`inv`, `size`, `dim`) are not lowered one by one: they are read as expressions, so that a load's
offset is simplified through the `inv` of a CTA id, whatever lies between. Only the values that
another dialect's operation uses are printed.

    %m, %n = "lego.inv"(%block) {layout = #blocks}
    %v = "lego.load"(%a, %m, %n, %i, %j) {layout = #A}

becomes

    %0 = arith.shrui %block, %c5
    %1 = arith.andi %block, %c31
    %2 = affine.apply affine_map<(d0, d1, d2, d3) -> (d0 * 32768 + d1 * 32 + d2 * 1024 + d3)>(...)
    %v = memref.load %flat[%2]

`mlir.lowering.accesses` lowers accesses of memory. The module's `lego.sizes` are consumed: the
layouts of the host function's arguments get the sizes as numbers. `lego.index_bitwidth` is set to
32 if every index is proven to fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.algebra.slices import Slice
from lego_mlir.hardware.targets import Target
from lego_mlir.index import Int
from lego_mlir.index.work import measured
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source, mlir_errors
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.launch_sizes.hoist_sizes import hoist_sizes, is_host
from lego_mlir.mlir.launch_sizes.promises import check_promises, is_open, promises_of
from lego_mlir.mlir.layouts import Layouts, symbols_of
from lego_mlir.mlir.lowering import atomics
from lego_mlir.mlir.lowering.access_checks import check_value, other_attribute, whole_dimensions
from lego_mlir.mlir.lowering.accesses import LayoutAccess, load, store
from lego_mlir.mlir.lowering.argument_layouts import complete_arguments
from lego_mlir.mlir.lowering.bijectivity import check_known, check_stored
from lego_mlir.mlir.lowering.buffers import FlatBuffers, alignment_of, allocate, elements_of
from lego_mlir.mlir.lowering.copy_boxes import BoxCopies, box_copy, in_buffer
from lego_mlir.mlir.lowering.derivations import derive_index, derive_offset, exists, located
from lego_mlir.mlir.lowering.indices.claims import claims
from lego_mlir.mlir.lowering.indices.index_checks import IndexChecks
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.lowering.indices.layout_operands import LayoutOperands
from lego_mlir.mlir.lowering.indices.printed_indices import PrintedIndices
from lego_mlir.mlir.lowering.indices.size_operands import SizeOperands
from lego_mlir.mlir.lowering.lower_tables import lower_tables
from lego_mlir.mlir.lowering.matrix_descriptors import lower_matrix_descriptor
from lego_mlir.mlir.lowering.parts_access.checks import check_parts, check_registers
from lego_mlir.mlir.lowering.parts_access.copies import lower_copy
from lego_mlir.mlir.lowering.parts_access.lower import lower_load, lower_store
from lego_mlir.mlir.lowering.parts_access.matrices import read_matrices, write_matrices
from lego_mlir.mlir.lowering.parts_access.offsets import Factor, last_index
from lego_mlir.mlir.lowering.parts_access.plan import PartsMemory, bytes_of
from lego_mlir.mlir.lowering.parts_access.sends import arrive, send
from lego_mlir.mlir.lowering.parts_access.updates import Updates
from lego_mlir.mlir.lowering.streamed_loads import prefetched_bytes
from lego_mlir.mlir.lowering.strided_buffers import StridedBuffers
from lego_mlir.mlir.modules import named_attributes, operations_in
from lego_mlir.mlir.scopes import KERNELS


def lower_lego(
    module: Any, layouts: Layouts, source: Source, target: Target, *, check: bool = False
) -> None:
    """Replace every lego operation of `module`, in place.

    Args:
        module: the module.
        layouts: reads its layouts.
        source: its text, in which errors are shown.
        target: the GPU architecture, which has some instructions or not.
        check: check in the kernels what is not proven (`mlir.lowering.indices.index_checks`).

    Raises:
        LegoError: at the operation or inside the layout's text.
    """
    with module.context, ir.Location.unknown(), mlir_errors(source, "lowering lego failed"):
        hoist_sizes(module, source)
        _Lowering(module, layouts, source, target, check=check).run()
        module.operation.verify()


class _Lowering:
    """The lowering of one module."""

    def __init__(
        self, module: Any, layouts: Layouts, source: Source, target: Target, *, check: bool
    ) -> None:
        self.module = module
        self.source = source
        self.layouts = layouts
        self.target = target
        self.reader = IndexReader()
        self.printed = PrintedIndices(self.reader, source)
        self.checks = IndexChecks(
            module, source, self.reader, self.printed.printers, in_kernels=check
        )
        sizes = SizeOperands(self.reader, source, self.printed.lasting, self.checks.size)
        self.reader.leaf = sizes.leaf
        self.operands = LayoutOperands(layouts, self.reader, sizes, source)
        self.flat = FlatBuffers(source)
        self.strided = StridedBuffers(self.reader, self.checks, source)
        self.boxes = BoxCopies(source)

    def run(self) -> None:
        self.checks.tables = lower_tables(self.module, self.source)
        named_ops: list[tuple[str, Any]] = []
        in_kernels: list[tuple[str, Any]] = []
        for op in operations_in(self.module.operation, KERNELS):
            named_ops.append((op.name, op))
            if op.name in KERNELS:
                inside = [(inner.name, inner) for inner in operations_in(op)]
                in_kernels += inside
                named_ops += inside
        lego = [
            op
            for name, op in named_ops
            if name.startswith(dialect.PREFIX) and name != dialect.TENSOR_MAPS
        ]
        for op in lego:
            self.operands.note(op)
        for op in self.module.body.operations:
            check_promises(op.operation, self.source)
            complete_arguments(op.operation, self.layouts, self.source)
            if is_host(op.operation):
                self.checks.arguments(op.operation, self.layouts)
        # The launch encodes tensor maps, so nothing is lowered for them.
        lowered = [op for op in lego if op.name != dialect.TENSOR_MAP]
        in_order = [(n, op) for n, op in named_ops if n.startswith(dialect.PREFIX) or claims(n, op)]
        for name, op in in_order:
            if name in (dialect.TENSOR_MAP, dialect.TENSOR_MAPS):
                continue
            step = self.lower if name.startswith(dialect.PREFIX) else self.checks.claim
            with measured():
                located(self.source, op, partial(step, op))
        self.checks.finish()
        self.printed.check_given(in_kernels)
        # Erase last: the reader's keys are addresses, which new operations may reuse.
        for op in reversed(lowered):
            op.erase()
        self.printed.set_bitwidth(self.module)
        if dialect.SIZES in self.module.operation.attributes:
            del self.module.operation.attributes[dialect.SIZES]

    # One method for each operation.
    def lower(self, op: Any) -> None:
        layout = self.layouts.of(op)
        match op.name:
            case dialect.APPLY:
                bound, index = self.operands.indexed(op, layout, list(op.operands))
                x = located(self.source, op, lambda: derive_offset(bound, tuple(index)))
                if not bound.is_partial:  # else it may be used where the mask holds
                    self.checks.indices(op, bound, index, None)
                self.printed.define(op, [x])
            case dialect.MASK:
                self.mask(op, layout)
            case dialect.INV:
                offset, *rest = list(op.operands)
                layout, x = self.operands.bound(op, layout, rest), self.reader.read(offset)
                if len(op.results) != layout.rank:
                    raise self.source.error(
                        f"'lego.inv' has {len(op.results)} results, "
                        f"its layout '{layout}' {layout.rank} dimensions",
                        op.location,
                        hint="it has one index result a dimension",
                    )
                found: Sequence[Int] = located(self.source, op, lambda: derive_index(layout, x))
                if dialect.BOUNDS in op.attributes:
                    found = self.printed.bounded(op, found)
                self.printed.define(op, found)
            case dialect.SIZE:
                bound = self.operands.bound(op, layout, list(op.operands))
                self.printed.define(op, [bound.size])
            case dialect.DIM:
                bound = self.operands.bound(op, layout, list(op.operands))
                self.printed.define(op, [self.operands.dim(op, bound)])
            case dialect.ALLOC:
                allocate(op, layout, self.source)
            case dialect.LOAD:
                self.load(op, layout)
            case dialect.STORE:
                self.store(op, layout)
            case dialect.ATOMIC:
                self.atomic(op, layout)
            case tiles.LOAD_PARTS:
                self.load_parts(op, layout)
            case tiles.STORE_PARTS:
                self.store_parts(op, layout)
            case tiles.COPY_PARTS:
                self.copy_parts(op, layout)
            case tiles.COPY_BOX:
                self.copy_box(op, layout)
            case tiles.SEND_PARTS:
                self.send_parts(op, layout)
            case tiles.LOAD_MATRICES:
                self.load_matrices(op, layout)
            case tiles.STORE_MATRICES:
                self.store_matrices(op, layout)
            case tiles.MATRIX_DESCRIPTOR:
                self.matrix_descriptor(op, layout)
            case dialect.CHECK:
                self.check(op, layout)
            case dialect.REDUCE_SCATTER:
                raise self.source.error(
                    "'lego.reduce_scatter' is left, whose sums nothing has taken to the threads",
                    op.location,
                    hint="transform_lego.contract_to_wgmma does, after transform_lego.split_k",
                )

    def mask(self, op: Any, layout: Layout) -> None:
        bound, index = self.operands.indexed(op, layout, list(op.operands))
        inside = located(self.source, op, lambda: bound.mask(*index))
        result = op.results[0]
        if any(True for _ in result.uses):
            _, condition = self.printed.printers(op)
            result.replace_all_uses_with(condition(inside))

    def load(self, op: Any, layout: Layout) -> None:
        buffer, *operands = list(op.operands)
        access = self.access(op, layout, buffer, operands, op.results[0].type)
        with ir.InsertionPoint(op), op.location:
            value = located(self.source, op, lambda: load(access))
        op.results[0].replace_all_uses_with(value)

    def store(self, op: Any, layout: Layout) -> None:
        if dialect.WITHIN in op.attributes:
            raise self.source.error(
                f"a store of some rows of a tile, '{dialect.WITHIN}', is left, that no schedule "
                "has taken to the threads",
                op.location,
                hint="--schedule=wgmma, with 'shared' on the store",
            )
        if dialect.KIND in op.attributes:
            raise self.source.error(
                f"'{op.name}' with '{dialect.KIND}' is of no tile that threads hold",
                op.location,
                hint="lego.atomic updates an element",
            )
        value, buffer, *operands = list(op.operands)
        access = self.access(op, layout, buffer, operands, value.type)
        check_stored(op, access.piece.layout, self.source)
        with ir.InsertionPoint(op), op.location:
            located(self.source, op, lambda: store(access, value))

    def atomic(self, op: Any, layout: Layout) -> None:
        value, buffer, *operands = list(op.operands)
        kind = op.attributes[dialect.KIND].value
        wrong = atomics.why_not_atomic(kind, ir.MemRefType(buffer.type).element_type)
        if wrong is not None:
            message, hint = wrong
            raise self.source.error(f"'{op.name}': {message}", op.location, hint=hint)
        access = self.access(op, layout, buffer, operands, value.type)
        check_stored(op, access.piece.layout, self.source)
        with ir.InsertionPoint(op), op.location:
            orders = dialect.ORDERS in op.attributes
            old = located(
                self.source, op, lambda: atomics.update(access, value, kind, is_ordered=orders)
            )
        op.results[0].replace_all_uses_with(old)

    def load_parts(self, op: Any, layout: Layout) -> None:
        (buffer,), operands, mask = tiles.segments_of(op)
        registers = check_registers(op, layout, self.source)
        memory = self.parts_memory(op, layout, buffer, operands)
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
        memory = self.parts_memory(op, layout, buffer, operands)
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
        source = self.parts_memory(op, layout, buffer, operands)
        to = self.layouts(op.attributes[tiles.TARGET], op.location)
        factors = tiles.registers_of(op, tiles.TARGET_REGISTERS)
        target = self.parts_memory(op, to, room, index, factors)
        with ir.InsertionPoint(op), op.location:
            located(self.source, op, lambda: lower_copy(source, target))

    def copy_box(self, op: Any, layout: Layout) -> None:
        if self.target.capability < (9, 0):
            raise self.source.error(
                f"{self.target.name} has no TMA", op.location, hint="--target=sm_90a"
            )
        (buffer,), operands, (room,), into, _ = tiles.segments_of(op)
        whole = whole_dimensions(op, layout, self.source)
        bound, index = self.operands.indexed(op, layout, operands)
        self.strided.layout(op, bound, buffer)  # refuses what has no strides
        at = tuple(None if k in whole else i for k, i in enumerate(index))
        self.checks.indices(op, bound, at, buffer)
        to = self.layouts(op.attributes[tiles.TARGET], op.location)
        whole = whole_dimensions(op, to, self.source, tiles.TARGET_SLICE)
        target, begin = self.operands.indexed(op, to, into)
        written = Slice(target, tuple(None if k in whole else i for k, i in enumerate(begin)))
        self.checks.indices(op, target, written.index, room)
        flat, _, _ = self.flat_memory(op, to, room)
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
        memory = self.parts_memory(op, layout, buffer, operands)
        check_parts(op, [part.type for part in parts], (), buffer, registers, self.source)
        with ir.InsertionPoint(op), op.location:
            located(self.source, op, lambda: send(memory, parts, barrier, cta, *slot))
            if tiles.ARRIVES in op.attributes:
                arrive(barrier, cta, *slot)

    def load_matrices(self, op: Any, layout: Layout) -> None:
        (buffer,), operands = tiles.segments_of(op)
        memory = self.parts_memory(op, layout, buffer, operands)
        kinds = [part.type for part in op.results]
        with ir.InsertionPoint(op), op.location:
            words = located(self.source, op, lambda: read_matrices(memory, op, kinds))
        for old, new in zip(op.results, words, strict=True):
            old.replace_all_uses_with(new)

    def store_matrices(self, op: Any, layout: Layout) -> None:
        (buffer,), operands, words = tiles.segments_of(op)
        memory = self.parts_memory(op, layout, buffer, operands)
        check_stored(op, memory.layout, self.source)
        with ir.InsertionPoint(op), op.location:
            located(self.source, op, lambda: write_matrices(memory, op, words))

    def matrix_descriptor(self, op: Any, layout: Layout) -> None:
        buffer, *operands = list(op.operands)
        bound, index = self.operands.indexed(op, layout, operands)
        flat, _, _ = self.flat_memory(op, layout, buffer)
        size = bytes_of(ir.MemRefType(buffer.type).element_type)
        offset = located(self.source, op, lambda: derive_offset(bound, tuple(index)))
        with ir.InsertionPoint(op), op.location:
            at, _ = self.printed.printers(op)
            word = lower_matrix_descriptor(flat, at(offset), size, tiles.word_of(op))
        op.results[0].replace_all_uses_with(word)

    def check(self, op: Any, layout: Layout) -> None:
        attributes = {name: a for name, a in named_attributes(op).items() if name != dialect.LAYOUT}
        if list(attributes) not in ([dialect.BIJECTIVE], [dialect.INJECTIVE]) or not all(
            isinstance(a, ir.UnitAttr) for a in attributes.values()
        ):
            raise self.source.error(
                f"'lego.check' asks for {', '.join(attributes) or 'nothing'}",
                op.location,
                hint="it takes the property as a unit attribute: {layout = #L, bijective}, or "
                "injective",
            )
        bound = self.operands.bound(op, layout, list(op.operands))
        verdict = self.layouts.verified(bound, op.location)
        if bound.window is not None:
            ask = bound.verify if dialect.BIJECTIVE in attributes else bound.verify_injective
            verdict = located(self.source, op, ask)
        check_known(verdict, bound, self.source, op.location)

    # Shared by several operations.
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
        flat, base, limit = self.flat_memory(op, layout, buffer)
        other = other_attribute(op, kind.element_type, self.source)
        printers = self.printed.printers(op, limit)
        mask = located(self.source, op, lambda: exists(piece))
        self.checks.indices(op, bound, index, buffer, mask)
        streamed = prefetched_bytes(self.target) if dialect.STREAMED in op.attributes else 0
        return LayoutAccess(piece, value, flat, base, other, *printers, streamed)

    def parts_memory(
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
        flat, base, limit = self.flat_memory(op, layout, buffer)
        in_bounds = written is not None or tiles.is_in_bounds(op)
        factors = tiles.registers_of(op) if written is None else written
        if in_bounds:
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

    def flat_memory(self, op: Any, layout: Layout, buffer: Any) -> tuple[Any, int, int]:
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
