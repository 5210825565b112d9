"""`transform_lego.pipeline_stores`: tiles are stored by TMA, out of ring buffers.

    %y = "lego.convert"(%x) : ... -> tensor<128x256xf16, #rows>
    "lego.store"(%y, %c, %i, %j)

becomes

    %ring = "lego.make_ring"() : () -> !lego.ring<1 : i64, tensor<128x256xf16, #S>>
    ...
    "lego.acquire"(%ring, %n)
    "lego.put"(%ring, %n, %x)
    "lego.commit"(%ring, %n)
    %t = "lego.wait"(%ring, %n)
    "lego.store"(%t, %c, %i, %j)
    "lego.release"(%ring, %n)

With `store_parts = 4` each of four parts of the tile is put and stored by itself, in a loop, so
that the ring is small:

    scf.for %k = 0 to 4 {
      %part = "lego.extract_part"(%x, %k)
      "lego.put"(%ring, %n * 4 + %k, %part)
      ...
    }

Each store that TMA can make has a ring of `store_stages` stages. `split_roles` gives the last three
operations to a role of their own, so that those who have put a tile go on: in a persistent kernel
to the next tile, while this one is stored.

With 0 stages, and where TMA cannot store, threads do as before. Of several parts each is converted
and stored by itself, so that the conversion needs little shared memory:

    %part = "lego.extract_part"(%x, %k)
    %y = "lego.convert"(%part) : ... -> tensor<128x64xf16, #rows>
    "lego.store"(%y, %c, %i, %j + %k * 64)

A mask of the rows that are stored is the same for all parts of the columns, and is built once.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import Any

from lego_mlir.analysis.distributed import DistributedLayout, block
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import named_attributes, operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.layout_rules import quotient
from lego_mlir.mlir.tile_ir.operations import slice_of
from lego_mlir.mlir.tile_ir.types import (
    element_of,
    is_register_tile,
    layout_of,
    shape_of,
    shared_tile_type,
    tile_type,
)
from lego_mlir.mlir.tile_passes.assign_layouts.memory_anchors import Accesses
from lego_mlir.mlir.tile_passes.lower_pipelines.tensor_copies import boxes_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_steps.kernels import in_block, kernels_of
from lego_mlir.mlir.tile_steps.rings.iteration_counts import is_counted, number_of
from lego_mlir.mlir.tile_steps.rings.stage_layouts import stage_layout


@transform("pipeline_stores")
def pipeline_stores(step: TransformStep) -> list[list[Any]]:
    """Let the stores of kernels that TMA can make pass through rings."""
    stages = step.number("store_stages", 1)
    if stages < 0:
        raise step.misuse(f"store_stages is {stages}", hint=step.option("store_stages", 1))
    parts = step.number("store_parts", 1)
    if parts < 1:
        raise step.misuse(f"store_parts is {parts}", hint=step.option("store_parts", 4))
    for kernel in kernels_of(step) if stages or parts > 1 else ():
        inside = list(operations_in(kernel.launch))
        for role in (op for op in inside if op.name == pipelines.ROLE):
            raise step.error(
                "the kernel has roles already",
                role,
                hint="transform_lego.pipeline_stores comes before split_roles",
            )
        for op in inside:
            if op.name != dialect.STORE or not is_register_tile(op.operands[0]):
                continue
            if dialect.KIND in op.attributes:
                continue  # it updates what was there
            by_tma = stages > 0 and is_counted(kernel, op)
            if not (by_tma and _pipeline(step, kernel, op, stages, parts)) and parts > 1:
                _divide(step, kernel, op, parts)
    return []


def _part_type(tile: Any, parts: int) -> Any:
    """Return the type of one of several parts of a tile, of each of which every thread has some.

    Raises:
        LegoError: threads do not hold such parts.
    """
    shape, layout = shape_of(tile), layout_of(tile)
    assert layout is not None  # it is placed
    for dim in reversed(range(len(shape))):
        if shape[dim] % parts:
            continue
        found = (*shape[:dim], shape[dim] // parts, *shape[dim + 1 :])
        try:
            return tile_type(found, element_of(tile), block(layout, found))
        except LegoError:
            continue
    raise LegoError(f"the threads do not hold a tile {list(shape)} in {parts} parts")


def _pipeline(step: TransformStep, kernel: TileKernel, store: Any, stages: int, parts: int) -> bool:
    """Rewrite one store if TMA can make it; return whether it can."""
    tile = _unconverted(store.operands[0])
    # TMA drops what is out of bounds, and nothing else.
    if dialect.made_by(tile, tiles.RESTRICT) or dialect.FILLED not in kernel.launch.attributes:
        return False
    try:
        piece = _part_type(tile, parts)
        shape = tuple(piece.shape)
        kind = shared_tile_type(shape, element_of(tile), stage_layout(kernel, store, shape))
        boxes_of(kernel, store, kind)
    except LegoError:
        return False
    with ir.InsertionPoint(in_block(store, kernel.body) or store), store.location:
        ring = pipelines.make_ring(stages, kind)
    at, part, origin = _part(store, tile, piece, parts)
    with ir.InsertionPoint(at), store.location:
        number = number_of(step, kernel, at, [])
        pipelines.acquire(ring, number)
        pipelines.put(ring, number, part)
        pipelines.commit(ring, number)
        waited = pipelines.wait(ring, number)
        dialect.store(waited, store.operands[1], origin, named_attributes(store))
        pipelines.release(ring, number)
    _erase(step, store, tile)
    return True


def _divide(step: TransformStep, kernel: TileKernel, store: Any, parts: int) -> None:
    """Let threads convert and store the parts of a tile one after another, if they hold parts."""
    stored, mask = store.operands[0], None
    if dialect.made_by(stored, tiles.RESTRICT):
        stored, mask = list(stored.owner.operands)
    tile = _unconverted(stored)
    if tile == stored:
        return  # nothing is converted
    try:
        piece = _part_type(tile, parts)
    except LegoError:
        return
    if mask is not None and not _is_common(mask, tuple(piece.shape)):
        return
    access = Accesses(kernel).of(store)
    shape = tuple(piece.shape)
    vector = gcd(access.vector, shape[access.order[-1]])
    access = replace(access, shape=shape, vector=vector, contiguous=1)
    layout = access.coalesced(kernel.warps, kernel.ctas)
    kind = tile_type(shape, element_of(tile), layout)
    if mask is not None:
        with ir.InsertionPoint(store), store.location:
            mask = _part_of_mask(mask, layout)
    at, part, origin = _part(store, tile, piece, parts)
    with ir.InsertionPoint(at), store.location:
        converted = tiles.convert(kind, part)
        if mask is not None:
            converted = tiles.restrict(converted, mask)
        dialect.store(converted, store.operands[1], origin, named_attributes(store))
    _erase(step, store, tile)


def _is_common(mask: Any, shape: tuple[int, ...]) -> bool:
    """Return whether a mask of a tile is the same for all its parts of a shape: it is broadcast."""
    if not dialect.made_by(mask, tiles.BROADCAST):
        return False
    sizes = zip(shape_of(mask.owner.operands[0]), shape_of(mask), shape, strict=True)
    return all(n == 1 or whole == part for n, whole, part in sizes)


def _part_of_mask(mask: Any, layout: DistributedLayout) -> Any:
    """Build the mask of each part, which has a layout, of one that all have in common."""
    source, i1 = mask.owner.operands[0], ir.IntegerType.get_signless(1)
    rows = tile_type(shape_of(source), i1, quotient(layout, shape_of(source)))
    found = source if source.type == rows else tiles.convert(rows, source)
    return tiles.broadcast(tile_type(layout.shape, i1, layout), found)


def _unconverted(tile: Any) -> Any:
    """Return a tile before its conversions."""
    while not isinstance(tile, ir.BlockArgument) and tile.owner.name == tiles.CONVERT:
        tile = tile.owner.operands[0]
    return tile


def _part(store: Any, tile: Any, piece: Any, parts: int) -> tuple[Any, Any, list[Any]]:
    """Build a part of a tile, in a loop if there are several.

    Args:
        store: the store of the tile, before which it is built.
        tile: the tile.
        piece: the type of a part.
        parts: how many there are.

    Returns:
        What stands behind the part, the part, and the origin at which it is stored.
    """
    _, _, *origin = list(store.operands)
    if parts == 1:
        return store, tile, origin
    at, k = _loop(store, parts)
    with ir.InsertionPoint(at), store.location:
        part = tiles.extract_part(piece, tile, k)
        (divided,) = (d for d, n in enumerate(shape_of(tile)) if n != piece.shape[d])
        dim, distance = slice_of(store)[divided], build.index(piece.shape[divided])
        origin[dim] = build.binary("addi", origin[dim], build.binary("muli", k, distance))
    return at, part, origin


def _erase(step: TransformStep, store: Any, tile: Any) -> None:
    """Erase a store, and the conversions of its tile that nothing else uses."""
    converted = store.operands[0]
    step.erase(store)
    while converted != tile and not any(True for _ in converted.uses):
        unused, converted = converted.owner.operation, converted.owner.operands[0]
        step.erase(unused)


def _loop(store: Any, count: int) -> tuple[Any, Any]:
    """Build an empty loop before a store; return the end of its body, and its variable."""
    with ir.InsertionPoint(store), store.location:
        bounds = [build.index(n) for n in (0, count, 1)]
        loop = ir.Operation.create("scf.for", operands=bounds, regions=1)
        body = loop.regions[0].blocks.append(ir.IndexType.get(), arg_locs=[store.location])
        with ir.InsertionPoint(body):
            return ir.Operation.create("scf.yield"), body.arguments[0]
