"""Pass to the kernels what they use of the host: addresses, and numbers that the launch computes.

A kernel takes a buffer whose sizes the launch knows as a bare address, and each number that the
host computes as a parameter. So both become arguments of the host function:

    func.func @f(%x: memref<?x64xf32>) {
      %m = memref.dim %x, %c0 : memref<?x64xf32>
      %n = arith.ceildivsi %m, %c8 : index
      gpu.launch blocks(...) in (%gx = %n, ...) ... {
        %flat = memref.collapse_shape %x [[0, 1]] : memref<?x64xf32> into memref<?xf32>

becomes

    func.func @f(%x: memref<2147483647xf32>, %n: index {lego.computed = "0 0 a0.d0 - 8 // -"}) {
      gpu.launch blocks(...) in (%gx = %n, ...) ... {
        %flat = memref.cast %x : memref<2147483647xf32> to memref<?xf32>

The size in the type of an address says nothing. A kernel that indexes such a buffer by its
dimensions gets a view of it with its sizes and strides.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, memref
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.launch_sizes.hoist_sizes import DIM, METADATA, is_host
from lego_mlir.mlir.launch_sizes.known import Known, known_value, number, size_of, stride_of
from lego_mlir.mlir.launch_sizes.strided import ANY_SIZE, address_type, is_dense
from lego_mlir.mlir.modules import named_attributes, operations_in

_ARITHMETIC = ("arith.", "affine.apply", DIM, METADATA)


def pass_sizes(module: Any, source: Source) -> None:
    """Make what kernels use of the host arguments of the host function, in place.

    Args:
        module: its lego operations are lowered; its context is the current one.
        source: its text, in which errors are shown.

    Raises:
        LegoError: a kernel uses a number that no launch can compute.
    """
    for op in module.body.operations:
        if is_host(op.operation):
            with op.operation.location:
                _Host(op.operation, source).run()


class _Host:
    """One host function, while its arguments are made.

    Args:
        func: the function.
        source: the module's text, in which errors are shown.
    """

    def __init__(self, func: Any, source: Source) -> None:
        self._func = func
        self._source = source
        self._body = func.regions[0].blocks[0]
        self._given = list(self._body.arguments)
        self._made: dict[tuple[Known, Any], Any] = {}

    def run(self) -> None:
        """Replace what the host's operations and the kernels use of the host."""
        buffers = [(b, ir.MemRefType(b.type)) for b in self._given if _is_memref(b)]
        sizes = {buffer: self._sizes(buffer, kind) for buffer, kind in buffers}
        allocated = [op for op in self._operations() if op.name == _ALLOC]
        sizes |= {op.results[0]: self._sizes_allocated(op) for op in allocated}
        computed = {x for op in self._operations() for x in op.results if _is_computed(x)}
        used: dict[Any, None] = {}
        if computed:  # kernels of known sizes use none
            used = dict.fromkeys(value for op in self._operations() for value in self._used(op))
        passed = [(value, self._passed(value)) for value in used if value in computed]
        for value, argument in passed:
            value.replace_all_uses_with(argument)
        for buffer, kind in buffers:
            self._pass_address(buffer, kind, sizes[buffer])
        for op in allocated:
            self._pass_workspace(op, sizes[op.results[0]])
        for op in reversed(self._operations()):
            if op.name.startswith(_ARITHMETIC) and not any(
                True for result in op.results for _ in result.uses
            ):
                op.erase()
        self._declare()

    def _operations(self) -> list[Any]:
        return [op.operation for op in self._body.operations]

    # Numbers.
    def _used(self, op: Any) -> Iterator[Any]:
        """Yield the values that one of the host's operations uses, or a kernel in it."""
        if op.name.startswith(_ARITHMETIC):
            return
        yield from op.operands
        for inner in operations_in(op):
            yield from inner.operands

    def _passed(self, value: Any) -> Any:
        """Return the argument of the host function that a number of the host becomes."""
        known = known_value(value)
        if known is None:
            raise self._source.error(
                f"the launch cannot compute what '{value.owner.name}' computes on the host",
                value.owner.location,
                hint="on the host are addi, subi, muli, floordivsi, ceildivsi, minsi and maxsi of "
                "constants, sizes, strides and scalar arguments; or compute it in the kernel",
            )
        return self._argument(known, value.type)

    def _argument(self, known: Known, kind: Any) -> Any:
        """Return the argument of the host function that is a value the launch computes."""
        if (known, kind) not in self._made:
            self._made[known, kind] = self._body.add_argument(kind, self._func.location)
        return self._made[known, kind]

    def _declare(self) -> None:
        """Give the function the type of its block, and the new arguments their expressions."""
        arguments = list(self._body.arguments)
        kind = ir.FunctionType.get([a.type for a in arguments], [])
        self._func.attributes["function_type"] = ir.TypeAttr.get(kind)
        given = [ir.DictAttr.get({})] * len(self._given)
        if "arg_attrs" in self._func.attributes:
            given = list(ir.ArrayAttr(self._func.attributes["arg_attrs"]))
        computed = [
            ir.DictAttr.get({dialect.COMPUTED: ir.StringAttr.get(str(known))})
            for known, _ in self._made
        ]
        self._func.attributes["arg_attrs"] = ir.ArrayAttr.get([*given, *computed])

    # Buffers.
    def _sizes(self, buffer: Any, kind: Any) -> list[Known]:
        position = buffer.arg_number
        return [
            size_of(position, dim) if kind.is_dynamic_dim(dim) else number(n)
            for dim, n in enumerate(kind.shape)
        ]

    def _sizes_allocated(self, alloc: Any) -> list[Known]:
        kind, dynamic = ir.MemRefType(alloc.results[0].type), iter(alloc.operands)
        sizes = []
        for dim, n in enumerate(kind.shape):
            known = known_value(next(dynamic)) if kind.is_dynamic_dim(dim) else number(n)
            if known is None:
                raise self._source.error(
                    f"the launch cannot compute the size of this workspace along dimension {dim}",
                    alloc.location,
                    hint="compute it of constants, sizes and scalar arguments of the function",
                )
            sizes.append(known)
        return sizes

    def _pass_workspace(self, alloc: Any, sizes: list[Known]) -> None:
        """Replace an allocation whose size the launch computes by one of an address."""
        buffer = alloc.results[0]
        kind = ir.MemRefType(buffer.type)
        if kind.has_static_shape or not is_dense(kind):
            return
        total = reduce(lambda a, b: a * b, sizes)
        attributes = named_attributes(alloc) | {
            dialect.COMPUTED: ir.StringAttr.get(str(total)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0, 0]),
        }
        with ir.InsertionPoint(alloc), alloc.location:
            made = ir.Operation.create(_ALLOC, results=[kind], attributes=attributes).results[0]
        buffer.replace_all_uses_with(made)
        self._pass_address(made, kind, sizes)
        alloc.erase()

    def _pass_address(self, buffer: Any, kind: Any, sizes: list[Known]) -> None:
        """Give a buffer whose sizes or strides the launch knows the type of an address."""
        if kind.has_static_shape and is_dense(kind):
            return
        used = [(use.owner.operation, use.operand_number) for use in buffer.uses]
        buffer.set_type(address_type(kind))
        views: dict[Any, Any] = {}
        for op, operand in used:
            if op.name in _TAKE_ADDRESSES or op.name.startswith(_ARITHMETIC):
                continue
            if op.name == "memref.collapse_shape":
                with op.location, ir.InsertionPoint(op):
                    flat = memref.CastOp(op.results[0].type, buffer).result
                op.results[0].replace_all_uses_with(flat)
                op.erase()
                continue
            launch = self._launch_around(op, kind)
            # An element's address does not depend on the first size, nor on any with given strides.
            needed = 0 if op.name not in _ELEMENT_ACCESSES else 1 if is_dense(kind) else kind.rank
            if (launch, needed) not in views:
                start = ir.InsertionPoint.at_block_begin(launch.regions[0].blocks[0])
                with start, launch.location:
                    views[launch, needed] = self._view(buffer, kind, sizes, needed)
            op.operands[operand] = views[launch, needed]

    def _launch_around(self, op: Any, kind: Any) -> Any:
        """Return the gpu.launch around an operation that uses a buffer."""
        around = op
        while around.name != "gpu.launch":
            if around.parent is None or around.name == "gpu.launch_func":
                raise self._source.error(
                    f"'{op.name}' of a buffer of type {kind}: a gpu.func takes buffers of known "
                    "shape"
                    if op.name == "gpu.launch_func"
                    else f"'{op.name}' of a buffer of type {kind} on the host",
                    op.location,
                    hint="write the kernel as the body of a gpu.launch"
                    if op.name == "gpu.launch_func"
                    else "what is not a launch belongs in a kernel",
                )
            around = around.parent.operation
        return around

    def _view(self, buffer: Any, kind: Any, sizes: list[Known], needed: int) -> Any:
        """Build the view of an address that has the sizes and strides of a buffer.

        Args:
            buffer: the address.
            kind: the buffer's type.
            sizes: its sizes.
            needed: the first dimension whose size matters.
        """
        index = ir.IndexType.get()
        shape: list[Any] = list(kind.shape)
        for dim, known in enumerate(sizes):
            if kind.is_dynamic_dim(dim) and dim >= needed:
                shape[dim] = self._argument(known, index)
            elif kind.is_dynamic_dim(dim):
                shape[dim] = arith.ConstantOp(index, ANY_SIZE).result
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        given, _ = kind.get_strides_and_offset()
        strides: list[Any] = list(given)
        for dim in reversed(range(kind.rank)):
            if given[dim] == unknown:
                strides[dim] = (
                    _product(strides[dim + 1], shape[dim + 1])
                    if is_dense(kind)
                    else self._argument(stride_of(buffer.arg_number, dim), index)
                )
        return memref.ReinterpretCastOp(
            kind,
            buffer,
            offsets=[],
            sizes=[n for n in shape if not isinstance(n, int)],
            strides=[n for n, static in zip(strides, given, strict=True) if static == unknown],
            static_offsets=[0],
            static_sizes=list(kind.shape),
            static_strides=list(given),
        ).result


_ALLOC = "gpu.alloc"
_ELEMENT_ACCESSES = ("memref.load", "memref.store", "vector.load", "vector.store")
_TAKE_ADDRESSES = ("memref.reinterpret_cast", "gpu.dealloc", *dialect.TENSOR_MAP_OPERATIONS)


def _product(a: Any, b: Any) -> Any:
    """Build the product of two sizes, values or numbers, one of them a value."""
    x, y = (
        arith.ConstantOp(ir.IndexType.get(), n).result if isinstance(n, int) else n for n in (a, b)
    )
    return arith.MulIOp(x, y).result


def _is_memref(value: Any) -> bool:
    return isinstance(value.type, ir.MemRefType)


def _is_computed(value: Any) -> bool:
    """Return whether the result of one of the host's operations is a number that it computes."""
    if value.owner.name == "arith.constant":
        return False
    return isinstance(value.type, ir.IndexType | ir.IntegerType)
