"""`transform_lego.pipeline_loop`: the operands of a loop's dots come through ring buffers.

    scf.for %i ... {
      %x = "lego.load"(%a, %row, %c0) ... -> tensor<64x64xf16, #D>
      %y = "lego.convert"(%x) : ... -> tensor<64x64xf16, #B>
      %d = "lego.dot"(%q, %y, %c)
    }

becomes

    %ring = "lego.make_ring"() : () -> !lego.ring<2 : i64, tensor<64x64xf16, #S>>
    scf.for %i ... {
      "lego.acquire"(%ring, %i)
      "lego.copy_async"(%ring, %i, %a, %row, %c0) {engine = "plain", ...}
      "lego.commit"(%ring, %i)
      %t = "lego.wait"(%ring, %i)
      %y = "lego.convert"(%t) : ... -> tensor<64x64xf16, #B>
      "lego.release"(%ring, %i)
      %d = "lego.dot"(%q, %y, %c)
    }

Each load has a ring of `stages` stages, or of `outer_stages` in a loop around others. The program
is right, but nothing overlaps yet: `split_roles` lets another role copy ahead. The layout in shared
memory is that of a conversion to shared memory, if there is one, else the widest swizzle that fits.
With `every_load = 1` all tiles of which threads have elements of their own pass through rings, and
are waited for together, but for those that a loop around others loads. If the rings of a loop take
more than `shared_bytes`, those of the last tiles have one stage less, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import body_of
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.types import (
    bytes_of,
    element_of,
    is_shared_tile,
    is_tile,
    shape_of,
    shared_layout_of,
    shared_tile_type,
)
from lego_mlir.mlir.tile_steps.kernels import (
    first_of,
    following,
    has_loops,
    in_block,
    last_of,
    loops_of,
    operations_of,
    users_in,
)
from lego_mlir.mlir.tile_steps.rings.iteration_counts import number_of
from lego_mlir.mlir.tile_steps.rings.stage_layouts import stage_layout
from lego_mlir.mlir.tile_steps.views import transposed_view

_VIEWS = (tiles.CONVERT, tiles.TRANSPOSE, tiles.RESHAPE)
_CASTS = ("arith.extf", "arith.extsi", "arith.extui", "arith.truncf")
_DOTS = (tiles.DOT, pipelines.DOT_ASYNC)


@transform("pipeline_loop")
def pipeline_loop(step: TransformStep) -> list[list[Any]]:
    """Let the loads of loops that go to dots pass through rings."""
    stages = step.number("stages")
    if stages < 1:
        raise step.misuse(f"stages is {stages}", hint=step.option("stages", 2))
    outer = step.number("outer_stages", stages)
    if outer < 1:
        raise step.misuse(f"outer_stages is {outer}", hint=step.option("outer_stages", 1))
    every = step.number("every_load", 0) != 0
    is_chosen = _is_large if every else _feeds_dot
    found = loops_of(step)
    loops = [loop for _, loop in found]
    each = [outer if has_loops(loop) else stages for loop in loops]
    made = [
        _pipeline(step, kernel, loops, k, each[k], is_chosen)
        for k, (kernel, _) in enumerate(found)
        if not (every and has_loops(loops[k]))
    ]
    if loops and not any(made) and not every:
        raise step.error(
            "no load in the body of this loop goes to a dot",
            loops[0],
            hint="match loops with a lego.load that a lego.dot multiplies",
        )
    return []


def _pipeline(
    step: TransformStep,
    kernel: TileKernel,
    loops: list[Any],
    which: int,
    stages: int,
    is_chosen: Callable[[TileKernel, Any], bool],
) -> int:
    """Rewrite one of several loops; return how many rings it has got."""
    loop = loops[which]
    block = body_of(loop)
    loads = [op for op in operations_of(block) if op.name == dialect.LOAD and is_chosen(kernel, op)]
    if not loads:
        return 0
    with ir.InsertionPoint(loads[0]), loop.location:
        number = number_of(step, kernel, loads[0], loops)
    first = None
    if is_chosen is _is_large:  # tiles that are waited for together need one barrier
        first = first_of([op for load in loads for op in users_in(load.results[0], block)])
    each = _stages_of(step, kernel, loads, stages)
    waits = [
        _through_ring(step, kernel, load, number, n, first)
        for load, n in zip(loads, each, strict=True)
    ]
    for load, waited in zip(loads, waits, strict=True):
        _read_from(waited, load)
        step.erase(load)
    return len(loads)


def _stages_of(step: TransformStep, kernel: TileKernel, loads: list[Any], stages: int) -> list[int]:
    """Return the stages of each ring, as `shared_bytes` hold them: of the last loads one less."""
    found, most = [stages] * len(loads), step.number("shared_bytes", 0)
    sizes = [_stage_bytes(kernel, load) for load in loads]
    excess = stages * sum(sizes) - most
    while most and excess > 0 and max(found) > 1:
        last = max(k for k, n in enumerate(found) if n == max(found))
        found[last] -= 1
        excess -= sizes[last]
    return found


def _is_large(kernel: TileKernel, load: Any) -> bool:
    """Return whether threads have elements of their own of a loaded tile, and it may be copied."""
    if not is_tile(load.results[0]) or not _is_zero(load.attributes.get(dialect.OTHER)):
        return False
    return prod(shape_of(load.results[0])) >= kernel.ctas * kernel.warps * WARP_THREADS


def _feeds_dot(kernel: TileKernel, load: Any) -> bool:
    """Return whether a loaded tile is an operand of a dot.

    It may be converted, transposed, of another type, or filled beyond bounds before.
    """
    if not is_tile(load.results[0]):
        return False
    pending = [load.results[0]]
    while pending:
        for use in pending.pop().uses:
            if use.owner.name in _DOTS and use.operand_number < 2:
                return True
            if use.owner.name in (*_VIEWS, *_CASTS) or _is_filled(use):
                pending.append(use.owner.results[0])
    return False


def _is_filled(use: Any) -> bool:
    """Return whether a use gives a tile other elements beyond bounds.

    So is the operand of a dot whose size along k is rounded up in registers.
    """
    op = use.owner
    return op.name == "arith.select" and use.operand_number == 1 and _is_bound(op.operands[0])


def _is_bound(mask: Any) -> bool:
    """Return whether a tile of truth values compares indices with bounds."""
    op = mask.owner
    if isinstance(op, ir.Block):
        return False
    if op.name in ("arith.andi", tiles.BROADCAST, *_VIEWS):
        return all(map(_is_bound, op.operands))
    return bool(op.name == tiles.IN_RANGE)


def _through_ring(
    step: TransformStep,
    kernel: TileKernel,
    load: Any,
    number: Any,
    stages: int,
    first: Any | None = None,
) -> Any:
    """Let the tile of a load pass through a ring, too; return the tile that is waited for.

    The wait stands before `first`, or before the first use.

    Raises:
        LegoError: what is loaded beyond the tensor is not 0.
    """
    (tile,) = load.results
    if not _is_zero(load.attributes.get(dialect.OTHER)):
        raise step.error(
            "copies 0 where a tensor has no elements, and this load has another number there",
            load,
        )
    shared = _shared_layout(kernel, load)
    if first is not None and kernel.ctas == 1 and _is_read_by_rows(tile):
        shared = OrderBy(Row(*shape_of(tile)))  # no dot reads it across
    kind = shared_tile_type(shape_of(tile), element_of(tile), shared)
    _check_room(step, kernel, load, stages)
    outermost = in_block(load, kernel.body)
    with ir.InsertionPoint(outermost), load.location:
        ring = pipelines.make_ring(stages, kind)
    buffer, *origin = list(load.operands)
    with ir.InsertionPoint(load), load.location:
        pipelines.acquire(ring, number)
        attributes = (load.attributes[dialect.LAYOUT], load.attributes[dialect.SLICE])
        pipelines.copy_async(ring, number, buffer, origin, *attributes, engine="plain")
        pipelines.commit(ring, number)
    first = first or first_of(list(users_in(tile, load.block)))
    with ir.InsertionPoint(first), first.location:
        return pipelines.wait(ring, number)


def _is_read_by_rows(tile: Any) -> bool:
    """Return whether a tile is one row, or slices of it that are read are one each."""
    if prod(shape_of(tile)) == max(shape_of(tile)):
        return True
    users = [use.owner for use in tile.uses]
    return all(op.name == tiles.EXTRACT_SLICE and _is_read_by_rows(op.results[0]) for op in users)


def _read_from(waited: Any, load: Any) -> None:
    """Let the uses of a loaded tile read a stage of a ring, which is released behind them."""
    _replace(load.results[0], waited)
    readers = _readers(waited, load.block)
    with ir.InsertionPoint(following(last_of(readers))), load.location:
        pipelines.release(*waited.owner.operands)


def _check_room(step: TransformStep, kernel: TileKernel, load: Any, stages: int) -> None:
    """Refuse a ring of more stages than a CTA has shared memory for."""
    size = _stage_bytes(kernel, load)
    most = kernel.target.optin_shared_bytes
    if size * stages > most:
        few = most // size
        raise step.error(
            f"{stages} stages of this tile take {size * stages} bytes of shared memory, of which "
            f"a CTA on {kernel.target.name} may have {most}",
            load,
            hint=step.option("stages", few) if few else "take smaller tiles",
        )


def _stage_bytes(kernel: TileKernel, load: Any) -> int:
    """Return the bytes of a CTA's slice of a loaded tile."""
    (tile,) = load.results
    return prod(shape_of(tile)) * bytes_of(element_of(tile)) // kernel.ctas


def _is_zero(attribute: Any | None) -> bool:
    return attribute is None or getattr(attribute, "value", None) == 0


def _shared_layout(kernel: TileKernel, load: Any) -> Layout:
    """Return where the tile of a load lies in a stage."""
    (tile,) = load.results
    for use in tile.uses:
        if use.owner.name == tiles.CONVERT and is_shared_tile(use.owner.results[0]):
            found = shared_layout_of(use.owner.results[0])
            assert found is not None
            return found
    return stage_layout(kernel, load, shape_of(tile))


def _replace(tile: Any, shared: Any) -> None:
    """Let a tile in shared memory stand for one in registers, and its transposes for theirs."""
    in_registers = None
    for use in list(tile.uses):
        user = use.owner.operation
        if _is_replaced(user, shared):
            if user.name == tiles.TRANSPOSE:
                with ir.InsertionPoint(user), user.location:
                    view = transposed_view(shared, tiles.order_of(user))
                _replace(user.results[0], view)
            else:
                user.results[0].replace_all_uses_with(shared)
            user.erase()
        elif user.name in (tiles.CONVERT, tiles.EXTRACT_SLICE):
            user.operands[0] = shared
        else:
            if in_registers is None:
                block = shared.owner.operation.block
                first = first_of([in_block(user, block), *users_in(tile, block)])
                with ir.InsertionPoint(first):
                    in_registers = tiles.convert(tile.type, shared)
            user.operands[use.operand_number] = in_registers


def _is_replaced(user: Any, shared: Any) -> bool:
    """Return whether an operation on a tile vanishes where the tile is in shared memory."""
    if user.name == tiles.CONVERT:
        return _is_there(user.results[0], shared)
    return bool(user.name == tiles.TRANSPOSE)


def _is_there(tile: Any, shared: Any) -> bool:
    """Return whether a tile lies in shared memory as another does, in whichever words."""
    return is_shared_tile(tile) and shared_layout_of(tile) == shared_layout_of(shared)


def _readers(waited: Any, block: Any) -> list[Any]:
    """Return the operations of a block that read a tile in shared memory, or a view of it."""
    found = [waited.owner.operation]
    pending = [waited]
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            inside = in_block(user, block)
            if inside is not None:
                found.append(inside)
            pending.extend(r for r in user.results if is_shared_tile(r))
    return found
