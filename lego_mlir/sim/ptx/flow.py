"""Control flow of a kernel: basic blocks, and the order in which divergent lanes run them.

Divergent lanes reconverge only if those behind run first. The order below says which are behind: of
several groups of lanes, the one whose basic block comes first in the order runs. Every basic block
of a loop precedes what follows the loop, and otherwise a basic block precedes its successors. So
the lanes of an `if` reconverge at its end and those of a loop at its exit, wherever the compiler
placed the basic blocks in the text.

That order is a weak topological order: strongly connected components in topological order, each
component's entry first and the rest of it ordered the same way without the edges back to that
entry. Source: F. Bourdoncle, Efficient chaotic iteration strategies with widenings, 1993.
"""

from __future__ import annotations

from collections.abc import Sequence

Edges = Sequence[Sequence[int]]


def weak_topological_order(successors: Edges, start: int = 0) -> list[int]:
    """Return the nodes reachable from a node in a weak topological order.

    Args:
        successors: for each node the nodes it goes to.
        start: the first node.
    """
    return _ordered([start], successors, set(range(len(successors))))


def _ordered(entries: Sequence[int], successors: Edges, among: set[int]) -> list[int]:
    """Return the nodes that the entries reach inside `among`, in a weak topological order."""
    order: list[int] = []
    for head, *rest in components(entries, successors, among):
        order.append(head)
        if rest:
            order += _ordered(successors[head], successors, set(rest))
    return order


def components(entries: Sequence[int], successors: Edges, among: set[int]) -> list[list[int]]:
    """Return the strongly connected components reachable from the entries, topologically sorted.

    The first node of each is the one reached first. Tarjan's algorithm, without recursion: an
    item of `work` is a node and how many of its successors are done.
    """
    found: list[list[int]] = []
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    stacked: set[int] = set()
    work: list[tuple[int, int]] = []
    for entry in entries:
        if entry in among and entry not in index:
            work.append((entry, 0))
        while work:
            node, done = work.pop()
            targets = [n for n in successors[node] if n in among]
            if done == 0:
                index[node] = low[node] = len(index)
                stack.append(node)
                stacked.add(node)
            else:
                low[node] = min(low[node], low[targets[done - 1]])
            for at in range(done, len(targets)):
                target = targets[at]
                if target not in index:
                    work += [(node, at + 1), (target, 0)]
                    break
                if target in stacked:
                    low[node] = min(low[node], index[target])
            else:
                if low[node] == index[node]:
                    cut = stack.index(node)
                    found.append(stack[cut:])
                    stacked.difference_update(stack[cut:])
                    del stack[cut:]
    return found[::-1]
