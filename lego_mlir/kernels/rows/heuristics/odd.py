"""The heuristic of long rows that begin anywhere in a vector, whose pieces begin with that vector.

All numbers were measured on an H200 (bench/results/rows_odd.jsonl, rows_shifted.jsonl, and
rows_read.jsonl). A thread has one vector of a piece: so those with an end of the row have only that
one, whose elements are accessed one by one. A row that is only read has no such stores.
"""

from __future__ import annotations

from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.heuristics.streams import choose_stream
from lego_mlir.kernels.rows.problem import RowsProblem

_HELD = (4, 64), (8, 80)
"""The warps of a CTA that holds a row, and the most elements of a thread."""

_TILE_WARPS, _READ_WARPS, _MOST_WARPS = 4, 8, 16

_READ_PIECE, _READ_ALONE = {False: 1, True: 4}, {False: 53248, True: 1 << 31}
"""Vectors of a thread in a piece of a row that is only read, and the most columns of one that a CTA
reads alone, by whether elements have 4 bytes: two are a finer division of the last wave of CTAs."""


def choose_in_words(problem: RowsProblem, *, clusters: bool) -> RowsConfig:
    """Return the config of a kernel whose problem `is_in_words`.

    Args:
        problem: the kernel.
        clusters: whether the target has clusters of CTAs.
    """
    vector, reason = problem.vector, "pieces begin with aligned vectors"
    if problem.is_elementwise:
        return RowsConfig(1, _TILE_WARPS, 1, vector, reason=reason)
    if problem.finish is None:
        is_wide = problem.element_bytes >= 4
        cluster = 2 if clusters and problem.longest > _READ_ALONE[is_wide] else 1
        piece = _READ_PIECE[is_wide]
        return RowsConfig(1, _READ_WARPS, piece, vector, cluster=cluster, reason=reason)
    if problem.loaded_by_column:
        stream = choose_stream(problem) if clusters else None
        return stream or RowsConfig(1, _MOST_WARPS, 1, vector, reason=reason)
    for warps, most in _HELD if len(problem.loaded_elementwise) == 1 else _HELD[:1]:
        if problem.longest_in_words <= warps * WARP_THREADS * most:
            return RowsConfig(1, warps, 1, vector, held=True, reason=reason)
    stream = choose_stream(problem) if clusters else None
    return stream or RowsConfig(1, _MOST_WARPS, 1, vector, reason=reason)
