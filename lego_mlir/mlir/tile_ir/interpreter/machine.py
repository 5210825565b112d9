"""The machine that runs a kernel on tiles: one CTA, operation after operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Sym
from lego_mlir.limits import current, limit_error
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.layouts import Layouts, symbols_of
from lego_mlir.mlir.tile_ir.interpreter import pipelines, pointwise, tile_operations
from lego_mlir.mlir.tile_ir.interpreter.pipelines import Pipelines
from lego_mlir.mlir.tile_ir.interpreter.values import (
    Array,
    Value,
    everywhere,
    wrapped,
)
from lego_mlir.mlir.tile_ir.operations import CONSTANT

ENDS = ("scf.yield", "gpu.yield", "scf.condition", "gpu.terminator", "func.return")
"""Ends of blocks."""

_NOTHING = (dialect.CHECK, "gpu.printf", "cf.assert", "nvvm.griddepcontrol")
"""What computes nothing that a kernel leaves."""

_GPU_IDS = ("gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "gpu.cluster_id")


Handler: TypeAlias = Callable[["Machine", Any], None]
"""Executes one operation."""

Code: TypeAlias = tuple[list[tuple[Any, Handler | None]], Any]
"""The operations of a block, with what executes each, `None` if nothing; and its terminator."""


@dataclass
class Steps:
    """How many operations have been executed, of all CTAs together."""

    count: int = 0

    def add(self) -> None:
        """Count one more.

        Raises:
            LegoError: there are more than the limit `interpreter_steps` allows.
        """
        self.count += 1
        if self.count > current().interpreter_steps:
            raise limit_error(
                "interpreter_steps", f"the interpreter of tile IR executed {self.count} operations"
            )


@dataclass
class Machine:
    """The state of one CTA, or of one role of it.

    Attributes:
        layouts: reads the layouts of the module.
        source: its text, for errors.
        buffers: the elements of each memref, in memory that all CTAs share.
        filled: whether invalid elements hold what the operations need that ignore them, so that
            only the bounds of accesses and lego.restrict count.
        ids: `block_id`, `block_dim`, `grid_dim` and `cluster_id`, three numbers each.
        steps: counts operations.
        values: the value of each SSA value so far.
        pipelines: the rings, and the role that is running.
        code: of each block that has been run; machines of one class share it.
    """

    layouts: Layouts
    source: Source
    buffers: dict[Any, Array]
    filled: bool
    ids: Mapping[str, Sequence[int]]
    steps: Steps
    values: dict[Any, Value] = field(default_factory=dict)
    pipelines: Pipelines = field(default_factory=Pipelines)
    code: dict[Any, Code] = field(default_factory=dict)

    def run(self, block: Any) -> list[Value]:
        """Run a block; return the operands of its terminator.

        Raises:
            LegoError: at an operation that the interpreter does not know, or that fails.
        """
        code = self.code.get(block)
        if code is None:
            code = self.code[block] = self._decoded(block)
        operations, end = code
        for op, execute in operations:
            self.steps.add()
            if execute is None:
                continue
            try:
                execute(self, op)
            except LegoError as e:
                if e.location is None:
                    raise self.source.error(e.message, op.location, hint=e.hint) from None
                raise
        return [] if end is None else self.operands(end)

    def _decoded(self, block: Any) -> Code:
        found: list[tuple[Any, Handler | None]] = []
        for each in block.operations:
            op = each.operation
            if op.name in ENDS:
                return found, op
            found.append((op, self.handler(op)))
        return found, None

    def operands(self, op: Any) -> list[Value]:
        """Return the values of an operation's operands; of memrefs there are none.

        Where invalid elements are filled, all count as valid to what asks for them so.
        """
        found = [self.values[x] for x in op.operands if x not in self.buffers]
        return [x.everywhere() for x in found] if self.filled else found

    def buffer(self, value: Any) -> Array:
        """Return the elements of a memref.

        Raises:
            LegoError: it is none of the host function's.
        """
        if value not in self.buffers:
            raise LegoError(
                "the interpreter of tile IR knows only buffers that are the host function's",
                hint="pass the buffer as an argument",
            )
        return self.buffers[value]

    def layout(self, op: Any) -> tuple[Layout, list[int]]:
        """Return the layout of an operation, all of whose sizes are numbers, and its index.

        The index are the operands that are numbers, but for the values of the layout's symbols,
        which come last.
        """
        layout = self.layouts.of(op)
        numbers = [self.values[x].number() for x in op.operands if x.type == ir.IndexType.get()]
        count = len(layout.symbols)
        if not count:
            return layout, numbers
        symbols = symbols_of(layout, dialect.layout_attribute_of(op))
        return _bound(layout, symbols, tuple(numbers[-count:])), numbers[:-count]

    def define(self, op: Any, results: Sequence[Value]) -> None:
        """Set the results of an operation."""
        self.values.update(zip(op.results, results, strict=True))

    def handler(self, op: Any) -> Handler | None:
        """Return what executes an operation, `None` if it computes nothing."""
        name = op.name
        if name == CONSTANT:
            return _constant
        if name in pointwise.POINTWISE:
            return _pointwise
        if name in tile_operations.OPERATIONS:
            return _on_tiles
        if name in _GPU_IDS:
            return _gpu_id
        if name in _NOTHING:
            return None
        return pipelines.OPERATIONS.get(name) or _CONTROL.get(name, _unknown)

    def pointwise(self, op: Any) -> list[Value]:
        """Return the results of an operation on elements, valid where all of its operands are."""
        operands = self.operands(op)
        made = pointwise.POINTWISE[op.name](op, *(x.data for x in operands))
        found = made if isinstance(made, tuple) else (made,)
        if all(x.is_number for x in operands):
            return [Value.of(data) for data in found]
        shape = np.broadcast_shapes(*(x.data.shape for x in operands))
        valid = everywhere(operands, shape)
        return [Value.of(data, valid) for data in found]

    def function(self, op: Any) -> Callable[[Sequence[Array], Sequence[Array]], list[Array]]:
        """Return the function of a reduction's or scan's region, on arrays of elements."""
        block = op.regions[0].blocks[0]

        def call(first: Sequence[Array], second: Sequence[Array]) -> list[Array]:
            arguments = [Value.of(x) for x in (*first, *second)]
            self.values.update(zip(block.arguments, arguments, strict=True))
            shape = np.shape(arguments[0].data)
            return [np.broadcast_to(x.data, shape) for x in self.run(block)]

        return call

    def attribute(self, op: Any, name: str) -> Any:
        """Return an attribute of an operation, `None` if it has none of the name."""
        return op.attributes.get(name)


def _constant(machine: Machine, op: Any) -> None:
    (result,) = op.results
    if result not in machine.values:  # from the last iteration
        machine.values[result] = Value.of(pointwise.constant(op))


def _pointwise(machine: Machine, op: Any) -> None:
    machine.define(op, machine.pointwise(op))


def _on_tiles(machine: Machine, op: Any) -> None:
    machine.define(op, tile_operations.OPERATIONS[op.name](machine, op))


def _gpu_id(machine: Machine, op: Any) -> None:
    axis = "xyz".index(str(op.attributes["dimension"]).rstrip(">").split()[-1])
    number = machine.ids[op.name.removeprefix("gpu.")][axis]
    machine.define(op, [Value.of(np.int64(number))])


def _unknown(machine: Machine, op: Any) -> None:
    raise LegoError(
        f"the interpreter of tile IR has no '{op.name}'",
        hint="a kernel on tiles has operations of arith, math, scf and lego",
    )


def _for(machine: Machine, op: Any) -> None:
    block = op.regions[0].blocks[0]
    low, high, step, *carried = machine.operands(op)
    if step.number() < 1:
        raise LegoError(f"a loop has the step {step.number()}", hint="steps are at least 1")
    dtype = low.data.dtype
    variable, *arguments = block.arguments
    for number in range(low.number(), high.number(), step.number()):
        machine.steps.add()
        machine.values[variable] = Value.of(wrapped(number, dtype))
        machine.values.update(zip(arguments, carried, strict=True))
        carried = machine.run(block)
    machine.define(op, carried)


def _if(machine: Machine, op: Any) -> None:
    (condition,) = machine.operands(op)
    blocks = list(op.regions[0 if condition.number() else 1].blocks)
    machine.define(op, machine.run(blocks[0]) if blocks else [])


def _while(machine: Machine, op: Any) -> None:
    before, after = (region.blocks[0] for region in op.regions)
    carried = machine.operands(op)
    while True:
        machine.steps.add()
        machine.values.update(zip(before.arguments, carried, strict=True))
        condition, *passed = machine.run(before)
        if not condition.number():
            machine.define(op, passed)
            return
        machine.values.update(zip(after.arguments, passed, strict=True))
        carried = machine.run(after)


def _apply(machine: Machine, op: Any) -> None:
    layout, index = machine.layout(op)
    machine.define(op, [Value.of(np.int64(layout.apply(*index)))])


def _inv(machine: Machine, op: Any) -> None:
    layout, (flat,) = machine.layout(op)
    index = layout.inv(flat)
    machine.define(op, [Value.of(np.int64(x)) for x in index])


def _mask(machine: Machine, op: Any) -> None:
    layout, index = machine.layout(op)
    machine.define(op, [Value.of(np.bool_(layout.mask(*index)))])


def _size(machine: Machine, op: Any) -> None:
    machine.define(op, [Value.of(np.int64(machine.layout(op)[0].size))])


def _dim(machine: Machine, op: Any) -> None:
    size = machine.layout(op)[0].dims[dialect.dim_of(op)]
    machine.define(op, [Value.of(np.int64(size))])


def _table(machine: Machine, op: Any) -> None:
    (position,) = machine.operands(op)
    numbers = dialect.table_values(op)
    if not 0 <= position.number() < len(numbers):
        raise LegoError(f"position {position.number()} of a table of {len(numbers)} numbers")
    machine.define(op, [Value.of(np.int64(numbers[position.number()]))])


def _pick(machine: Machine, op: Any) -> None:
    number, *buffers = list(op.operands)
    found = machine.values[number].number()
    if not 0 <= found < len(buffers):
        raise LegoError(f"buffer {found} of {len(buffers)} is picked")
    machine.buffers[op.results[0]] = machine.buffer(buffers[found])


def _whole(machine: Machine, op: Any) -> None:
    """Let a view of a whole buffer be the buffer, whose elements have the same offsets."""
    machine.buffers[op.results[0]] = machine.buffer(op.operands[0])


def _affine(machine: Machine, op: Any) -> None:
    from lego_mlir.mlir.lowering.indices.index_reader import affine_value

    numbers = [x.number() for x in machine.operands(op)]
    machine.define(op, [Value.of(np.int64(affine_value(op, numbers)))])


_CONTROL: Mapping[str, Handler] = {
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "affine.apply": _affine,
    dialect.APPLY: _apply,
    dialect.INV: _inv,
    dialect.MASK: _mask,
    dialect.SIZE: _size,
    dialect.DIM: _dim,
    dialect.TABLE: _table,
    dialect.PICK: _pick,
    "memref.cast": _whole,
    "memref.collapse_shape": _whole,
}


@lru_cache(maxsize=1 << 10)
def _bound(layout: Layout, symbols: tuple[Sym, ...], numbers: tuple[int, ...]) -> Layout:
    return layout.substitute(dict(zip(symbols, numbers, strict=True)))


def grid_points(grid: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the ids of a grid's CTAs, along x fastest."""
    x, y, z = grid
    for k in range(z):
        for j in range(y):
            for i in range(x):
                yield i, j, k
