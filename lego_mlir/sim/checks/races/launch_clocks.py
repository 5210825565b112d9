"""What happened before across the clusters of a launch: vector clocks of other clusters.

Within a cluster, a vector clock has a column for each thread (`vector_clocks`). Only flags in
global memory order the accesses of different clusters, so few clocks know anything of other
clusters. What a clock knows of them is a *view*: for each cluster, the times up to which the
accesses of its agents happened before. Views are immutable and have numbers; view 0 knows nothing.

The clusters of a launch run in waves, one after the other. Views outlive the waves.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lego_mlir.sim.ptx.types import Array

View = Mapping[int, Array]
"""By the number of a cluster, the time of each of its columns."""


class LaunchClocks:
    """The views of a launch, by number."""

    def __init__(self) -> None:
        self.views: list[View] = [{}]
        self._joins: dict[tuple[int, int], int] = {}

    def join(self, a: int, b: int) -> int:
        """Return the view that knows what either of two views knows."""
        if a == b or 0 in (a, b):
            return a or b
        key = (a, b) if a < b else (b, a)
        if key not in self._joins:
            self._joins[key] = self._add(self.views[a], self.views[b])
        return self._joins[key]

    def extended(self, view: int, cluster: int, times: Array) -> int:
        """Return the view that also knows the times of a cluster."""
        return self._add(self.views[view], {cluster: times})

    def joins(self, a: Array, b: Array) -> Array:
        """Return the join of each pair of views."""
        if not b.any():
            return a
        size = len(self.views)
        pairs, which = np.unique(a.astype(np.int64) * size + b, return_inverse=True)
        found = [self.join(*divmod(pair, size)) for pair in pairs.tolist()]
        return np.array(found)[which]

    def joined_groups(self, views: Array, starts: Array) -> Array:
        """Return the join of each group of views; groups are adjacent and begin at `starts`."""
        if not views.any():
            return np.zeros(len(starts), np.int64)
        found = []
        for group in np.split(views, starts[1:]):
            joined = 0
            for view in np.unique(group).tolist():
                joined = self.join(joined, view)
            found.append(joined)
        return np.array(found)

    def happens_before(self, views: Array, clusters: Array, columns: Array, times: Array) -> Array:
        """Return whether each view knows the access of a cluster's column at a time."""
        result = np.zeros(len(views), np.bool_)
        for view in np.unique(views).tolist():
            for cluster, known in self.views[view].items():
                at = np.flatnonzero((views == view) & (clusters == cluster))
                if len(at):
                    inside = np.minimum(columns[at], len(known) - 1)
                    covered = (columns[at] < len(known)) & (times[at] <= known[inside])
                    result[at] = covered
        return result

    def _add(self, a: View, b: View) -> int:
        found = dict(a)
        for cluster, times in b.items():
            found[cluster] = _latest(found[cluster], times) if cluster in found else times
        self.views.append(found)
        return len(self.views) - 1


def _latest(a: Array, b: Array) -> Array:
    """Return the later time of each column; columns that one lacks are at time 0."""
    if len(a) < len(b):
        a, b = b, a
    latest = a.copy()
    np.maximum(a[: len(b)], b, out=latest[: len(b)])
    return latest
