"""The choice of one key for each node: the cheapest sum of what nodes and conversions cost.

An anchor's keys are a label of the nodes that it reaches. In turn each label is offered to all
nodes at once: a minimum cut says which of them to give it, so that whole chains move together. This
is repeated until no label helps, and no node is better off alone (Y. Boykov, O. Veksler, R. Zabih,
"Fast Approximate Energy Minimization via Graph Cuts", PAMI 2001, alpha-expansion). Between two
labels that is the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from lego_mlir.algebra import Layout
from lego_mlir.mlir import dialect
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_passes.assign_layouts.costs import (
    IMPOSSIBLE,
    Costs,
    conversion_clocks,
    copy_clocks,
    wait_clocks,
)
from lego_mlir.mlir.tile_passes.assign_layouts.graph import Node, Use
from lego_mlir.mlir.tile_passes.assign_layouts.keys import DotKey, Key
from lego_mlir.mlir.tile_passes.assign_layouts.min_cut import SINK, SOURCE, Cuts
from lego_mlir.mlir.tile_passes.assign_layouts.propagation import Candidates

Keys: TypeAlias = dict[Node, Key]


def select(candidates: Candidates, costs: Costs) -> Keys:
    """Return a key for each node, of those that its labels give it.

    Args:
        candidates: at least one key for each node; labels that come first are preferred.
        costs: what nodes cost.
    """
    return _Selection(candidates, costs).run()


@dataclass(frozen=True)
class _Edge:
    """An edge: numbers of nodes, and what a pair of their keys costs."""

    source: int
    user: int
    cost: Callable[[int, int], int]


class _Selection:
    """Keys are numbers of a node's candidates here, for they are compared very often."""

    def __init__(self, candidates: Candidates, costs: Costs) -> None:
        self._nodes = candidates.graph.nodes
        self._keys = [list(candidates.of(node)) for node in self._nodes]
        number_of = [{key: k for k, key in enumerate(keys)} for keys in self._keys]
        labels = (
            {node.number: number_of[node.number][key] for node, key in label.items()}
            for label in candidates.labels
        )
        self._labels = [label for label in labels if any(len(self._keys[n]) > 1 for n in label)]
        self._edges = [self._edge(*edge) for edge in candidates.graph.edges()]
        self._edges_of: list[list[_Edge]] = [[] for _ in self._nodes]
        for edge in self._edges:
            for node in {edge.source, edge.user}:
                self._edges_of[node].append(edge)

        @cache
        def cost(node: int, key: int) -> int:
            return costs.of_node(self._nodes[node], self._keys[node][key])

        self._cost = cost

    def run(self) -> Keys:
        """Return the cheapest keys."""
        chosen = [0] * len(self._nodes)
        cost = self._total(chosen)
        improved = True
        while improved:
            improved = False
            for label in self._labels:
                changed = self._expand(chosen, label)
                new = [changed.get(n, key) for n, key in enumerate(chosen)]
                if changed and (less := self._total(new)) < cost:
                    chosen, cost, improved = new, less, True
            if not improved and self._change_one_by_one(chosen):
                cost, improved = self._total(chosen), True
        return {node: self._keys[node.number][chosen[node.number]] for node in self._nodes}

    def _change_one_by_one(self, chosen: list[int]) -> bool:
        """Give each node the cheapest key beside its neighbours', in place; return if any changed.

        A cut may miss such a change where costs are not submodular.
        """
        changed = False
        for n, keys in enumerate(self._keys):
            costs = [self._around(n, key, chosen) for key in range(len(keys))]
            best = min(costs)
            if best < costs[chosen[n]]:
                chosen[n], changed = costs.index(best), True
        return changed

    def _around(self, node: int, key: int, chosen: Sequence[int]) -> int:
        """Return what a node and its edges cost with a key of the node."""

        def of(n: int) -> int:
            return key if n == node else chosen[n]

        edges = sum(e.cost(of(e.source), of(e.user)) for e in self._edges_of[node])
        return self._cost(node, key) + edges

    def _edge(self, source: Node, user: Node, use: Use) -> _Edge:
        a, b = source.number, user.number

        @cache
        def cost(key: int, user_key: int) -> int:
            defined = source.value_layout(self._keys[a][key])
            wanted = user.use_layout(use, self._keys[b][user_key])
            is_loaded = source.op.name == dialect.LOAD
            if is_loaded and isinstance(wanted, Layout):
                clocks = copy_clocks(use)
            elif is_loaded and isinstance(self._keys[b][user_key], DotKey):
                clocks = wait_clocks() + conversion_clocks(defined, wanted, use.element_bytes)
            else:
                clocks = conversion_clocks(defined, wanted, use.element_bytes)
            if clocks and source.op.name == tiles.RESTRICT:
                return IMPOSSIBLE  # it stays directly before the access that it is about
            return min(IMPOSSIBLE, use.weight * clocks)

        return _Edge(a, b, cost)

    def _total(self, chosen: Sequence[int]) -> int:
        nodes = sum(self._cost(node, key) for node, key in enumerate(chosen))
        return nodes + sum(e.cost(chosen[e.source], chosen[e.user]) for e in self._edges)

    def _expand(self, chosen: Sequence[int], label: Mapping[int, int]) -> dict[int, int]:
        """Return the nodes that should change to a label, with their keys of it."""
        offered = {n: key for n, key in label.items() if chosen[n] != key}
        # A node on the source's side keeps its key. What is constant in both cases is left out.
        gains = {n: self._cost(n, key) - self._cost(n, chosen[n]) for n, key in offered.items()}
        cuts = Cuts()
        for edge in self._edges:
            source, user = edge.source, edge.user
            if source not in offered and user not in offered:
                continue
            old, old_user = chosen[source], chosen[user]
            new, new_user = offered.get(source, old), offered.get(user, old_user)
            kept, both = edge.cost(old, old_user), edge.cost(new, new_user)
            if source == user:
                gains[source] += both - kept
                continue
            # E = kept + (taken - kept) x + (both - taken) y + rest (1 - x) y for x, y in 0, 1.
            taken = edge.cost(new, old_user)
            if source in offered:
                gains[source] += taken - kept
            if user in offered:
                gains[user] += both - taken
            if source in offered and user in offered:
                rest = edge.cost(old, new_user) + taken - kept - both
                cuts.add(source, user, rest)
        if all(gain >= 0 for gain in gains.values()):
            return {}
        for node, gain in gains.items():
            cuts.add(SOURCE, node, gain)
            cuts.add(node, SINK, -gain)
        taking = cuts.sink_side()
        return {n: key for n, key in offered.items() if n in taking}
