"""Minimum cuts: the cheapest way to divide nodes in two."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import TypeAlias

NodeName: TypeAlias = Hashable

SOURCE, SINK = "source", "sink"


class Cuts:
    """A directed graph with capacities, between `SOURCE` and `SINK`.

    The flow is increased along shortest paths (J. Edmonds, R. Karp, "Theoretical Improvements in
    Algorithmic Efficiency for Network Flow Problems", J. ACM 1972).
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
        while SINK in (came := self._reached()):
            path: list[NodeName] = [SINK]
            while path[-1] != SOURCE:
                path.append(came[path[-1]])
            steps = list(zip(path[1:], path, strict=False))
            flow = min(self._left[a][b] for a, b in steps)
            for a, b in steps:
                self._left[a][b] -= flow
                self._left[b][a] += flow
        return self._reaching()

    def _reached(self) -> dict[NodeName, NodeName]:
        """Return the nodes to which more can flow, each with the node that it flows from."""
        came: dict[NodeName, NodeName] = {SOURCE: SOURCE}
        queue: deque[NodeName] = deque([SOURCE])
        while queue and SINK not in came:
            at = queue.popleft()
            for head, capacity in self._left[at].items():
                if capacity > 0 and head not in came:
                    came[head] = at
                    queue.append(head)
        return came

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
