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
from functools import lru_cache, partial
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.algebra.slices import Slice
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, construct
from lego_mlir.index.functions import where
from lego_mlir.index.width import widest
from lego_mlir.index.work import measured
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source, mlir_errors
from lego_mlir.mlir.emit.arith import Printer
from lego_mlir.mlir.emit.block_printers import BlockPrinters
from lego_mlir.mlir.layouts import Layouts, layout_attribute, symbols_of
from lego_mlir.mlir.lowering import atomics
from lego_mlir.mlir.lowering.access_checks import check_value, other_attribute, whole_dimensions
from lego_mlir.mlir.lowering.accesses import LayoutAccess, Print, load, store
from lego_mlir.mlir.lowering.bijectivity import check_known
from lego_mlir.mlir.lowering.buffers import (
    FlatBuffers,
    alignment_of,
    allocate,
    elements_of,
)
from lego_mlir.mlir.lowering.claims import claims
from lego_mlir.mlir.lowering.index_checks import IndexChecks
from lego_mlir.mlir.lowering.index_reader import IndexReader, bound_of
from lego_mlir.mlir.lowering.lower_tables import lower_tables
from lego_mlir.mlir.lowering.size_operands import SizeOperands
from lego_mlir.mlir.modules import named_attributes, operations_in
from lego_mlir.mlir.scopes import KERNELS


def lower_lego(module: Any, layouts: Layouts, source: Source, *, check: bool = False) -> None:
    """Replace every lego operation of `module`, in place.

    Args:
        module: the module.
        layouts: reads its layouts.
        source: its text, in which errors are shown.
        check: check in the kernels what is not proven (`mlir.lowering.index_checks`).

    Raises:
        LegoError: at the operation or inside the layout's text.
    """
    with module.context, ir.Location.unknown(), mlir_errors(source, "lowering lego failed"):
        _Lowering(module, layouts, source, check=check).run()
        module.operation.verify()


class _Lowering:
    """The lowering of one module."""

    def __init__(self, module: Any, layouts: Layouts, source: Source, *, check: bool) -> None:
        self.module = module
        self.source = source
        self.layouts = layouts
        self.reader = IndexReader()
        self.checks = IndexChecks(module, source, self.reader, self.printers_at, in_kernels=check)
        self.sizes = SizeOperands(self.reader, source, self.lasting, self.checks.size)
        self.reader.leaf = self.sizes.leaf
        self.flat = FlatBuffers(source)
        self.block_printers = BlockPrinters(self.reader.values)
        self.narrow = True

    def run(self) -> None:
        self.checks.tables = lower_tables(self.module, self.source)
        given: list[tuple[str, Any]] = []
        in_kernels: list[tuple[str, Any]] = []
        for op in operations_in(self.module.operation, KERNELS):
            given.append((op.name, op))
            if op.name in KERNELS:
                inside = [(inner.name, inner) for inner in operations_in(op)]
                in_kernels += inside
                given += inside
        lego = [
            op
            for name, op in given
            if name.startswith(dialect.PREFIX) and name != dialect.TENSOR_MAPS
        ]
        for op in lego:
            self.note(op)
        for op in self.module.body.operations:
            self.visit_arguments(op.operation)
        # The launch encodes tensor maps, so nothing is lowered for them.
        lowered = [op for op in lego if op.name != dialect.TENSOR_MAP]
        in_order = [(n, op) for n, op in given if n.startswith(dialect.PREFIX) or claims(n, op)]
        for name, op in in_order:
            if name in (dialect.TENSOR_MAP, dialect.TENSOR_MAPS):
                continue
            step = self.lower if name.startswith(dialect.PREFIX) else self.checks.claim
            with measured():
                self.derived(op, partial(step, op))
        self.checks.finish()
        self.check_indices(in_kernels)
        # Erase last: the reader's keys are addresses, which new operations may reuse.
        for op in reversed(lowered):
            op.erase()
        self.set_bitwidth()
        if dialect.SIZES in self.module.operation.attributes:
            del self.module.operation.attributes[dialect.SIZES]

    def note(self, op: Any) -> None:
        """Collect what a lego operation's layout implies of its size operands."""
        if op.name == dialect.SUM_SLICES:
            raise self.source.error(
                "'lego.sum_slices' is left, whose sums nothing has taken to the threads",
                op.location,
                hint="transform_lego.contract_to_wgmma does, after transform_lego.split_k",
            )
        layout = self.layouts.of(op)
        symbols = symbols_of(layout, dialect.layout_attribute_of(op))
        if symbols and len(op.operands) >= len(symbols):
            self.sizes.note(symbols, list(op.operands)[-len(symbols) :])

    def visit_arguments(self, func: Any) -> None:
        """Check the layouts of a function's arguments and fill in their sizes."""
        if func.name != "func.func" or "arg_attrs" not in func.attributes:
            return
        kinds = ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value).inputs
        kept = []
        for number, attrs in enumerate(ir.ArrayAttr(func.attributes["arg_attrs"])):
            entries = {entry.name: entry.attr for entry in ir.DictAttr(attrs)}
            if dialect.ALIGNMENT in entries:
                self.check_alignment(entries[dialect.ALIGNMENT], func)
            if dialect.ARGUMENT_LAYOUT in entries:
                layout = self.layouts(entries[dialect.ARGUMENT_LAYOUT], func.location)
                self.check_argument(number, kinds[number], layout, func)
                entries[dialect.ARGUMENT_LAYOUT] = layout_attribute(layout)
            kept.append(ir.DictAttr.get(entries))
        func.attributes["arg_attrs"] = ir.ArrayAttr.get(kept)

    def check_alignment(self, attribute: Any, func: Any) -> None:
        n = attribute.value if isinstance(attribute, ir.IntegerAttr) else 0
        if n < 1 or n & (n - 1):
            raise self.source.error(
                f"{dialect.ALIGNMENT} is a power of two in bytes, not '{attribute}'", func.location
            )

    def check_argument(self, number: int, kind: Any, layout: Layout, func: Any) -> None:
        what = f"argument {number} of @{ir.StringAttr(func.attributes['sym_name']).value}"
        if not isinstance(kind, ir.MemRefType):
            raise self.source.error(
                f"{what} has a layout but is no memref, it is {kind}", func.location
            )
        elements = elements_of(ir.MemRefType(kind))
        if elements is None or not isinstance(layout.size, int):
            return
        if elements != layout.size:
            raise self.source.error(
                f"{what}: {kind} has {elements} elements, its layout '{layout}' has {layout.size}",
                func.location,
                hint="the memref's shape and the sizes in lego.sizes must agree",
            )

    # One method for each operation.
    def lower(self, op: Any) -> None:
        layout = self.layouts.of(op)
        match op.name:
            case dialect.APPLY:
                bound, index = self.indexed(op, layout, list(op.operands))
                x = self.derived(op, lambda: _apply(bound, tuple(index)))
                if not bound.is_partial:  # else it may be used where the mask holds
                    self.checks.indices(op, bound, index, None)
                self.define(op, [x])
            case dialect.MASK:
                self.mask(op, layout)
            case dialect.INV:
                offset, *rest = list(op.operands)
                layout, x = self.bound(op, layout, rest), self.reader.read(offset)
                if len(op.results) != layout.rank:
                    raise self.source.error(
                        f"'lego.inv' has {len(op.results)} results, "
                        f"its layout '{layout}' {layout.rank} dimensions",
                        op.location,
                        hint="it has one index result a dimension",
                    )
                found = self.derived(op, lambda: _inv(layout, x))
                self.define(
                    op, self.bounded(op, found) if dialect.BOUNDS in op.attributes else found
                )
            case dialect.SIZE:
                self.define(op, [self.bound(op, layout, list(op.operands)).size])
            case dialect.DIM:
                self.define(op, [self.dim(op, self.bound(op, layout, list(op.operands)))])
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
            case dialect.REDUCE_SCATTER:
                raise self.source.error(
                    "'lego.reduce_scatter' is left, whose sums nothing has taken to the threads",
                    op.location,
                    hint="transform_lego.contract_to_wgmma does, after transform_lego.split_k",
                )

    def indexed(
        self, op: Any, layout: Layout, operands: list[Any], whole: Sequence[int] = ()
    ) -> tuple[Layout, list[Any]]:
        """Return the layout and the index that the operands, indices and then symbols, give.

        The index of the dimensions in `whole` is `None`.
        """
        dims = [n for k, n in enumerate(layout.dims) if k not in whole]
        indices, symbols = operands[: len(dims)], operands[len(dims) :]
        if len(indices) < len(dims):
            raise self.source.error(
                f"'{op.name}' got {_count(len(indices), 'index', 'indices')}, "
                f"its layout '{layout}' takes "
                f"{len(dims)} ({', '.join(str(n) for n in dims)})",
                op.location,
                hint="one index operand a dimension, then one a symbol of the layout",
            )
        bound = self.bound(op, layout, symbols)
        given = iter(indices)
        return bound, [
            None if k in whole else self.reader.read(next(given)) for k in range(layout.rank)
        ]

    def bound(self, op: Any, layout: Layout, operands: list[Any]) -> Layout:
        """Return the layout with its symbols replaced by the operands' values."""
        symbols = symbols_of(layout, dialect.layout_attribute_of(op))
        if len(operands) != len(symbols):
            names = ", ".join(s.name for s in symbols)
            raise self.source.error(
                f"'{op.name}' got {_count(len(operands), 'operand', 'operands')} for "
                + (f"the symbols {names} of" if symbols else "symbols, but there are none in")
                + f" its layout '{layout}'",
                op.location,
                hint="pass one index operand a symbol, or give it a value in lego.sizes",
            )
        if not symbols:
            return layout
        values = self.sizes.values(op, layout, symbols, operands)
        bound = self.derived(op, lambda: layout.substitute(values))
        self.layouts.verified(bound, op.location)
        return bound  # type: ignore[no-any-return]

    def dim(self, op: Any, layout: Layout) -> Int:
        number = dialect.dim_of(op)
        if not 0 <= number < layout.rank:
            raise self.source.error(
                f"'lego.dim': dimension {number} is not in [0, {layout.rank}), "
                f"the dimensions of '{layout}'",
                op.location,
                hint="dimensions count from 0",
            )
        return layout.dims[number]

    def mask(self, op: Any, layout: Layout) -> None:
        bound, index = self.indexed(op, layout, list(op.operands))
        inside = self.derived(op, lambda: bound.mask(*index))
        result = op.results[0]
        if any(True for _ in result.uses):
            _, condition = self.printers(op, self.block_printers.printer(op))
            result.replace_all_uses_with(condition(inside))

    def load(self, op: Any, layout: Layout) -> None:
        buffer, *operands = list(op.operands)
        access = self.access(op, layout, buffer, operands, op.results[0].type)
        with ir.InsertionPoint(op), op.location:
            value = self.derived(op, lambda: load(access))
        op.results[0].replace_all_uses_with(value)

    def store(self, op: Any, layout: Layout) -> None:
        if dialect.WITHIN in op.attributes:
            raise self.source.error(
                f"a store of some rows of a tile, '{dialect.WITHIN}', is left, that no schedule "
                "has taken to the threads",
                op.location,
                hint="--schedule=hmma or wgmma, with 'shared' on the store",
            )
        value, buffer, *operands = list(op.operands)
        access = self.access(op, layout, buffer, operands, value.type)
        with ir.InsertionPoint(op), op.location:
            self.derived(op, lambda: store(access, value))

    def atomic(self, op: Any, layout: Layout) -> None:
        value, buffer, *operands = list(op.operands)
        kind = op.attributes[dialect.KIND].value
        wrong = atomics.why_not_atomic(kind, ir.MemRefType(buffer.type).element_type)
        if wrong is not None:
            message, hint = wrong
            raise self.source.error(f"'{op.name}': {message}", op.location, hint=hint)
        access = self.access(op, layout, buffer, operands, value.type)
        with ir.InsertionPoint(op), op.location:
            old = self.derived(op, lambda: atomics.update(access, value, kind))
        op.results[0].replace_all_uses_with(old)

    def check(self, op: Any, layout: Layout) -> None:
        asked = {name: a for name, a in named_attributes(op).items() if name != dialect.LAYOUT}
        if list(asked) != [dialect.BIJECTIVE] or not isinstance(
            asked[dialect.BIJECTIVE], ir.UnitAttr
        ):
            raise self.source.error(
                f"'lego.check' asks for {', '.join(asked) or 'nothing'}",
                op.location,
                hint="it takes the property as a unit attribute: {layout = #L, bijective}",
            )
        bound = self.bound(op, layout, list(op.operands))
        check_known(self.layouts.verified(bound, op.location), bound, self.source, op.location)

    # Shared by several operations.
    def access(
        self, op: Any, layout: Layout, buffer: Any, operands: list[Any], value: Any
    ) -> LayoutAccess:
        """Return the memory accesses of a load or store of a value of this type."""
        kind = ir.MemRefType(buffer.type)
        whole = whole_dimensions(op, layout, self.source)
        bound, index = self.indexed(op, layout, operands, whole)
        piece = Slice(bound, tuple(index))
        check_value(op, value, piece if whole else None, kind.element_type, self.source)
        elements = elements_of(kind)
        if elements is not None and isinstance(layout.size, int) and layout.size > elements:
            raise self.source.error(
                f"'{op.name}': the layout '{layout}' has {layout.size} elements, "
                f"the buffer {kind} only {elements}",
                op.location,
                hint="the buffer's shape and the sizes of the layout must agree",
            )
        if elements is None or elements >= 1 << 31:
            self.narrow = False
        scope = self.block_printers.scope(op)
        flat, other = (
            self.flat(buffer, scope, op),
            other_attribute(op, kind.element_type, self.source),
        )
        base = alignment_of(buffer, scope)
        printers = self.printers(op, self.block_printers.printer(op))
        self.checks.indices(op, bound, index, buffer, self.derived(op, lambda: _exists(piece)))
        return LayoutAccess(piece, value, flat, base, other, *printers)

    def printers(self, op: Any, printer: Printer) -> tuple[Print, Print]:
        """Return what prints expressions at an operation: as values, and as conditions."""

        def noting(make: Print) -> Print:
            def printed(x: Int) -> Any:
                self.narrow = self.narrow and _fits(x)
                with op.location:
                    return self.derived(op, lambda: make(x))

            return printed

        return noting(printer.print), noting(printer.condition)

    def printers_at(self, op: Any) -> tuple[Print, Print]:
        """Return what prints expressions at an operation, by its position alone."""
        return self.printers(op, self.block_printers.printer(op))

    def lasting(self, value: Any, x: Int) -> Any:
        """Return a value that remains: that of a lego operation is printed at the operation."""
        if isinstance(value, ir.BlockArgument) or not value.owner.name.startswith(dialect.PREFIX):
            return value
        owner = value.owner.operation
        return self.printers(owner, self.block_printers.printer_without_reuse(owner))[0](x)

    def define(self, op: Any, xs: Any) -> None:
        """Set the expressions of an index operation's results; print those that others use."""
        for result, x in zip(op.results, xs, strict=True):
            self.reader.define(result, x)
            others = [
                (use.owner, use.operand_number)
                for use in result.uses
                if not use.owner.name.startswith(dialect.PREFIX)
            ]
            if others:
                value = self.printers(op, self.block_printers.printer(op))[0](x)
                self.reader.define(value, x)
                for user, number in others:
                    user.operation.operands[number] = value

    def bounded(self, op: Any, xs: Sequence[Int]) -> list[Int]:
        """Return an operation's results as symbols with the bounds that it states."""
        found: list[Int] = []
        for result, x in zip(op.results, xs, strict=True):
            bound = bound_of(result)
            if bound is None or isinstance(x, int):
                found.append(x)
            else:
                value = self.printers(op, self.block_printers.printer(op))[0](x)
                found.append(self.reader.symbol(value, "at", 0, bound - 1))
        return found

    def derived(self, op: Any, make: Any) -> Any:
        """Call `make`, and give an error without a location that of the operation."""
        try:
            return make()
        except LegoError as e:
            if e.location is None:
                raise self.source.error(e.message, op.location, hint=e.hint) from None
            raise

    def check_indices(self, ops: list[tuple[str, Any]]) -> None:
        """Clear `narrow` unless 32 bits hold every index that the kernels had before printing."""
        with_indices = (op for name, op in ops if not name.startswith(_WITHOUT_INDICES))
        values = {value for op in with_indices for value in (*op.operands, *op.results)}
        index = ir.IndexType.get()
        indices = {self.reader.read(value) for value in values if value.type == index}
        self.narrow = self.narrow and all(map(_fits, indices))

    def set_bitwidth(self) -> None:
        """Set 32 bits if every index of the kernels is proven to fit, else 64."""
        width = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 32 if self.narrow else 64)
        self.module.operation.attributes[dialect.INDEX_BITWIDTH] = width


def _exists(piece: Slice) -> Int:
    """Return a slice's mask, which is 0 where neither its first nor its last element exists."""
    if not piece.layout.is_partial:
        return 1
    last = tuple(construct.sub(n, 1) for n in piece.shape)
    first = piece.mask(*(0 for _ in last))
    return where(first, 1, piece.mask(*last)) if last else first  # type: ignore[no-any-return]


def _apply(layout: Layout, index: tuple[Int, ...]) -> Int:
    """Return `layout.apply`, cached unless the layout calls functions of its module."""
    return layout.apply(*index) if layout.functions else _known_apply(layout, index)


def _inv(layout: Layout, offset: Int) -> tuple[Int, ...]:
    """Return `layout.inv`, cached in the same way."""
    return layout.inv(offset) if layout.functions else _known_inv(layout, offset)


@lru_cache(maxsize=1 << 12)
def _known_apply(layout: Layout, index: tuple[Int, ...]) -> Int:
    return layout.apply(*index)  # type: ignore[no-any-return]


@lru_cache(maxsize=1 << 12)
def _known_inv(layout: Layout, offset: Int) -> tuple[Int, ...]:
    return layout.inv(offset)


_WITHOUT_INDICES = ("llvm.", "nvvm.")
"""Dialects whose operations neither take nor give indices."""


def _fits(x: Int) -> bool:
    """Return whether `x` and its intermediate results fit a signed 32-bit integer."""
    size = widest(x)
    return size is not None and size < 1 << 31


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"
