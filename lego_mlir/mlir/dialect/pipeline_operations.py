"""The dialect's operations on pipelines: names, builders and readers.

Rings, roles, asynchronous dots and turns, as `dialects/lego.irdl.mlir` specifies them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from lego_mlir.mlir.bindings import ir

MAKE_RING = "lego.make_ring"
ACQUIRE = "lego.acquire"
COPY_ASYNC = "lego.copy_async"
PUT = "lego.put"
COMMIT = "lego.commit"
WAIT = "lego.wait"
RELEASE = "lego.release"
ROLE = "lego.role"
DOT_ASYNC = "lego.dot_async"
DOT_WAIT = "lego.dot_wait"
TURN_BEGIN = "lego.turn_begin"
TURN_END = "lego.turn_end"
SHARED_TILE = "lego.shared_tile"
STORE_SHARED = "lego.store_shared"

FILLS = (COPY_ASYNC, PUT)
"""What writes a tile into a stage."""

PRODUCES = (ACQUIRE, *FILLS, COMMIT)
CONSUMES = (WAIT, RELEASE)
OF_RING = (*PRODUCES, *CONSUMES)
"""The operations whose operands begin with a ring and the number of a tile."""

Engine: TypeAlias = Literal["tma", "cp.async", "plain"]
ENGINES: tuple[Engine, ...] = ("tma", "cp.async", "plain")
"""What copies tiles into shared memory, the best first."""

_RING_PREFIX = "!lego.ring<"
_LAYOUT, _SLICE, _ENGINE = "layout", "slice", "engine"
_NAME, _FIRST_WARP, _WARPS, _REGISTERS = "name", "first_warp", "warps", "registers"
PENDING = "pending"
"""On a lego.dot_wait: how many younger groups it does not wait for."""
OUTLIVES = "outlives"
"""A unit attribute of a lego.dot_wait: its result is used as it is when dots with other
accumulators have begun, so it needs registers of its own."""
_GROUPS, _ORDER, _TEAMS = "groups", "order", "teams"
MULTICAST = "multicast"
"""On a lego.copy_async whose tile several CTAs of a cluster load together: for each rank a mask of
these CTAs."""


# Types.
def ring_type(stages: int, tile: Any) -> Any:
    """Return the type of a ring.

    Args:
        stages: how many tiles it holds.
        tile: their type, a tile in shared memory.
    """
    return ir.Type.parse(f"{_RING_PREFIX}{stages} : i64, {tile}>")


def stages_of(ring: Any) -> int:
    """Return how many tiles a ring holds."""
    return _ring_parts(ring.type)[0]


def tile_type_of(ring: Any) -> Any:
    """Return the type of the tiles of a ring."""
    return _ring_parts(ring.type)[1]


@lru_cache(maxsize=1 << 8)
def _ring_parts(kind: Any) -> tuple[int, Any]:
    """Return the stages of a type of rings, and the type of their tiles."""
    stages, _, tile = str(kind)[len(_RING_PREFIX) : -1].partition(" : i64, ")
    return int(stages), ir.Type.parse(tile, context=kind.context)


# Readers.
def engine_of(op: Any) -> str:
    """Return what makes the copy of a lego.copy_async."""
    return ir.StringAttr(op.attributes[_ENGINE]).value  # type: ignore[no-any-return]


def is_multicast(op: Any) -> bool:
    """Return whether an operation is a lego.copy_async that CTAs of a cluster make together."""
    return op.name == COPY_ASYNC and MULTICAST in op.attributes


def multicast_masks(op: Any) -> tuple[int, ...]:
    """Return for each rank the mask of the CTAs that load the tile of a lego.copy_async together.

    There are none if each CTA loads it for itself.
    """
    is_one = MULTICAST in op.attributes
    return tuple(ir.DenseI64ArrayAttr(op.attributes[MULTICAST])) if is_one else ()


def role_name(op: Any) -> str:
    """Return the name of a role."""
    return ir.StringAttr(op.attributes[_NAME]).value  # type: ignore[no-any-return]


def role_warps(op: Any) -> range:
    """Return the warps of a role."""
    first, count = (ir.IntegerAttr(op.attributes[k]).value for k in (_FIRST_WARP, _WARPS))
    return range(first, first + count)


def role_registers(op: Any) -> int | None:
    """Return the registers of each thread of a role; `None` if it says nothing of them."""
    found = op.attributes.get(_REGISTERS)
    return None if found is None else ir.IntegerAttr(found).value


def pending_of(op: Any) -> int:
    """Return how many younger groups a lego.dot_wait does not wait for."""
    return ir.IntegerAttr(op.attributes[PENDING]).value  # type: ignore[no-any-return]


def groups_of(op: Any) -> int:
    """Return how many warpgroups take turns at a lego.turn_begin or lego.turn_end."""
    return ir.IntegerAttr(op.attributes[_GROUPS]).value  # type: ignore[no-any-return]


def order_of(op: Any) -> int:
    """Return which of several orders of turns a lego.turn_begin or lego.turn_end is of."""
    found = op.attributes.get(_ORDER)
    return 0 if found is None else int(ir.IntegerAttr(found).value)


def role_teams(op: Any) -> int:
    """Return how many teams of warps the iterations of a role's loop are dealt to."""
    found = op.attributes.get(_TEAMS)
    return 1 if found is None else int(ir.IntegerAttr(found).value)


# Builders.
def make_ring(stages: int, tile: Any) -> Any:
    """Build an empty ring; arguments as `ring_type`."""
    return _made(MAKE_RING, results=[ring_type(stages, tile)]).result


def acquire(ring: Any, number: Any) -> Any:
    """Build the wait for an empty stage; return the operation."""
    return _made(ACQUIRE, [ring, number])


def copy_async(
    ring: Any,
    number: Any,
    buffer: Any,
    origin: Sequence[Any],
    layout: Any,
    dims: Any,
    engine: Engine,
) -> Any:
    """Build a copy into a ring; return the operation.

    Args:
        ring: the ring.
        number: of the tile.
        buffer: what is copied from.
        origin: the tile's first index, and the values of the layout's symbols.
        layout: the attribute of the tensor's layout.
        dims: the attribute of the dimensions along which the tile extends.
        engine: one of `ENGINES`.
    """
    attributes = {_LAYOUT: layout, _SLICE: dims, _ENGINE: ir.StringAttr.get(engine)}
    return _made(COPY_ASYNC, [ring, number, buffer, *origin], attributes=attributes)


def put(ring: Any, number: Any, tile: Any) -> Any:
    """Build the write of a tile in registers into a ring; return the operation."""
    return _made(PUT, [ring, number, tile])


def commit(ring: Any, number: Any) -> Any:
    """Build the end of a tile's copies; return the operation."""
    return _made(COMMIT, [ring, number])


def wait(ring: Any, number: Any) -> Any:
    """Build the wait for a complete tile; return the tile."""
    return _made(WAIT, [ring, number], [tile_type_of(ring)]).result


def release(ring: Any, number: Any) -> Any:
    """Build the end of the reads of a tile; return the operation."""
    return _made(RELEASE, [ring, number])


def role(name: str, warps: range, registers: int | None = None) -> Any:
    """Build a role with an empty block; return the operation."""
    attributes = {
        _NAME: ir.StringAttr.get(name),
        _FIRST_WARP: _i64(warps.start),
        _WARPS: _i64(len(warps)),
    }
    if registers is not None:
        attributes[_REGISTERS] = _i64(registers)
    op = _made(ROLE, attributes=attributes, regions=1)
    op.regions[0].blocks.append()
    return op


def dot_async(a: Any, b: Any, accumulator: Any) -> Any:
    """Build the start of `a @ b + accumulator`; return what lego.dot_wait makes readable."""
    return _made(DOT_ASYNC, [a, b, accumulator], [accumulator.type]).result


def dot_wait(accumulator: Any, pending: int) -> Any:
    """Build the wait for an accumulator, and for all but the last groups, `pending` of them."""
    attributes = {PENDING: _i64(pending)}
    return _made(DOT_WAIT, [accumulator], [accumulator.type], attributes).result


def turn_begin(groups: int, order: int = 0) -> Any:
    """Build the wait for a warpgroup's turn; return the operation.

    Args:
        groups: that take turns.
        order: which of several orders of turns it is.
    """
    return _made(TURN_BEGIN, attributes=_turn(groups, order))


def turn_end(groups: int, order: int = 0) -> Any:
    """Build the end of a warpgroup's turn; return the operation. Arguments as `turn_begin`."""
    return _made(TURN_END, attributes=_turn(groups, order))


def _turn(groups: int, order: int) -> dict[str, Any]:
    return {_GROUPS: _i64(groups), **({_ORDER: _i64(order)} if order else {})}


def deal_to_teams(op: Any, teams: int) -> None:
    """Let a role have so many teams of the warps that it has."""
    warps = len(role_warps(op)) * teams
    op.attributes[_WARPS], op.attributes[_TEAMS] = _i64(warps), _i64(teams)


def move_role(op: Any, first_warp: int) -> None:
    """Let a role begin at another warp."""
    op.attributes[_FIRST_WARP] = _i64(first_warp)


def shared_tile(kind: Any, buffer: Any, stage: Any, layout: Any) -> Any:
    """Build the tile of type `kind` in a stage of a buffer with the attribute of its layout."""
    return _made(SHARED_TILE, [buffer, stage], [kind], {_LAYOUT: layout}).result


def store_shared(target: Any, tile: Any) -> Any:
    """Build the stores of a tile in registers to one in shared memory; return the operation."""
    return _made(STORE_SHARED, [target, tile])


def _i64(n: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n)


def _made(
    name: str,
    operands: Sequence[Any] = (),
    results: Sequence[Any] = (),
    attributes: dict[str, Any] | None = None,
    regions: int = 0,
) -> Any:
    return ir.Operation.create(
        name,
        results=list(results),
        operands=list(operands),
        attributes=attributes or {},
        regions=regions,
    )
