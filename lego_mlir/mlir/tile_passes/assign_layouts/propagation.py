"""Which layouts each operation could have: those of anchors, spread along definitions and uses."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.mlir.tile_passes.assign_layouts.graph import Graph, Node
from lego_mlir.mlir.tile_passes.assign_layouts.keys import Key


@dataclass
class Candidates:
    """The keys that nodes could have.

    Attributes:
        graph: the nodes.
        labels: for each anchor the keys that follow from it.
    """

    graph: Graph
    labels: list[dict[Node, Key]] = field(default_factory=list)

    def add(self, node: Node, key: Key) -> None:
        """Spread a key of a node over the graph, unless a label already gives the node this key."""
        if all(label.get(node) != key for label in self.labels) and node.accepts(key):
            self.labels.append(spread(self.graph, node, key))

    def add_together(self, keys: Mapping[Node, Key]) -> None:
        """Spread the keys of several nodes as one label, for nodes that should change together."""
        accepted = {node: key for node, key in keys.items() if node.accepts(key)}
        if len(accepted) < 2:
            return
        label = dict(accepted)
        for node, key in accepted.items():
            for other, its_key in spread(self.graph, node, key).items():
                label.setdefault(other, its_key)
        self.labels.append(label)

    def adopt(self, node: Node, shape: tuple[int, ...]) -> None:
        """Give a node that no anchor reaches the keys of nodes with tiles of the same shape.

        So a mask that is reduced gets the layout of the tile that it belongs to.
        """
        for label in self.labels:
            held = (key for key in label.values() if isinstance(key, DistributedLayout))
            key = next((key for key in held if key.shape == shape), None)
            if key is not None and node not in label and node.suits(key):
                for other, its_key in spread(self.graph, node, key).items():
                    label.setdefault(other, its_key)

    def of(self, node: Node) -> Iterator[Key]:
        """Yield the different keys of a node, in the order of the labels."""
        yield from dict.fromkeys(label[node] for label in self.labels if node in label)

    def missing(self) -> Iterable[Node]:
        """Return the nodes without any key."""
        return [n for n in self.graph.nodes if not any(n in label for label in self.labels)]


def spread(graph: Graph, node: Node, key: Key) -> dict[Node, Key]:
    """Return the keys of all nodes that need no conversion if a node has a key.

    The nearest nodes come first. Where two ways lead to different keys, the shorter one counts, and
    a conversion will be needed between them. Keys that the program gives are not passed by.
    """
    found = {node: key}
    queue = deque([node])
    while queue:
        at = queue.popleft()
        for other, layout_key in _neighbours(graph, at, found[at]):
            if other not in found and other.accepts(layout_key):
                found[other] = layout_key
                queue.append(other)
    return found


def _neighbours(graph: Graph, node: Node, key: Key) -> Iterator[tuple[Node, Key]]:
    """Yield the nodes that define what a node uses, and use what it defines, with their keys."""
    for use in node.uses:
        definer = graph.definer.get(use.value)
        if definer is not None:
            other = definer.key_by_value(node.use_layout(use, key))
            if other is not None:
                yield definer, other
    if not node.values:
        return
    layout = node.value_layout(key)
    for value in node.values:
        for user, use in graph.users.get(value, ()):
            other = user.key_by_use(use, layout)
            if other is not None:
                yield user, other
