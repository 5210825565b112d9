"""Hoist the sizes and strides of host arguments out of the kernels: each is one value of the host.

    func.func @f(%x: memref<?x64xf32>) {
      gpu.launch ... {
        %n = memref.dim %x, %c0 : memref<?x64xf32>
        %m = memref.dim %x, %c1 : memref<?x64xf32>

becomes

    func.func @f(%x: memref<?x64xf32>) {
      %c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : memref<?x64xf32>
      %m = arith.constant 64 : index
      gpu.launch ... {

So equal sizes are the same value, and every pass sees that the launch knows it. The size of a
gpu.alloc is the value that it was allocated with.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from lego_mlir.mlir.bindings import arith, ir, memref
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.launch_sizes.strided import has_strides
from lego_mlir.mlir.modules import has_inside, operations_in

DIM = "memref.dim"
METADATA = "memref.extract_strided_metadata"
MAKERS = frozenset((DIM, METADATA))
"""The operations that ask for sizes and strides."""


def hoist_sizes(module: Any, source: Source, names: Set[str] = MAKERS) -> None:
    """Hoist the sizes and strides of the arguments of all functions, in place.

    Args:
        module: its context is the current one.
        source: its text, in which errors are shown.
        names: of its operations, as far as it is known which it has not.

    Raises:
        LegoError: a kernel asks for a dimension that is not a constant.
    """
    asks = not names.isdisjoint(MAKERS)
    for op in module.body.operations:
        if op.operation.name != "func.func" or not list(op.operation.regions[0].blocks):
            continue
        sizes = _Sizes(op.operation.regions[0].blocks[0], source)
        inside = operations_in(op.operation) if asks else ()
        asking = [inner for inner in inside if inner.name in MAKERS]
        sizes.ask_for_strides()
        for inner in asking:
            sizes.hoist(inner)


def is_host(func: Any) -> bool:
    """Return whether an operation is a function that launches kernels."""
    return func.name == "func.func" and has_inside(func, lambda inner: inner.name in _LAUNCHES)


_LAUNCHES = ("gpu.launch", "gpu.launch_func")


class _Sizes:
    """The sizes of one host function's buffers.

    Args:
        body: of the function.
        source: the module's text, in which errors are shown.
    """

    def __init__(self, body: Any, source: Source) -> None:
        self._body = body
        self._source = source
        self._known: dict[tuple[Any, str, int], Any] = {}
        self._metadata: dict[Any, Any] = {}

    def ask_for_strides(self) -> None:
        """Build values of the strides of all arguments that have strides of their own."""
        for buffer in self._body.arguments:
            if has_strides(buffer):
                kind = ir.MemRefType(buffer.type)
                with buffer.owner.owner.location:
                    for dim in range(kind.rank):
                        self.stride(buffer, kind, dim)

    def hoist(self, op: Any) -> None:
        """Replace the results of an operation that asks for sizes or strides of a host buffer."""
        buffer = op.operands[0]
        if not self._is_of_host(buffer):
            return
        kind = ir.MemRefType(buffer.type)
        with op.location:
            if op.name == DIM:
                found = {0: self.size(buffer, kind, self._dimension(op, kind))}
            else:
                found = {1: self._constant(0)}
                for k in range(kind.rank):
                    found[2 + k] = self.size(buffer, kind, k)
                    found[2 + kind.rank + k] = self.stride(buffer, kind, k)
        for k, value in found.items():
            op.results[k].replace_all_uses_with(value)
        if not any(True for result in op.results for _ in result.uses):
            op.erase()

    def size(self, buffer: Any, kind: Any, dim: int) -> Any:
        """Return the value of a buffer's size along a dimension."""
        if not kind.is_dynamic_dim(dim):
            return self._constant(kind.shape[dim])
        if not isinstance(buffer, ir.BlockArgument):
            dynamic = sum(kind.is_dynamic_dim(k) for k in range(dim))
            return buffer.owner.operands[dynamic]
        number = self._constant(dim)
        return self._once(
            (buffer, "size", dim), lambda: memref.DimOp(buffer, number).result, after=number
        )

    def stride(self, buffer: Any, kind: Any, dim: int) -> Any:
        """Return the value of a buffer's stride along a dimension."""
        strides, _ = kind.get_strides_and_offset()
        if strides[dim] != ir.ShapedType.get_dynamic_stride_or_offset():
            return self._constant(strides[dim])
        if buffer not in self._metadata:
            with self._at_start():
                self._metadata[buffer] = ir.Operation.create(
                    METADATA, results=_metadata_types(kind), operands=[buffer]
                )
        return self._metadata[buffer].results[2 + kind.rank + dim]

    def _is_of_host(self, buffer: Any) -> bool:
        if isinstance(buffer, ir.BlockArgument):
            return bool(buffer.owner == self._body)
        return bool(buffer.owner.name == "gpu.alloc")

    def _dimension(self, op: Any, kind: Any) -> int:
        number = op.operands[1]
        is_constant = not isinstance(number, ir.BlockArgument) and number.owner.name == _CONSTANT
        dim = ir.IntegerAttr(number.owner.attributes["value"]).value if is_constant else -1
        if not 0 <= dim < kind.rank:
            raise self._source.error(
                f"'{DIM}' of a buffer of {kind.rank} dimensions needs the number of one of them as "
                "a constant",
                op.location,
                hint="%c0 = arith.constant 0 : index, then memref.dim %x, %c0",
            )
        return dim

    def _constant(self, number: int) -> Any:
        index = ir.IndexType.get()
        return self._once(
            (None, "constant", number), lambda: arith.ConstantOp(index, number).result
        )

    def _once(self, key: Any, build: Callable[[], Any], after: Any = None) -> Any:
        """Return what `build` builds at the start of the function, or built there before."""
        if key not in self._known:
            at = self._at_start() if after is None else ir.InsertionPoint.after(after.owner)
            with at:
                self._known[key] = build()
        return self._known[key]

    def _at_start(self) -> Any:
        return ir.InsertionPoint.at_block_begin(self._body)


_CONSTANT = "arith.constant"


def _metadata_types(kind: Any) -> list[Any]:
    """Return the result types of a memref.extract_strided_metadata."""
    index = ir.IndexType.get()
    base = ir.MemRefType.get([], kind.element_type, memory_space=kind.memory_space)
    return [base, *[index] * (1 + 2 * kind.rank)]
