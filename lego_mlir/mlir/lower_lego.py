"""lego → arith, affine, memref, gpu: the pass that this project is for.

Every lego operation becomes the arithmetic that its layout derives. Index operations (`apply`,
`inv`, `size`, `dim`) are not printed where they stand: they are read as expressions, so that a
load's offset is simplified through the `inv` of a block id, whatever lies between. Only what
another dialect's operation uses is printed.

    %m, %n = "lego.inv"(%block) {layout = #blocks}
    %v = "lego.load"(%a, %m, %n, %i, %j) {layout = #A}

becomes

    %0 = arith.shrui %block, %c5
    %1 = arith.andi %block, %c31
    %2 = affine.apply affine_map<(d0, d1, d2, d3) -> (d0 * 32768 + d1 * 32 + d2 * 1024 + d3)>(...)
    %v = memref.load %flat[%2]

The module's `lego.sizes` are consumed: the layouts of the host function's arguments come out with
the sizes filled in. `lego.index_bitwidth` is set to 32 where every index is proven to fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, Sym, construct, substitute
from lego_mlir.mlir.bindings import ir, memref
from lego_mlir.mlir.context import Source, mlir_errors
from lego_mlir.mlir.layouts import Layouts, layout_attribute
from lego_mlir.mlir.reader import IndexReader, read_function
from lego_mlir.mlir.scopes import Scope, scope_of
from lego_mlir.printers.arith import Printer, widest

SIZES = "lego.sizes"
LAYOUT = "lego.layout"
INDEX_BITWIDTH = "lego.index_bitwidth"


def lower_lego(module: Any, source: Source) -> None:
    """Replace every lego operation of `module`, in place.

    Raises:
        LegoError: at the place of the operation or inside the layout's text.
    """
    with module.context, ir.Location.unknown(), mlir_errors(source, "lowering lego failed"):
        _Lowering(module, source).run()
        module.operation.verify()


def sizes_of(module: Any, source: Source) -> dict[str, int]:
    """The module's `lego.sizes`: values of the symbols in its layouts.

    Raises:
        LegoError: it is no dictionary of positive integers.
    """
    if SIZES not in module.operation.attributes:
        return {}
    attribute = module.operation.attributes[SIZES]
    location = module.operation.location
    if not isinstance(attribute, ir.DictAttr):
        raise source.error(f"{SIZES} is a dictionary, not '{attribute}'", location)
    sizes: dict[str, int] = {}
    for entry in ir.DictAttr(attribute):
        if not isinstance(entry.attr, ir.IntegerAttr) or ir.IntegerAttr(entry.attr).value < 1:
            raise source.error(
                f"{SIZES}: {entry.name} is a positive integer, not '{entry.attr}'", location
            )
        sizes[entry.name] = ir.IntegerAttr(entry.attr).value
    return sizes


class _Lowering:
    """One run over one module."""

    def __init__(self, module: Any, source: Source) -> None:
        self.module = module
        self.source = source
        functions = {
            ir.StringAttr(op.attributes["sym_name"]).value: read_function(op, source)
            for op in (o.operation for o in module.body.operations)
            if op.name == "func.func"
        }
        self.layouts = Layouts(source, sizes_of(module, source), functions)
        self.reader = IndexReader()
        self.lego_ops: list[Any] = []
        self.index_ops: list[Any] = []
        self.flat: dict[tuple[Any, Any], Any] = {}
        self.narrow = True

    def run(self) -> None:
        for op in self.module.body.operations:
            self.visit_arguments(op.operation)
            self.visit(op.operation)
        for op in self.index_ops:
            self.print_results(op)
        # Erasing comes last: the reader knows values by address, and those are used again.
        for op in reversed(self.lego_ops):
            op.erase()
        self.set_bitwidth()
        if SIZES in self.module.operation.attributes:
            del self.module.operation.attributes[SIZES]

    def visit(self, op: Any) -> None:
        for region in op.regions:
            for block in region.blocks:
                for inner in list(block.operations):
                    operation = inner.operation
                    if operation.name.startswith("lego."):
                        self.lower(operation)
                    else:
                        self.visit(operation)

    def visit_arguments(self, func: Any) -> None:
        """Check the layouts of a function's arguments and fill in their sizes."""
        if func.name != "func.func" or "arg_attrs" not in func.attributes:
            return
        kept = []
        for argument, attrs in zip(
            func.regions[0].blocks[0].arguments,
            ir.ArrayAttr(func.attributes["arg_attrs"]),
            strict=True,
        ):
            entries = {entry.name: entry.attr for entry in ir.DictAttr(attrs)}
            if LAYOUT in entries:
                layout = self.layouts(entries[LAYOUT], func.location)
                self.check_argument(argument, layout, func)
                entries[LAYOUT] = layout_attribute(layout)
            kept.append(ir.DictAttr.get(entries))
        func.attributes["arg_attrs"] = ir.ArrayAttr.get(kept)

    def check_argument(self, argument: Any, layout: Layout, func: Any) -> None:
        what = f"argument {argument.arg_number} of @{ir.StringAttr(func.attributes['sym_name']).value}"
        if not isinstance(argument.type, ir.MemRefType):
            raise self.source.error(f"{what} has a layout but is no memref", func.location)
        elements = _elements(ir.MemRefType(argument.type))
        if elements is None or not isinstance(layout.size, int):
            return
        if elements != layout.size:
            raise self.source.error(
                f"{what}: {argument.type} has {elements} elements, its layout '{layout}' "
                f"has {layout.size}",
                func.location,
                hint="the memref's shape and the sizes in lego.sizes must agree",
            )

    # One method an operation.
    def lower(self, op: Any) -> None:
        layout = self.layouts(op.attributes["layout"], op.location)
        self.lego_ops.append(op)
        match op.name:
            case "lego.apply":
                self.define(op, [self.apply(op, layout, list(op.operands))])
            case "lego.inv":
                offset, *rest = list(op.operands)
                layout, x = self.bound(op, layout, rest), self.reader.read(offset)
                if len(op.results) != layout.rank:
                    raise self.source.error(
                        f"'lego.inv' has {len(op.results)} results, "
                        f"its layout '{layout}' {layout.rank} dimensions",
                        op.location,
                    )
                self.define(op, self.derived(op, lambda: layout.inv(x)))
            case "lego.size":
                self.define(op, [self.bound(op, layout, list(op.operands)).size])
            case "lego.dim":
                self.define(op, [self.dim(op, self.bound(op, layout, list(op.operands)))])
            case "lego.alloc":
                self.alloc(op, layout)
            case "lego.load":
                self.load(op, layout)
            case "lego.store":
                self.store(op, layout)

    def apply(self, op: Any, layout: Layout, operands: list[Any]) -> Int:
        """The offset of operands that are indices and then symbols."""
        indices, symbols = operands[: layout.rank], operands[layout.rank :]
        if len(indices) < layout.rank:
            raise self.source.error(
                f"'{op.name}' got {len(indices)} indices, its layout '{layout}' takes "
                f"{layout.rank} ({', '.join(str(n) for n in layout.dims)})",
                op.location,
            )
        bound = self.bound(op, layout, symbols)
        xs = [self.reader.read(i) for i in indices]
        return self.derived(op, lambda: bound.apply(*xs))  # type: ignore[no-any-return]

    def bound(self, op: Any, layout: Layout, operands: list[Any]) -> Layout:
        """The layout with its symbols tied to the operands that give their values."""
        symbols = layout.symbols
        if len(operands) != len(symbols):
            names = ", ".join(s.name for s in symbols) or "none"
            raise self.source.error(
                f"'{op.name}' got {len(operands)} operands for the symbols of its layout "
                f"'{layout}' ({names})",
                op.location,
                hint="pass one index operand a symbol, or give it a value in lego.sizes",
            )
        values: dict[Sym, Int] = {}
        for s, operand in zip(symbols, operands, strict=True):
            x = self.reader.read(operand)
            known = isinstance(x, int) or isinstance(x, Sym) and x.lo is not None
            divisors = frozenset(substitute(d, values) for d in s.divisors)
            values[s] = x if known else self.reader.symbol(operand, s.name, 1, None, divisors)
        return self.derived(op, lambda: layout.substitute(values))  # type: ignore[no-any-return]

    def dim(self, op: Any, layout: Layout) -> Int:
        number = ir.IntegerAttr(op.attributes["dim"]).value
        if not 0 <= number < layout.rank:
            raise self.source.error(
                f"'lego.dim': dimension {number} is not in [0, {layout.rank}), "
                f"the dimensions of '{layout}'",
                op.location,
            )
        return layout.dims[number]

    def alloc(self, op: Any, layout: Layout) -> None:
        if not isinstance(layout.size, int):
            names = ", ".join(s.name for s in layout.symbols)
            raise self.source.error(
                f"'lego.alloc' needs a layout of known size, '{layout}' has symbols ({names})",
                op.location,
                hint="give them values in lego.sizes",
            )
        given = ir.MemRefType(op.results[0].type)
        buffer_type = ir.MemRefType.get(
            [layout.size], given.element_type, memory_space=given.memory_space
        )
        scope = scope_of(op)
        if scope.kernel is None:
            raise self.source.error(
                "'lego.alloc' stands outside of a kernel",
                op.location,
                hint="shared and private buffers belong inside the gpu.launch",
            )
        if "workgroup" in str(given.memory_space):
            buffer = scope.add_workgroup_buffer(buffer_type, op.location)
        else:
            with ir.InsertionPoint(op), op.location:
                buffer = memref.AllocaOp(buffer_type, [], []).memref
        op.results[0].replace_all_uses_with(buffer)

    def load(self, op: Any, layout: Layout) -> None:
        buffer, *operands = list(op.operands)
        flat, offset = self.access(op, layout, buffer, operands, op.results[0].type)
        with ir.InsertionPoint(op), op.location:
            value = memref.LoadOp(flat, [offset]).result
        op.results[0].replace_all_uses_with(value)

    def store(self, op: Any, layout: Layout) -> None:
        value, buffer, *operands = list(op.operands)
        flat, offset = self.access(op, layout, buffer, operands, value.type)
        with ir.InsertionPoint(op), op.location:
            memref.StoreOp(value, flat, [offset])

    # What they share.
    def access(
        self, op: Any, layout: Layout, buffer: Any, operands: list[Any], element: Any
    ) -> tuple[Any, Any]:
        """The flat buffer and the offset value of a load or store."""
        kind = ir.MemRefType(buffer.type)
        if kind.element_type != element:
            raise self.source.error(
                f"'{op.name}' of {element} through a buffer of {kind.element_type}", op.location
            )
        elements = _elements(kind)
        offset = self.apply(op, layout, operands)
        if elements is not None and isinstance(layout.size, int) and layout.size > elements:
            raise self.source.error(
                f"'{op.name}': the layout '{layout}' has {layout.size} elements, "
                f"the buffer {kind} only {elements}",
                op.location,
            )
        if elements is None or elements >= 1 << 31:
            self.narrow = False
        scope = scope_of(op)
        return self.flattened(buffer, scope, op), self.printed(op, scope, offset)

    def flattened(self, buffer: Any, scope: Scope, op: Any) -> Any:
        """The buffer as one dimension, made once a kernel."""
        kind = ir.MemRefType(buffer.type)
        if not kind.layout.is_identity if hasattr(kind.layout, "is_identity") else False:
            raise self.source.error(f"the buffer {kind} is strided", op.location)
        if kind.rank == 1:
            return buffer
        key = (buffer, scope.body)
        if key not in self.flat:
            elements = _elements(kind)
            dynamic = ir.ShapedType.get_dynamic_size()
            flat_type = ir.MemRefType.get(
                [dynamic if elements is None else elements],
                kind.element_type,
                memory_space=kind.memory_space,
            )
            groups = ir.ArrayAttr.get(
                [
                    ir.ArrayAttr.get(
                        [
                            ir.IntegerAttr.get(ir.IntegerType.get_signless(64), d)
                            for d in range(kind.rank)
                        ]
                    )
                ]
                if kind.rank
                else []
            )
            with scope.entry(buffer), op.location:
                self.flat[key] = memref.CollapseShapeOp(flat_type, buffer, groups).result
        return self.flat[key]

    def printed(self, op: Any, scope: Scope, x: Int) -> Any:
        """The value of an expression at an operation, outside of the loops it does not need."""
        self.narrow = self.narrow and _fits(x)
        with op.location:
            printer = Printer(
                self.reader.values, scope.points(op), lambda s: scope.level(self.reader.values[s])
            )
            return printer.print(x)

    def define(self, op: Any, xs: Any) -> None:
        for result, x in zip(op.results, xs, strict=True):
            self.reader.define(result, x)
        self.index_ops.append(op)

    def print_results(self, op: Any) -> None:
        """Print those results of an index operation that other dialects use."""
        for result in op.results:
            if any(not use.owner.operation.name.startswith("lego.") for use in result.uses):
                value = self.printed(op, scope_of(op), self.reader.read(result))
                result.replace_all_uses_with(value)

    def derived(self, op: Any, make: Any) -> Any:
        """What the algebra makes, with the operation's place on any error."""
        try:
            return make()
        except LegoError as e:
            if e.place is None:
                raise self.source.error(e.message, op.location, hint=e.hint) from None
            raise

    def set_bitwidth(self) -> None:
        """32 bits if every index of the kernels is proven to fit, else 64."""
        reader = IndexReader()  # a new one: what the old one knows may be gone
        narrow = self.narrow and all(
            _fits(reader.read(result))
            for op in operations(self.module)
            if scope_of(op).kernel is not None
            for result in op.results
            if isinstance(result.type, ir.IndexType)
        )
        width = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 32 if narrow else 64)
        self.module.operation.attributes[INDEX_BITWIDTH] = width


def operations(module: Any) -> Iterator[Any]:
    """All operations of a module, outer before inner, in order."""
    stack = [module.operation]
    while stack:
        op = stack.pop()
        yield op
        inner = [o.operation for r in op.regions for b in r.blocks for o in b.operations]
        stack.extend(reversed(inner))


def _fits(x: Int) -> bool:
    """Whether all that it takes to compute `x` fits a signed 32-bit integer."""
    size = widest(x)
    return size is not None and size < 1 << 31


def _elements(kind: Any) -> int | None:
    """The number of elements of a memref type; `None` where a dimension is dynamic."""
    if not kind.has_static_shape:
        return None
    total: Int = 1
    for n in kind.shape:
        total = construct.mul(total, n)
    assert isinstance(total, int)
    return total


