"""Where layouts come from: dots, loads and stores, what the program gives, and reductions.

Each anchor is a node with a key; `propagation` spreads it. Those that come first are preferred
where two choices cost the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.analysis.distributed import (
    DistributedLayout,
    coalesced,
    joined,
    replicated,
    reshaped,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir import layout_rules
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.types import bytes_of, element_of, shape_of
from lego_mlir.mlir.tile_passes.assign_layouts.dot_anchors import dot_keys
from lego_mlir.mlir.tile_passes.assign_layouts.graph import Graph, Node
from lego_mlir.mlir.tile_passes.assign_layouts.keys import DotKey, Key
from lego_mlir.mlir.tile_passes.assign_layouts.memory_anchors import Accesses
from lego_mlir.mlir.tile_passes.assign_layouts.propagation import Candidates

_REDUCTIONS = (
    tiles.REDUCE,
    tiles.REDUCE_WITH,
    tiles.SCAN,
    tiles.SCAN_WITH,
    tiles.SORT_WITH,
)


def find_candidates(graph: Graph, kernel: TileKernel, accesses: Accesses) -> Candidates:
    """Return the keys that anchors give to the nodes of a graph.

    Raises:
        LegoError: a dot is of sizes or elements that tensor cores do not take.
    """
    candidates = Candidates(graph)
    for node in graph.nodes:
        if node.given is not None:
            candidates.add(node, node.given)
    dots = [n for n in graph.nodes if n.op.name == tiles.DOT and n.tie is None]
    keys: dict[Node, list[Key]] = {}
    for node in sorted(dots, key=lambda n: -_work(n.op)):
        keys[node] = list(dot_keys(node.op, kernel, accesses))
        for key in keys[node]:
            candidates.add(node, key)
    for in_memory in (True, False):
        candidates.add_together(
            {
                node: key
                for node, own in keys.items()
                for key in own[::-1]  # the first one stays
                if isinstance(key, DotKey) and isinstance(key.a, Layout) == in_memory
            }
        )
    threads = kernel.warps, kernel.ctas
    memory = [n for n in graph.nodes if n.op.name in (dialect.LOAD, dialect.STORE)]
    memory.sort(key=lambda n: -prod(accesses.of(n.op).shape) * accesses.of(n.op).element_bytes)
    whole = _reduced_dims(graph)
    for node in memory:
        access = accesses.of(node.op)
        candidates.add(node, access.coalesced(*threads))
    for node in memory:
        access = accesses.of(node.op)
        for dim in sorted(whole):
            if dim < len(access.shape) and access.shape[dim] > 1:
                candidates.add(node, access.coalesced(*threads, (dim,)))
    for node in memory:
        access = accesses.of(node.op)
        for vector in _reshaped_vectors(node.op, access.vector):
            candidates.add(node, replace(access, vector=vector).coalesced(*threads))
    for node in candidates.missing():
        if not any(node in label for label in candidates.labels):
            candidates.adopt(node, shape_of(_key_tile(node)))
        if not any(node in label for label in candidates.labels):
            candidates.add(node, _default(node, kernel))
    return candidates


def _reduced_dims(graph: Graph) -> set[int]:
    """Return the dimensions along which the kernel reduces, scans or sorts."""
    return {tiles.dim_of(n.op) for n in graph.nodes if n.op.name in _REDUCTIONS and n.tie is None}


def _reshaped_vectors(access: Any, widest: int) -> list[int]:
    """Return the narrower vectors that reshapes of what is loaded or stored keep together.

    A tile of 1 x 896 that is used as 2 x 224 x 2 has pairs in a thread, though memory may be known
    to be aligned for vectors of 4: where one row alone, or a class of strides, is.
    """
    if access.name == dialect.STORE:
        tile = access.operands[0]
        is_reshaped = not isinstance(tile, ir.BlockArgument) and tile.owner.name == tiles.RESHAPE
        found = [tile.owner.operands[0]] if is_reshaped else []
    else:
        users = (use.owner for use in access.results[0].uses)
        found = [user.results[0] for user in users if user.name == tiles.RESHAPE]
    widths = {int(shape_of(tile)[-1]) for tile in found}
    return sorted((n for n in widths if n < widest and widest % n == 0), reverse=True)


def _work(dot: Any) -> int:
    return prod(shape_of(dot.results[0])) * int(shape_of(dot.operands[0])[1])


def _key_tile(node: Node) -> Any:
    """Return a tile whose layout is the node's key."""
    if node.tie is not None:
        return node.tie.members[0]
    return node.op.operands[0] if layout_rules.is_by_operand(node.op) else node.op.results[0]


def _default(node: Node, kernel: TileKernel) -> Key:
    """Return a key for a node that no anchor reaches: the first of these that suits it."""
    tile = _key_tile(node)
    shape, size, warps = shape_of(tile), bytes_of(element_of(tile)), kernel.warps

    def flat(of: tuple[int, ...]) -> DistributedLayout:
        return coalesced(of, size, warps, ctas=kernel.ctas)

    attempts: list[Callable[[], DistributedLayout]] = [
        lambda: flat(shape),
        lambda: joined(flat(shape[:-1]), shape[-1]),
        lambda: reshaped(flat((prod(shape),)), shape),
    ]
    for attempt in attempts:
        try:
            layout = attempt()
        except (LegoError, IndexError):  # there is no such layout
            continue
        if node.suits(layout):
            return layout
    return replicated(shape, warps, ctas=kernel.ctas)
