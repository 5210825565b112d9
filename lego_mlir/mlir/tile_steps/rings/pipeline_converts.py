"""`transform_lego.pipeline_converts`: tiles of rings reach another layout through a second ring.

    %t = "lego.wait"(%ring, %i)
    %x = "lego.convert"(%t) : ... -> tensor<64x64xf8E4M3FN, #D>
    %y = "lego.convert"(%x) : ... -> tensor<64x64xf8E4M3FN, #lego.shared<"...">>
    "lego.release"(%ring, %i)
    %d = "lego.dot"(%p, %y, %c)

becomes

    %other = "lego.make_ring"() : () -> !lego.ring<2 : i64, tensor<64x64xf8E4M3FN, ...>>
    ...
    %t = "lego.wait"(%ring, %i)
    "lego.acquire"(%other, %i)
    "lego.put"(%other, %i, %t)
    "lego.commit"(%other, %i)
    "lego.release"(%ring, %i)
    %y = "lego.wait"(%other, %i)
    %d = "lego.dot"(%p, %y, %c)
    "lego.release"(%other, %i)

Reshapes and transposes between the two conversions become views of the tile in shared memory, and
cost nothing. So 8-bit values are transposed for a dot that reads them along k: `split_roles` lets
`converter_warps` warps of their own do it, beside the dots.

A conversion is rewritten if so many warps can make it by matrix instructions, without exchanging
elements (`analysis.distributed.conversions.shared_copies`). With 0 warps it stays as it is. The
second ring has `stages` stages, too.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.analysis.distributed.conversions.shared_copies import plan_shared_copy
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.dots import matrix_instructions
from lego_mlir.mlir.tile_ir.types import (
    bytes_of,
    element_of,
    is_register_tile,
    is_shared_tile,
    shape_of,
    shared_layout_of,
)
from lego_mlir.mlir.tile_steps.kernels import following, kernels_of, last_of, users_in
from lego_mlir.mlir.tile_steps.views import reshaped_view, transposed_view

_VIEWS = (tiles.RESHAPE, tiles.TRANSPOSE)


@transform("pipeline_converts")
def pipeline_converts(step: TransformStep) -> list[list[Any]]:
    """Let tiles of rings whose layout is converted in shared memory pass through further rings."""
    warps = step.number("converter_warps", 0)
    stages = step.number("stages", 2)
    if warps < 0:
        raise step.misuse(f"converter_warps is {warps}", hint=step.option("converter_warps", 4))
    if stages < 1:
        raise step.misuse(f"stages is {stages}", hint=step.option("stages", 2))
    for kernel in kernels_of(step) if warps else ():
        inside = list(operations_in(kernel.launch))
        for role in (op for op in inside if op.name == pipelines.ROLE):
            raise step.error(
                "the kernel has roles already",
                role,
                hint="transform_lego.pipeline_converts comes before split_roles",
            )
        if not matrix_instructions(kernel.target).store:
            continue
        for op in inside:
            is_made = op.name == tiles.CONVERT and is_shared_tile(op.results[0])
            if is_made and is_register_tile(op.operands[0]):
                _pipeline(step, op, warps, stages)
    return []


def _pipeline(step: TransformStep, convert: Any, warps: int, stages: int) -> None:
    """Rewrite one conversion, if it is of the tile of a ring that nothing else reads."""
    chain = _chain(convert)
    if chain is None:
        return
    waited = chain[-1].operands[0]
    wait, block = waited.owner.operation, convert.block
    ring, number = wait.operands
    releases = [
        use.owner.operation
        for use in ring.uses
        if use.owner.name == pipelines.RELEASE and use.owner.operands[1] == number
    ]
    is_there = wait.block == block and [op.block for op in releases] == [block]
    if not is_there or len(list(waited.uses)) > 1:
        return
    kind = convert.results[0].type
    with ir.InsertionPoint(following(wait)), convert.location:
        shared = waited
        views = []
        for op in reversed(chain):
            if op.name in _VIEWS:
                shared = _view(op, shared)
                views.append(shared.owner.operation)
    source, target = shared_layout_of(shared), shared_layout_of(convert.results[0])
    assert source is not None  # both are in shared memory
    assert target is not None
    if plan_shared_copy(source, target, bytes_of(element_of(shared)), warps) is None:
        for view in reversed(views):
            step.erase(view)
        return
    maker = ring.owner.operation
    with ir.InsertionPoint(following(maker)), convert.location:
        converted = pipelines.make_ring(stages, kind)
    with ir.InsertionPoint(following(shared.owner.operation)), convert.location:
        pipelines.acquire(converted, number)
        pipelines.put(converted, number, shared)
        pipelines.commit(converted, number)
        pipelines.release(ring, number)
    with ir.InsertionPoint(convert), convert.location:
        tile = pipelines.wait(converted, number)
    convert.results[0].replace_all_uses_with(tile)
    readers = [tile.owner.operation, *users_in(tile, block)]
    with ir.InsertionPoint(following(last_of(readers))), convert.location:
        pipelines.release(converted, number)
    for op in (releases[0], convert, *chain):
        step.erase(op)


def _chain(convert: Any) -> list[Any] | None:
    """Return the views and conversions between the tile of a ring and another, the last one first.

    The last of the list takes the tile from shared memory. `None` if there is other work between.
    """
    found: list[Any] = []
    tile = convert.operands[0]
    while not isinstance(tile, ir.BlockArgument) and len(list(tile.uses)) == 1:
        op = tile.owner.operation
        if op.name not in (*_VIEWS, tiles.CONVERT):
            return None
        found.append(op)
        tile = op.operands[0]
        if is_shared_tile(tile):
            is_waited = tile.owner.name == pipelines.WAIT
            return found if op.name == tiles.CONVERT and is_waited else None
    return None


def _view(op: Any, shared: Any) -> Any:
    """Build a reshape or transpose of a tile in shared memory."""
    if op.name == tiles.RESHAPE:
        return reshaped_view(shared, shape_of(op.results[0]))
    return transposed_view(shared, tiles.order_of(op))
