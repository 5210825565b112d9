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
from functools import partial
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.hardware.targets import Target
from lego_mlir.index import Int
from lego_mlir.index.work import measured
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source, mlir_errors
from lego_mlir.mlir.launch_sizes.hoist_sizes import MAKERS, hoist_sizes, is_host
from lego_mlir.mlir.launch_sizes.promises import check_promises
from lego_mlir.mlir.layouts import Layouts
from lego_mlir.mlir.lowering import atomics
from lego_mlir.mlir.lowering.access_checks import check_attributes
from lego_mlir.mlir.lowering.accesses import load, store
from lego_mlir.mlir.lowering.argument_layouts import complete_arguments
from lego_mlir.mlir.lowering.bijectivity import check_known, check_stored
from lego_mlir.mlir.lowering.buffers import allocate
from lego_mlir.mlir.lowering.derivations import derive_index, derive_offset, located
from lego_mlir.mlir.lowering.indices.claims import claims
from lego_mlir.mlir.lowering.indices.index_checks import IndexChecks
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.lowering.indices.layout_operands import LayoutOperands
from lego_mlir.mlir.lowering.indices.printed_indices import PrintedIndices
from lego_mlir.mlir.lowering.indices.size_operands import SizeOperands
from lego_mlir.mlir.lowering.lower_tables import TABLES, lower_tables
from lego_mlir.mlir.lowering.memories import Memories
from lego_mlir.mlir.lowering.parts_access.copies import alternating
from lego_mlir.mlir.lowering.parts_access.tile_accesses import TileAccesses
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
        self.memories = Memories(
            source, target, self.reader, self.printed, self.checks, self.operands
        )
        self.tile_accesses = TileAccesses(self.memories, layouts)

    def run(self) -> None:
        named_ops, in_kernels = self._operations()
        names = {name for name, _ in named_ops}
        hoist_sizes(self.module, self.source, names)
        if not names.isdisjoint(TABLES):
            self.checks.tables = lower_tables(self.module, self.source)
        if not names.isdisjoint(TABLES | MAKERS):
            named_ops, in_kernels = self._operations()
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
        self.tile_accesses.alternating = alternating(in_kernels)
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
    def _operations(self) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
        """Return the module's operations in order, with their names, and those in its kernels."""
        found: list[tuple[str, Any]] = []
        in_kernels: list[tuple[str, Any]] = []
        for op in operations_in(self.module.operation, KERNELS):
            found.append((op.name, op))
            if op.name in KERNELS:
                inside = [(inner.name, inner) for inner in operations_in(op)]
                in_kernels += inside
                found += inside
        return found, in_kernels

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
            case dialect.CHECK:
                self.check(op, layout)
            case _:
                self.tile_accesses.lower(op, layout)

    def mask(self, op: Any, layout: Layout) -> None:
        bound, index = self.operands.indexed(op, layout, list(op.operands))
        inside = located(self.source, op, lambda: bound.mask(*index))
        result = op.results[0]
        if any(True for _ in result.uses):
            _, condition = self.printed.printers(op)
            result.replace_all_uses_with(condition(inside))

    def load(self, op: Any, layout: Layout) -> None:
        check_attributes(op, self.source)
        buffer, *operands = list(op.operands)
        access = self.memories.access(op, layout, buffer, operands, op.results[0].type)
        with ir.InsertionPoint(op), op.location:
            value = located(self.source, op, lambda: load(access))
        op.results[0].replace_all_uses_with(value)

    def store(self, op: Any, layout: Layout) -> None:
        check_attributes(op, self.source)
        if dialect.KIND in op.attributes:
            raise self.source.error(
                f"'{op.name}' with '{dialect.KIND}' is of no tile that threads hold",
                op.location,
                hint="lego.atomic updates an element",
            )
        value, buffer, *operands = list(op.operands)
        access = self.memories.access(op, layout, buffer, operands, value.type)
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
        access = self.memories.access(op, layout, buffer, operands, value.type)
        check_stored(op, access.piece.layout, self.source)
        with ir.InsertionPoint(op), op.location:
            orders = dialect.ORDERS in op.attributes
            old = located(
                self.source,
                op,
                lambda: atomics.update(access, value, kind, self.target, is_ordered=orders),
            )
        op.results[0].replace_all_uses_with(old)

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
