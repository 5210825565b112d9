"""Minimum cuts: the cheapest way to divide nodes in two."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import TypeAlias

NodeName: TypeAlias = Hashable

SOURCE, SINK = "source", "sink"


class Cuts:
    """A directed graph with capacities, between `SOURCE` and `SINK`.

    The flow is increased along shortest paths, all of one length before longer ones (E. A. Dinic,
    "Algorithm for Solution of a Problem of Maximum Flow in Networks with Power Estimation", Soviet
    Math. Doklady 1970).
    """

    def __init__(self) -> None:
        self._left: dict[NodeName, dict[NodeName, int]] = {SOURCE: {}, SINK: {}}

    def add(self, tail: NodeName, head: NodeName, capacity: int) -> None:
        """Add what it costs, if anything, that `tail` is on the source's side and `head` is not."""
        if capacity > 0:
            left, back = self._left.setdefault(tail, {}), self._left.setdefault(head, {})
            left[head] = left.get(head, 0) + capacity
            back.setdefault(tail, 0)

    def sink_side(self) -> set[NodeName]:
        """Return the nodes on the sink's side of a minimum cut: the fewest of all minimum cuts."""
        while SINK in (onward := self._onward()):
            while path := self._path(onward):
                flow = min(self._left[a][b] for a, b in path)
                for a, b in path:
                    self._left[a][b] -= flow
                    self._left[b][a] += flow
        return self._reaching()

    def _onward(self) -> dict[NodeName, list[NodeName]]:
        """Return the nodes to which more can flow, with the next ones along the shortest paths."""
        distance: dict[NodeName, int] = {SOURCE: 0}
        onward: dict[NodeName, list[NodeName]] = {}
        queue: deque[NodeName] = deque([SOURCE])
        while queue:
            at = queue.popleft()
            further, heads = distance[at] + 1, onward.setdefault(at, [])
            for head, capacity in self._left[at].items():
                if capacity > 0:
                    if head not in distance:
                        distance[head] = further
                        queue.append(head)
                    if distance[head] == further:
                        heads.append(head)
        return onward

    def _path(self, onward: dict[NodeName, list[NodeName]]) -> list[tuple[NodeName, NodeName]]:
        """Return the edges of a path to the sink, by `onward`; none if there is no such path.

        Args:
            onward: where to go on from each node. What leads nowhere is taken out.
        """
        path: list[tuple[NodeName, NodeName]] = []
        at: NodeName = SOURCE
        while at != SINK:
            heads = onward[at]
            while heads and self._left[at][heads[-1]] == 0:
                heads.pop()
            if heads:
                path.append((at, heads[-1]))
                at = heads[-1]
            elif path:
                at, _ = path.pop()
                onward[at].pop()
            else:
                break
        return path

    def _reaching(self) -> set[NodeName]:
        """Return the nodes from which more can flow to the sink."""
        found: set[NodeName] = {SINK}
        queue: deque[NodeName] = deque([SINK])
        while queue:
            at = queue.popleft()
            for tail in self._left[at]:  # edges are known at both ends
                if tail not in found and self._left[tail][at] > 0:
                    found.add(tail)
                    queue.append(tail)
        return found
