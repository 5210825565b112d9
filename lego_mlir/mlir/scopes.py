"""The kernel and the loops around an operation, and the insertion points these give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lego_mlir.mlir.bindings import ir

_LOOPS = ("scf.for", "scf.parallel", "scf.forall", "scf.while", "affine.for", "affine.parallel")
KERNELS = ("gpu.launch", "gpu.func")
_ATTRIBUTIONS = "workgroup_attributions"


@dataclass(frozen=True)
class Scope:
    """What encloses an operation, up to its kernel or function.

    Attributes:
        kernel: the enclosing gpu.launch or gpu.func, if any.
        body: the entry block of the kernel, else of the function, else None.
        loops: the enclosing loops within that, outermost first.
    """

    kernel: Any
    body: Any
    loops: tuple[Any, ...]

    def points(self, op: Any) -> list[Any]:
        """Return insertion points, outermost first: before each loop, then before `op`."""
        return [ir.InsertionPoint(anchor) for anchor in (*self.loops, op)]

    def level(self, value: Any) -> int:
        """Return the number of the scope's loops that enclose a value's definition."""
        inside = _ancestors(_block_of(value).owner)
        return sum(any(loop == parent for parent in inside) for loop in self.loops)

    def entry(self, value: Any) -> Any:
        """Return the insertion point right after `value`, at the earliest the body's start.

        Values of the host, a kernel's operands, are used at the start of the kernel.
        """
        block = _block_of(value)
        if not any(parent == self.body.owner.operation for parent in _ancestors(block.owner)):
            return ir.InsertionPoint.at_block_begin(self.body)
        if isinstance(value, ir.BlockArgument):
            return ir.InsertionPoint.at_block_begin(block)
        following = list(block.operations)
        position = next(i for i, o in enumerate(following) if o.operation == value.owner.operation)
        return ir.InsertionPoint(following[position + 1])

    def has_private_buffers(self) -> bool:
        """Return whether the kernel's block arguments include private buffers."""
        shared = self._shared_buffers()
        if self.kernel.name == "gpu.func":
            kind = ir.FunctionType(ir.TypeAttr(self.kernel.attributes["function_type"]).value)
            return len(self.body.arguments) > len(kind.inputs) + shared
        segments = list(ir.DenseI32ArrayAttr(self.kernel.attributes["operandSegmentSizes"]))
        ids = 18 if any(segments[7:10]) else 12  # with the cluster's ids and sizes
        return len(self.body.arguments) > ids + shared

    def add_workgroup_buffer(self, kind: Any, location: Any) -> Any:
        """Add a static shared-memory buffer to the kernel; return its block argument.

        Shared buffers come before private ones, so the kernel must have no private one yet.
        """
        buffer = self.body.add_argument(kind, location)
        i64 = ir.IntegerType.get_signless(64)
        count = ir.IntegerAttr.get(i64, self._shared_buffers() + 1)
        self.kernel.attributes[_ATTRIBUTIONS] = count
        return buffer

    def _shared_buffers(self) -> int:
        attributes = self.kernel.attributes
        if _ATTRIBUTIONS not in attributes:
            return 0
        return ir.IntegerAttr(attributes[_ATTRIBUTIONS]).value  # type: ignore[no-any-return]


def scope_of(op: Any) -> Scope:
    """Return the scope of an operation."""
    loops: list[Any] = []
    for parent in _ancestors(op.parent):
        if parent.name in _LOOPS:
            loops.insert(0, parent)
        if parent.name in KERNELS or parent.name == "func.func":
            kernel = parent if parent.name in KERNELS else None
            return Scope(kernel, parent.regions[0].blocks[0], tuple(loops))
    return Scope(None, None, tuple(loops))


def _block_of(value: Any) -> Any:
    """Return the block that defines a value."""
    return value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block


def _ancestors(op: Any) -> list[Any]:
    """Return an operation and all that enclose it, innermost first."""
    chain: list[Any] = []
    while op is not None:
        operation = op.operation
        chain.append(operation)
        op = operation.parent
    return chain
