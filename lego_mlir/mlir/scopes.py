"""Where an operation stands: its kernel, its loops, and the insertion points these make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lego_mlir.mlir.bindings import ir

_LOOPS = ("scf.for", "scf.parallel", "scf.forall", "scf.while", "affine.for", "affine.parallel")
_KERNELS = ("gpu.launch", "gpu.func")
_ATTRIBUTIONS = "workgroup_attributions"


@dataclass(frozen=True)
class Scope:
    """The surroundings of an operation, up to its kernel or function.

    Attributes:
        kernel: the enclosing gpu.launch or gpu.func, if any.
        body: the entry block of the kernel, else of the function, else None.
        loops: the enclosing loops within that, outermost first.
    """

    kernel: Any
    body: Any
    loops: tuple[Any, ...]

    def points(self, op: Any) -> list[Any]:
        """Insertion points from outermost to innermost: before each loop, then before `op`."""
        return [ir.InsertionPoint(anchor) for anchor in (*self.loops, op)]

    def level(self, value: Any) -> int:
        """In how many of the loops a value is defined."""
        block = value.owner if isinstance(value, ir.BlockArgument) else value.owner.block
        inside = _ancestors(block.owner)
        return sum(any(loop == parent for parent in inside) for loop in self.loops)

    def entry(self, value: Any) -> Any:
        """An insertion point at the start of the body, or right after `value` if it is there."""
        if not isinstance(value, ir.BlockArgument) and value.owner.block == self.body:
            following = list(self.body.operations)
            position = next(i for i, o in enumerate(following) if o.operation == value.owner)
            return ir.InsertionPoint(following[position + 1])
        return ir.InsertionPoint.at_block_begin(self.body)

    def add_workgroup_buffer(self, kind: Any, location: Any) -> Any:
        """Give the kernel a static shared-memory buffer; its value is a block argument."""
        attributes = self.kernel.attributes
        count = ir.IntegerAttr(attributes[_ATTRIBUTIONS]).value if _ATTRIBUTIONS in attributes else 0
        buffer = self.body.add_argument(kind, location)
        attributes[_ATTRIBUTIONS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count + 1)
        return buffer


def scope_of(op: Any) -> Scope:
    """The scope that an operation stands in."""
    loops: list[Any] = []
    for parent in _ancestors(op.parent):
        if parent.name in _LOOPS:
            loops.insert(0, parent)
        if parent.name in _KERNELS or parent.name == "func.func":
            kernel = parent if parent.name in _KERNELS else None
            return Scope(kernel, parent.regions[0].blocks[0], tuple(loops))
    return Scope(None, None, tuple(loops))


def _ancestors(op: Any) -> list[Any]:
    """An operation and all that enclose it, innermost first."""
    chain: list[Any] = []
    while op is not None:
        operation = op.operation
        chain.append(operation)
        op = operation.parent
    return chain
