"""The heuristic of kernels that add up columns, beside what they compute of rows or alone.

All numbers were measured on an H200 (bench/results/rows_sweep.jsonl). Persistent CTAs, or clusters,
have rows in registers, and add up their columns there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from lego_mlir.hardware.limits import (
    HOPPER_SMS,
    MAX_ACCESS_BYTES,
    MAX_CLUSTER_CTAS,
    WARP_THREADS,
)
from lego_mlir.kernels.rows.config import RowsConfig, threads_of
from lego_mlir.kernels.rows.heuristics.streams import choose_stream
from lego_mlir.kernels.rows.problem import RowsProblem

_WARPS = 4
"""Warps of a CTA that only adds up columns."""

_CTAS, _COLUMN_CTAS = 264, 2112
"""CTAs that add up the same columns, and all that only add up columns: the most there are, unless
the table says how many."""


class _Loop(NamedTuple):
    """How a kernel adds up columns.

    Attributes:
        longest: bytes of the longest row that it is for.
        held: bytes of a row that a thread has; of longer rows the CTAs of a cluster have parts.
        warps: of a CTA.
        ctas: CTAs, or clusters.
        ahead: iterations that are loaded ahead.
        together: iterations whose statistics take one round trip.
    """

    longest: int
    held: int
    warps: int
    ctas: int
    ahead: int = 1
    together: int = 1


_LONG = _Loop(65536, 64, 8, 128), _Loop(131072, 64, 8, 64), _Loop(262144, 64, 8, 32)
_SUMS = {
    (1, 2): (
        _Loop(512, 32, 4, 528), _Loop(1024, 16, 8, 264, 2, 2), _Loop(2048, 16, 8, 264, 3),
        _Loop(4096, 16, 8, 264, 2, 2), _Loop(16384, 32, 16, 132), *_LONG,
    ),
    (1, 4): (
        _Loop(1024, 32, 4, 528), _Loop(16384, 32, 16, 132), _Loop(32768, 64, 8, 132), *_LONG,
    ),
    (2, 2): (
        _Loop(2048, 16, 16, 132, 2, 2), _Loop(8192, 32, 8, 132, 2, 2), _Loop(16384, 64, 8, 132),
        *_LONG,
    ),
    (2, 4): (
        _Loop(4096, 32, 4, 528), _Loop(16384, 32, 16, 132, 2), _Loop(32768, 64, 8, 132), *_LONG,
    ),
}  # fmt: skip
"""By how many outputs are sums of columns, and the bytes of an element."""

_HELD_MASKED = 32
"""Bytes of a row that a thread has at most where there are masks and two sums of the columns of
short elements: more take all registers."""

_ODD_BYTES, _ODD_FILLED = 24576, 7 / 8
"""Rows of which no vector is aligned have such masks where they are longer, or fill more of their
threads' registers: others are faster with more of a row in a thread."""


def choose_sums(problem: RowsProblem, *, clusters: bool) -> RowsConfig | None:
    """Return the config of a kernel that adds up columns beside what it computes of rows.

    Args:
        problem: the kernel.
        clusters: whether the target has clusters of CTAs.

    Returns:
        `None` if rows are too long to be held: then columns are added up by a kernel of its own.
    """
    size = problem.element_bytes
    row = problem.longest * size
    kind = min(2, len(problem.column_sums)), min(4, max(2, size))
    stream = choose_stream(problem) if clusters else None
    if stream is not None:
        return stream
    found = next((loop for loop in _SUMS[kind] if row <= loop.longest), None)
    if found and kind == (2, 2) and found.held > _HELD_MASKED and _is_masked(problem, found, row):
        found = found._replace(held=_HELD_MASKED, ctas=found.ctas * _HELD_MASKED // found.held)
    all_threads = found.warps * WARP_THREADS if found else 0
    threads = threads_of(row, found.held) if found else 0
    parts = MAX_CLUSTER_CTAS if clusters else 1
    if found is None or threads > parts * all_threads:
        return None
    most = 1 << (problem.many_rows - 1).bit_length()
    rows, cluster = min(max(1, all_threads // threads), most), max(1, threads // all_threads)
    return RowsConfig(
        rows,
        found.warps,
        cluster=cluster,
        ctas=min(found.ctas, -(-problem.many_rows // rows)),
        ahead=found.ahead,
        together=found.together,
        ctas_per_sm=-(-found.ctas // HOPPER_SMS) if problem.has_masks and cluster == 1 else 1,
        reason=f"{threads} threads a row",
    )


def _is_masked(problem: RowsProblem, loop: _Loop, row: int) -> bool:
    """Return whether rows of so many bytes have masks that take registers, in a loop."""
    if problem.has_masks:
        return True
    is_odd = problem.vector * problem.element_bytes < MAX_ACCESS_BYTES
    filled = row / (threads_of(row, loop.held) * loop.held)
    return is_odd and (row > _ODD_BYTES or filled > _ODD_FILLED)


def choose_for_columns(problem: RowsProblem) -> RowsConfig:
    """Return the config of a kernel that only adds up columns: a CTA has some of them.

    The more columns there are, the fewer CTAs have the same ones: each stores its sums, and another
    kernel reads them.
    """
    config = RowsConfig(4, _WARPS, 4, problem.vector)
    most = max(1, _COLUMN_CTAS // -(-problem.longest // config.columns))
    return replace(config, ctas=min(most, count_ctas(problem, config.rows)))


def count_ctas(problem: RowsProblem, rows: int) -> int:
    """Return how many CTAs add up the same columns, each of which has so many rows at a time."""
    return min(_CTAS, -(-problem.many_rows // rows))
