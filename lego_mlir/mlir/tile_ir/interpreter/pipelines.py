"""What operations on pipelines compute: rings, roles and asynchronous dots.

A ring remembers which tiles it holds. A tile that is released is overwritten with numbers that no
program computes by chance, and so is what an asynchronous dot has not computed yet: who reads them
too early computes something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.interpreter import combining
from lego_mlir.mlir.tile_ir.interpreter.rings import Ring
from lego_mlir.mlir.tile_ir.interpreter.roles import Role, run_roles
from lego_mlir.mlir.tile_ir.interpreter.tile_operations import load_tile
from lego_mlir.mlir.tile_ir.interpreter.values import Array, Value, dtype_of, is_float
from lego_mlir.mlir.tile_ir.roles import role_around
from lego_mlir.mlir.tile_ir.types import shape_of

if TYPE_CHECKING:
    from lego_mlir.mlir.tile_ir.interpreter.machine import Machine


@dataclass
class Cluster:
    """CTAs that run beside one another and exchange tiles.

    Attributes:
        ctas: how many there are.
    """

    ctas: int
    _brought: dict[tuple[Any, int], list[Value]] = field(default_factory=dict)

    def meet(self, role: Role, op: Any, rank: int, tile: Value) -> list[Value]:
        """Return what each CTA brings to an operation, when all have come as often as this one.

        Args:
            role: that which waits.
            op: the operation.
            rank: of the CTA.
            tile: what it brings.

        Raises:
            LegoError: a CTA does not come.
        """
        brought = [self._brought.setdefault((op, k), []) for k in range(self.ctas)]
        brought[rank].append(tile)
        count = len(brought[rank])
        role.wait(lambda: all(len(b) >= count for b in brought), f"for the cluster in '{op.name}'")
        return [b[count - 1] for b in brought]


@dataclass
class Pipelines:
    """The pipelines of one role.

    Attributes:
        role: the role.
        region: the operation of the role, `None` of a kernel without roles.
        rings: the rings of the kernel, by their value.
        groups: the asynchronous dots that are not complete: their result, and what computes it.
        cluster: where the CTAs of a cluster meet.
    """

    role: Role = field(default_factory=lambda: Role("the kernel"))
    region: Any = None
    rings: dict[Any, Ring] = field(default_factory=dict)
    groups: list[tuple[Array, Callable[[], Array]]] = field(default_factory=list)
    cluster: Cluster = field(default_factory=lambda: Cluster(1))


def _make_ring(machine: Machine, op: Any) -> None:
    (ring,) = op.results
    releases = [u.owner.operation for u in ring.uses if u.owner.name == pipelines.RELEASE]
    consumers = frozenset(role_around(release) for release in releases)
    machine.pipelines.rings[ring] = Ring(pipelines.stages_of(ring), consumers)


def _ring_of(machine: Machine, op: Any) -> tuple[Ring, int]:
    """Return an operation's ring and tile number; count the operation if it has an order."""
    ring = machine.pipelines.rings[op.operands[0]]
    number = machine.values[op.operands[1]].number()
    if op.name not in pipelines.FILLS:
        ring.count(machine.pipelines.region, op.name, number)
    return ring, number


def _acquire(machine: Machine, op: Any) -> None:
    ring, number = _ring_of(machine, op)
    machine.pipelines.role.wait(
        lambda: ring.is_empty_for(number), f"for the release of tile {number - ring.stages}"
    )
    ring.acquire(number)


def _copy(machine: Machine, op: Any) -> None:
    ring, number = _ring_of(machine, op)
    ring.check_acquired(op.name, number)
    kind = ir.RankedTensorType(pipelines.tile_type_of(op.operands[0]))
    tile = load_tile(machine, op, op.operands[2], tuple(kind.shape))
    data = np.where(tile.valid, tile.data, np.zeros((), tile.data.dtype))
    ring.copied[number] = data.astype(tile.data.dtype)


def _put(machine: Machine, op: Any) -> None:
    ring, number = _ring_of(machine, op)
    ring.check_acquired(op.name, number)
    ring.copied[number] = machine.values[op.operands[2]].data.copy()


def _commit(machine: Machine, op: Any) -> None:
    ring, number = _ring_of(machine, op)
    ring.commit(number)


def _wait(machine: Machine, op: Any) -> None:
    ring, number = _ring_of(machine, op)
    machine.pipelines.role.wait(lambda: ring.is_complete(number), f"for tile {number}")
    data = ring.complete[number].copy()
    ring.waited[machine.pipelines.region, number] = data
    machine.define(op, [Value.of(data)])


def _release(machine: Machine, op: Any) -> None:
    ring, number = _ring_of(machine, op)
    data = ring.release(machine.pipelines.region, number)
    data[...] = poison(data.dtype)  # views of it change, too


def poison(dtype: np.dtype[Any]) -> Any:
    """Return what stands in memory that nobody may read."""
    if is_float(dtype):
        return np.asarray(np.nan, np.float32).astype(dtype)
    return np.iinfo(dtype).max if dtype.kind in "iu" else True


def _role(machine: Machine, op: Any) -> None:
    """Run all roles of a kernel where its first one stands."""
    siblings = [o.operation for o in op.block.operations if o.operation.name == pipelines.ROLE]
    if op != siblings[0]:
        return
    bodies = []
    for sibling in siblings:
        role = Role(pipelines.role_name(sibling))
        of_cta = machine.pipelines
        pipeline = Pipelines(role, sibling, of_cta.rings, cluster=of_cta.cluster)
        own = replace(machine, pipelines=pipeline)
        block = sibling.regions[0].blocks[0]
        bodies.append((role, lambda own=own, block=block: own.run(block)))
    run_roles(bodies, op.context, machine.pipelines.role)


# Asynchronous dots.
def _dot_async(machine: Machine, op: Any) -> None:
    a, b, accumulator = machine.operands(op)
    kind = ir.RankedTensorType(op.results[0].type)
    dtype = dtype_of(kind)
    data = np.full(tuple(kind.shape), poison(dtype), dtype)
    machine.pipelines.groups.append((data, lambda: combining.multiplied(a, b, accumulator).data))
    machine.define(op, [Value.of(data)])


def _dot_wait(machine: Machine, op: Any) -> None:
    groups = machine.pipelines.groups
    while len(groups) > pipelines.pending_of(op):
        data, compute = groups.pop(0)
        data[...] = compute()
    (accumulator,) = machine.operands(op)
    if any(data is accumulator.data for data, _ in groups):
        raise LegoError(
            f"'{op.name}' of an accumulator that is among the {pipelines.pending_of(op)} groups "
            "which it does not wait for",
            hint="pending = 0 waits for all of them",
        )
    machine.define(op, [Value.of(accumulator.data.copy())])


def _reduce_scatter(machine: Machine, op: Any) -> None:
    """Combine the tiles of the CTAs of a cluster, of which this one gets its slice."""
    tile, at = machine.operands(op)
    rank, kind, dim = at.number(), tiles.kind_of(op), tiles.dim_of(op)
    every = machine.pipelines.cluster.meet(machine.pipelines.role, op, rank, tile)
    if any((other.valid != tile.valid).any() for other in every):
        raise LegoError(f"'{op.name}' of tiles that do not have the same valid elements")
    size = shape_of(op.results[0])[dim]
    window = (*(slice(None),) * dim, slice(rank * size, (rank + 1) * size))
    parts = [other.data[window] for other in (*every[rank:], *every[:rank])]
    data = reduce(partial(combining.combined, kind=kind), parts)
    machine.define(op, [Value(data, np.broadcast_to(tile.valid, tile.data.shape)[window])])


def _turn(machine: Machine, op: Any) -> None:
    """All warpgroups compute a tile together here, so there is no order among them."""


OPERATIONS: Mapping[str, Callable[[Machine, Any], None]] = {
    dialect.MAKE_RING: _make_ring,
    dialect.ACQUIRE: _acquire,
    dialect.COPY_ASYNC: _copy,
    dialect.PUT: _put,
    dialect.COMMIT: _commit,
    dialect.WAIT: _wait,
    dialect.RELEASE: _release,
    dialect.ROLE: _role,
    dialect.DOT_ASYNC: _dot_async,
    dialect.DOT_WAIT: _dot_wait,
    tiles.REDUCE_SCATTER: _reduce_scatter,
    dialect.TURN_BEGIN: _turn,
    dialect.TURN_END: _turn,
}
"""By the operation's name."""
