"""`transform_lego.slice_dots`: dots by mma.sync load their operands piece by piece along k.

    %t = "lego.wait"(%as, %i)
    %a = "lego.convert"(%t) : ... -> tensor<128x64xf16, #A>
    "lego.release"(%as, %i)
    %u = "lego.wait"(%bs, %i)
    %b = "lego.convert"(%u) : ... -> tensor<64x128xf16, #B>
    "lego.release"(%bs, %i)
    %d = "lego.dot"(%a, %b, %c)

becomes, with `depth = 16`,

    %t = "lego.wait"(%as, %i)
    %u = "lego.wait"(%bs, %i)
    %a0 = "lego.extract_slice"(%t) {offsets = array<i64: 0, 0>} : ... -> tensor<128x16xf16, #A>
    %b0 = "lego.extract_slice"(%u) {offsets = array<i64: 0, 0>} : ... -> tensor<16x128xf16, #B>
    %a1 = "lego.extract_slice"(%t) {offsets = array<i64: 0, 16>}
    %b1 = "lego.extract_slice"(%u) {offsets = array<i64: 16, 0>}
    %d0 = "lego.dot"(%a0, %b0, %c)
    ...
    "lego.release"(%as, %i)
    "lego.release"(%bs, %i)
    %d3 = "lego.dot"(%a3, %b3, %d2)

So registers hold two pieces, and each is loaded while the one before is multiplied. Operand A may
be in registers, such as the probabilities of attention: then its pieces are there already. A dot
whose operand B is computed, or filled with zeros where its size along k is rounded up, stays whole.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.analysis.distributed.mma_grids import operand_a, operand_b
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.modules import body_of
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.dots import is_warpgroup_dot, read_dot, sizes_of
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.types import element_of, is_shared_tile, layout_of
from lego_mlir.mlir.tile_steps.kernels import loops_of, operations_of, users_in
from lego_mlir.mlir.tile_steps.views import transposed_view


@transform("slice_dots")
def slice_dots(step: TransformStep) -> list[list[Any]]:
    """Divide the dots of loops by mma.sync along k."""
    depth = step.number("depth", 0)
    loops = loops_of(step)
    found = 0
    for kernel, loop in loops:
        operations = operations_of(body_of(loop))
        is_ringed = any(op.name == pipelines.WAIT for op in operations)
        for dot in [op for op in operations if op.name == tiles.DOT]:
            if is_warpgroup_dot(dot):
                found += 1  # it reads shared memory itself
            elif _load_of(dot.operands[1], dot) is not None:
                _slice(step, kernel, dot, depth)
                found += 1
            elif is_ringed:
                found += 1  # operand B is computed of what comes through a ring, and stays whole
    if loops and not found:
        raise step.error(
            "no loop has a dot whose operand B comes from shared memory",
            loops[0][1],
            hint="transform_lego.pipeline_loop lets it come through a ring",
        )
    return []


def _load_of(operand: Any, dot: Any) -> Any | None:
    """Return the conversion that loads an operand from shared memory for one dot alone, if any.

    The operand may be the transpose of what is loaded.
    """
    if isinstance(operand, ir.BlockArgument) or len(list(operand.uses)) != 1:
        return None
    op = operand.owner.operation
    if op.name == tiles.TRANSPOSE and not is_shared_tile(op.operands[0]):
        return _load_of(op.operands[0], dot)
    is_load = op.name == tiles.CONVERT and is_shared_tile(op.operands[0])
    return op if is_load and op.block == dot.block else None


def _source(operand: Any, load: Any) -> Any:
    """Build the tile in shared memory that an operand is loaded from, turned as the operand is."""
    if operand.owner.operation == load:
        return load.operands[0]
    with ir.InsertionPoint(load), load.location:
        before = _source(operand.owner.operands[0], load)
        return transposed_view(before, tiles.order_of(operand.owner))


def _slice(step: TransformStep, kernel: TileKernel, dot: Any, depth: int) -> None:
    """Divide one dot."""
    instruction = read_dot(kernel, dot).instruction
    depth = depth or instruction.shape[2]
    m, n, k = sizes_of(dot)
    if depth < 1 or depth % instruction.shape[2] or k % depth:
        raise step.error(
            f"dots of {depth} along k do not divide one of {k} in instructions of "
            f"{instruction.shape[2]}",
            dot,
            hint=step.option("depth", instruction.shape[2]),
        )
    *operands, total = list(dot.operands)
    sums = layout_of(total)
    assert sums is not None  # the dot is placed, and of mma.sync
    layouts = (
        operand_a(sums, (m, depth), instruction.bits),
        operand_b(sums, (depth, n), instruction.bits),
    )
    loads = [_load_of(x, dot) for x in operands]
    loaded = [(x, load) for x, load in zip(operands, loads, strict=True) if load is not None]
    sources = [
        x if load is None else _source(x, load) for x, load in zip(operands, loads, strict=True)
    ]
    kinds = [
        ir.RankedTensorType.get(list(of.shape), element_of(x), layout_attribute(of.layout))
        for of, x in zip(layouts, operands, strict=True)
    ]

    def pieces(piece: int) -> list[Any]:
        at = piece * depth
        return [
            tiles.extract_slice(kind, source, offsets)
            for kind, source, offsets in zip(kinds, sources, ([0, at], [at, 0]), strict=True)
        ]

    if len(loaded) == len(sources):
        _wait_together(sources)
    with ir.InsertionPoint(dot), dot.location:
        following = pieces(0)
        for piece in range(k // depth):
            now = following
            if piece + 1 < k // depth:
                following = pieces(piece + 1)
            a, b = now
            total = tiles.dot(a, b, total)
    dot.results[0].replace_all_uses_with(total)
    step.erase(dot)
    for operand, load in loaded:
        _release_behind(load.operands[0], following[-1].owner.operation)
        while operand.owner.operation != load:  # transposes
            operand, turn = operand.owner.operands[0], operand.owner.operation
            step.erase(turn)
        step.erase(load)


def _wait_together(read: list[Any]) -> None:
    """Move the waits for tiles in shared memory, and views of them, next to one another."""
    chains = [_chain(x) for x in read]
    waits = [chain[-1] for chain in chains]
    if any(op.name != pipelines.WAIT for op in waits) or waits[0] == waits[1]:
        return
    if waits[0].block != waits[1].block:
        return
    first, last = waits if waits[0].is_before_in_block(waits[1]) else waits[::-1]
    views = chains[waits.index(first)][:-1]
    early = [x for x in users_in(first.results[0], first.block) if x.is_before_in_block(last)]
    if all(x in views or _is_read(x) for x in early):
        first.move_before(last)
        for op in reversed(views):
            op.move_after(last)
        for op in early:
            if op not in views:
                op.move_after(views[0] if views else last)


def _chain(tile: Any) -> list[Any]:
    """Return what makes a tile in shared memory: transposes, the last one first, then the rest."""
    found = [tile.owner.operation]
    while found[-1].name == tiles.TRANSPOSE:
        found.append(found[-1].operands[0].owner.operation)
    return found


def _is_read(op: Any) -> bool:
    return bool(op.name == tiles.CONVERT)


def _release_behind(tile: Any, load: Any) -> None:
    """Move the release of a ring's tile behind a load of it."""
    wait = _chain(tile)[-1]
    if wait.name != pipelines.WAIT:
        return
    ring, number = wait.operands
    for use in list(ring.uses):
        op = use.owner.operation
        is_own = op.name == pipelines.RELEASE and op.operands[1] == number
        if is_own and op.block == load.block and op.is_before_in_block(load):
            op.move_after(load)
