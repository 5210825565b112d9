"""The operations of a kernel as a graph: what gets a layout, and what must agree with it.

A node is an operation on tiles, or tiles that control flow makes one value. It has one key, from
which the layouts of all its tiles follow (`tile_ir.layout_rules`). An edge leads from the node that
defines a tile to one that uses it; where their layouts of the tile differ, a conversion is needed.

Tiles that are cheap to compute in any layout have no node: they are computed where they are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.operations import CONSTANT, Tie, is_pointwise, is_source, ties
from lego_mlir.mlir.tile_ir.types import (
    Placement,
    bytes_of,
    element_of,
    is_register_tile,
    is_tile,
    layout_of,
)
from lego_mlir.mlir.tile_passes.assign_layouts import keys
from lego_mlir.mlir.tile_passes.assign_layouts.keys import Key

MOST_RECOMPUTED = 8
"""The most operations that are computed again for a layout, instead of converting their result."""

_UNKNOWN_TRIPS = 8
"""How often a loop is assumed to run whose bounds are not constant."""

EXPENSIVE = ("arith.div", "arith.rem", "math.")
"""How names of pointwise operations begin that take many instructions."""
_LOOPS = ("scf.for", "scf.while")


@dataclass(frozen=True)
class Use:
    """A tile that a node uses.

    Attributes:
        value: the tile.
        op: the operation that has it as an operand.
        number: of the operand.
        weight: how often it would be converted for this use.
        element_bytes: bytes of its elements.
    """

    value: Any
    op: Any
    number: int
    weight: int
    element_bytes: int


@dataclass(eq=False)
class Node:
    """What gets a key.

    Attributes:
        number: of the node, in the order of the kernel.
        op: the operation; of a tie the control flow.
        tie: what control flow makes one value, if it is that.
        values: the tiles that it defines.
        uses: the tiles that it uses and that must have a layout by its key.
        weight: how often it runs.
        given: the layout that the program gives its tiles.
    """

    number: int
    op: Any
    tie: Tie | None
    values: tuple[Any, ...]
    uses: tuple[Use, ...]
    weight: int
    given: DistributedLayout | None = None

    def value_layout(self, key: Key) -> Placement:
        """Return the layout of the tiles that the node defines."""
        return _of_tie(key) if self.tie else keys.result_placement(self.op, key)

    def accepts(self, key: Key) -> bool:
        """Return whether the program leaves the node a key."""
        own = key.accumulator if isinstance(key, keys.DotKey) else key
        return self.given in (None, own)

    def suits(self, key: Key) -> bool:
        """Return whether a key suits the node; some reshapes and splits need another one."""
        try:
            self.value_layout(key)
        except LegoError:
            return False
        return self.accepts(key)

    def use_layout(self, use: Use, key: Key) -> Placement:
        """Return the layout in which the node uses a tile."""
        if self.tie:
            return _of_tie(key)
        layout = keys.operand_placement(self.op, use.number, key)
        assert layout is not None, "uses of any layout are no uses of a node"
        return layout

    def key_by_value(self, layout: Placement) -> Key | None:
        """Return the key with which the node defines tiles of a layout."""
        if self.tie:
            return layout if isinstance(layout, DistributedLayout) else None
        return keys.key_by_result(self.op, layout)

    def key_by_use(self, use: Use, layout: Placement) -> Key | None:
        """Return the key with which the node uses a tile in a layout."""
        if self.tie:
            return layout if isinstance(layout, DistributedLayout) else None
        return keys.key_by_operand(self.op, use.number, layout)


def _of_tie(key: Key) -> DistributedLayout:
    assert isinstance(key, DistributedLayout), "control flow carries tiles in registers"
    return key


@dataclass
class Graph:
    """The graph of a kernel.

    Attributes:
        nodes: in the order of the kernel.
        definer: the node that defines a tile; those that are computed again have none.
        users: the nodes that use each tile, with the uses.
    """

    nodes: list[Node]
    definer: dict[Any, Node]
    users: dict[Any, list[tuple[Node, Use]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.nodes:
            for use in node.uses:
                self.users.setdefault(use.value, []).append((node, use))

    def edges(self) -> Iterator[tuple[Node, Node, Use]]:
        """Yield the edges: the node that defines, the one that uses, and the use."""
        for node in self.nodes:
            for use in node.uses:
                if use.value in self.definer:
                    yield self.definer[use.value], node, use


def build(kernel: TileKernel) -> Graph:
    """Return the graph of a kernel."""
    operations = kernel.operations()
    cheap = _recomputed(operations)
    for op in operations:  # what may have any layout needs one
        for k, v in enumerate(op.operands):
            if _takes_any(op, k):
                cheap.pop(v, None)
    weights = _Weights()
    nodes: list[Node] = []
    for op in operations:
        for tie in ties(op):
            uses = [_use(user, k, weights) for user, k in tie.uses]
            nodes.append(_node(len(nodes), op, tie, tie.members, uses, weights))
        results = tuple(v for v in op.results if is_register_tile(v))
        if ties(op) or op.name in _TERMINATORS or any(v in cheap for v in results):
            continue
        uses = [
            _use(op, k, weights)
            for k, v in enumerate(op.operands)
            if is_register_tile(v) and not _takes_any(op, k)
        ]
        if op.name not in _OF_ANY and (results or uses):
            nodes.append(_node(len(nodes), op, None, results, uses, weights))
    return Graph(nodes, {v: node for node in nodes for v in node.values})


_OF_ANY = (tiles.ITEM, tiles.VOTE)
"""Operations that make a scalar of a tile in any layout."""

_TERMINATORS = ("scf.yield", "scf.condition", *_LOOPS, "scf.if")


def _node(
    number: int,
    op: Any,
    tie: Tie | None,
    values: tuple[Any, ...],
    uses: list[Use],
    weights: _Weights,
) -> Node:
    in_block = tie is not None and isinstance(values[0], ir.BlockArgument)
    weight = weights.of_block(values[0].owner if in_block else op.block)
    given = layout_of(values[0]) if values else None
    return Node(number, op, tie, values, tuple(uses), weight, given)


def _use(op: Any, number: int, weights: _Weights) -> Use:
    value = op.operands[number]
    return Use(value, op, number, weights.of_use(value, op), bytes_of(element_of(value)))


def _takes_any(op: Any, number: int) -> bool:
    """Return whether an operation takes an operand in any layout."""
    return bool(op.name in _OF_ANY or (op.name == tiles.TAKE and number == 0))


def _recomputed(operations: list[Any]) -> dict[Any, int]:
    """Return the tiles that are computed again in each layout, with how many operations that is.

    They are sources, and a few cheap operations on them. What the program has placed is not among
    them.
    """
    found: dict[Any, int] = {}
    for op in operations:
        if not list(op.results) or not is_register_tile(op.results[0]) or layout_of(op.results[0]):
            continue
        if is_source(op):
            found[op.results[0]] = int(op.name != CONSTANT)
            continue
        is_cheap = is_pointwise(op) and not op.name.startswith(EXPENSIVE)
        if not is_cheap and op.name not in (tiles.BROADCAST, tiles.TRANSPOSE):
            continue
        inputs = [v for v in op.operands if is_tile(v)]
        count = int(is_cheap) + sum(found.get(v, MOST_RECOMPUTED) for v in inputs)
        if count <= MOST_RECOMPUTED and all(v in found for v in inputs):
            found[op.results[0]] = count
    return found


class _Weights:
    """How often each block runs, as far as loops tell."""

    def __init__(self) -> None:
        self._of_block: dict[Any, int] = {}

    def of_block(self, block: Any) -> int:
        """Return how often a block runs."""
        if block not in self._of_block:
            parent = block.owner.operation
            outer = 1 if parent.name == "gpu.launch" else self.of_block(parent.block)
            self._of_block[block] = outer * _trips(parent)
        return self._of_block[block]

    def of_use(self, value: Any, user: Any) -> int:
        """Return how often a conversion for a use runs: outside of loops that only use the tile."""
        return min(self.of_block(block_of(value)), self.of_block(user.block))


def _trips(parent: Any) -> int:
    """Return how often an operation runs its regions."""
    if parent.name not in _LOOPS:
        return 1
    bounds = map(_number, list(parent.operands)[:3]) if parent.name == "scf.for" else ()
    match list(bounds):
        case [int(lower), int(upper), int(step)]:
            return max(1, (upper - lower) // max(1, step))
    return _UNKNOWN_TRIPS


def _number(value: Any) -> int | None:
    if isinstance(value, ir.BlockArgument) or value.owner.name != CONSTANT:
        return None
    return int(value.owner.attributes["value"].value)


def block_of(value: Any) -> Any:
    """Return the block that defines a value."""
    return value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block
