"""Give tiles their layouts, and make what differs: conversions, or the same tile computed again.

A conversion stands before the first use, but outside of loops that only use the tile. All uses of a
tile in one layout share it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.analysis.distributed import DistributedLayout, coalesced
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir import layout_rules
from lego_mlir.mlir.tile_ir.operations import CONSTANT
from lego_mlir.mlir.tile_ir.types import (
    Placement,
    element_of,
    is_tile,
    place,
    placed_type,
    placement_of,
    shape_of,
)
from lego_mlir.mlir.tile_passes.assign_layouts.graph import Graph, Use, block_of
from lego_mlir.mlir.tile_passes.assign_layouts.selection import Keys

_BRANCH = "scf.if"


def place_tiles(graph: Graph, keys: Keys, warps: int) -> None:
    """Give the tiles of a graph the layouts of their nodes' keys, with conversions, in place.

    Args:
        graph: the graph of a kernel.
        keys: of its nodes.
        warps: of the kernel.
    """
    for node in graph.nodes:
        for value in node.values:
            place(value, node.value_layout(keys[node]))
        if node.op.name == CONSTANT:
            _retype(node.op)
    wanted: dict[tuple[Any, Placement], list[Use]] = {}
    for node in graph.nodes:
        for use in node.uses:
            if node.op.name == tiles.CONVERT and use.value in graph.definer:
                continue  # it converts from any layout
            layout = node.use_layout(use, keys[node])
            wanted.setdefault((use.value, layout), []).append(use)
    recomputed: dict[tuple[Any, DistributedLayout], Any] = {}
    for (value, layout), uses in wanted.items():
        if value not in graph.definer:
            new = _recompute(value, in_registers(layout, uses[0].element_bytes, warps), recomputed)
            if isinstance(layout, Layout):
                new = _convert(new, layout, uses)
        elif placement_of(value) == layout:
            continue
        else:
            new = _convert(value, layout, uses)
        for use in uses:
            use.op.operands[use.number] = new
    for node in graph.nodes:
        if node.op.name == tiles.CONVERT and node.op.operands[0].type == node.op.results[0].type:
            node.op.results[0].replace_all_uses_with(node.op.operands[0])


def in_registers(placement: Placement, element_bytes: int, warps: int) -> DistributedLayout:
    """Return the layout in which a tile is computed that is needed somewhere."""
    if isinstance(placement, DistributedLayout):
        return placement
    return coalesced([int(n) for n in placement.dims], element_bytes, warps)


def _convert(value: Any, layout: Placement, uses: Iterable[Use]) -> Any:
    """Build a conversion of a tile that stands before all of these uses; return its result."""
    kind = placed_type(shape_of(value), element_of(value), layout)
    first = _place_for(value, [use.op for use in uses])
    with ir.InsertionPoint(first):
        return tiles.convert(kind, value, first.location)


def _place_for(value: Any, users: list[Any]) -> Any:
    """Return the operation before which what is made of a tile for some operations has to stand."""
    block = block_of(value)
    while True:
        chains = [_chain(user, block) for user in users]
        outermost = [chain[0] for chain in chains]
        first = outermost[0]
        for op in outermost[1:]:
            if op != first and op.is_before_in_block(first):
                first = op
        inner = {chain[1].block for chain in chains if len(chain) > 1 and chain[0] == first}
        all_inside = all(len(chain) > 1 and chain[0] == first for chain in chains)
        if first.name != _BRANCH or not all_inside or len(inner) > 1:
            return first
        block = inner.pop()  # all uses are in one branch


def _chain(op: Any, block: Any) -> list[Any]:
    """Return the operations that enclose one, from one in the block inwards, and itself."""
    chain = [op.operation]
    while chain[0].block != block:
        chain.insert(0, chain[0].parent.operation)
    return chain


def _recompute(
    value: Any, layout: DistributedLayout, made: dict[tuple[Any, DistributedLayout], Any]
) -> Any:
    """Build the operations that compute a tile in a layout, where it is computed; return it."""
    if (value, layout) not in made:
        op = value.owner.operation
        key = _known(layout_rules.key_by_result(op, layout))
        operands = [
            _recompute(v, _known(layout_rules.operand_layout(op, k, key)), made)
            if is_tile(v)
            else v
            for k, v in enumerate(op.operands)
        ]
        copy = op.clone(ip=ir.InsertionPoint(op))
        for k, operand in enumerate(operands):
            copy.operands[k] = operand
        place(copy.results[0], layout)
        if copy.name == CONSTANT:
            _retype(copy)
        made[value, layout] = copy.results[0]
    return made[value, layout]


def _known(layout: DistributedLayout | None) -> DistributedLayout:
    assert layout is not None, "operations that are computed again suit every layout"
    return layout


def _retype(constant: Any) -> None:
    """Give the value of a constant the type of its result."""
    number = ir.DenseElementsAttr(constant.attributes["value"]).get_splat_value()
    kind = constant.results[0].type
    constant.attributes["value"] = ir.DenseElementsAttr.get_splat(kind, number)
