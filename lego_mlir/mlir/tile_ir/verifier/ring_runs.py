"""Whether the roles of a kernel wait for one another in a circle: the beginning of a run.

The scalars of the first and the last CTA are computed, and the operations on rings executed,
without the tiles. What is not known, such as a number in memory, is more than the stages of all
rings together: a deadlock shows as soon as every ring has been full once. So only so many
operations are executed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.lowering.indices.index_reader import launch_sizes
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.interpreter.machine import Code, Handler, Machine, Steps
from lego_mlir.mlir.tile_ir.interpreter.values import Value
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.operations import CONSTANT
from lego_mlir.mlir.tile_ir.types import has_tiles

_MOST_STEPS = 4096
"""The most operations of a run."""

_CONTROL = ("scf.for", "scf.if", "scf.while", pipelines.ROLE)
_TILES = (dialect.LOAD, dialect.STORE, dialect.ATOMIC)


class _Enough(Exception):
    """Ends a run that is long enough."""


@dataclass
class _FewSteps(Steps):
    """Ends a run after `_MOST_STEPS` operations."""

    def add(self) -> None:
        self.count += 1
        if self.count > _MOST_STEPS:
            raise _Enough


class _Scalars(dict[Any, Value]):
    """The values of scalars; what is not known is a number."""

    def __init__(self, unknown: int) -> None:
        super().__init__()
        self._unknown = unknown

    def __missing__(self, key: Any) -> Value:
        return Value.of(np.int64(self._unknown))


@dataclass
class _ProtocolMachine(Machine):
    """A machine that skips tiles.

    Attributes:
        nothing: stands for every tile.
    """

    nothing: Value = field(default_factory=lambda: Value.of(np.zeros((), np.int64)))

    def handler(self, op: Any) -> Handler | None:
        """Return what executes an operation on scalars or rings, `None` for others."""
        name = op.name
        if name in (pipelines.COPY_ASYNC, pipelines.PUT):
            return _fill
        if name in (pipelines.DOT_ASYNC, pipelines.DOT_WAIT) or name in _TILES:
            return None
        if name in _CONTROL or name in pipelines.OF_RING or not has_tiles(op):
            return super().handler(op)
        return None


def _fill(machine: Any, op: Any) -> None:
    """Note that the stage of a tile is filled."""
    ring = machine.pipelines.rings[op.operands[0]]
    ring.copied[machine.values[op.operands[1]].number()] = machine.nothing


def check_ring_run(kernel: TileKernel) -> None:
    """Check that the roles of a kernel do not wait in a circle.

    Raises:
        LegoError: they do, or they number tiles wrongly.
    """
    inside = list(operations_in(kernel.launch))
    rings = [op.results[0] for op in inside if op.name == pipelines.MAKE_RING]
    if not rings:
        return
    code: dict[Any, Code] = {}
    unknown = 1 + sum(map(pipelines.stages_of, rings))
    grid = [_number(x) or 1 for x in launch_sizes(kernel.launch)[:3]]
    for at in {(0, 0, 0), tuple(n - 1 for n in grid)}:
        ids = {
            "block_id": at,
            "cluster_id": (at[0] // kernel.cluster, *at[1:]),
            "grid_dim": tuple(grid),
            "block_dim": (1, 1, 1),
        }
        values = _Scalars(unknown)
        arguments = list(kernel.body.arguments)
        for names, numbers in ((arguments[:3], at), (arguments[6:9], grid)):
            values.update((x, Value.of(np.int64(n))) for x, n in zip(names, numbers, strict=True))
        machine = _ProtocolMachine(
            kernel.layouts, kernel.source, {}, True, ids, _FewSteps(), values, code=code
        )
        try:
            _define_outside(machine, inside)
            machine.run(kernel.body)
        except _Enough:
            continue


def _define_outside(machine: Machine, inside: list[Any]) -> None:
    """Define the constants of the host function that the kernel uses."""
    for op in inside:
        for x in op.operands:
            if not isinstance(x, ir.BlockArgument) and x.owner.name == CONSTANT:
                number = _number(x)
                if number is not None:
                    machine.values[x] = Value.of(np.int64(number))


def _number(value: Any) -> int | None:
    if isinstance(value, ir.BlockArgument) or value.owner.name != CONSTANT:
        return None
    attribute = value.owner.attributes["value"]
    return int(attribute.value) if isinstance(attribute, ir.IntegerAttr) else None
