"""The heuristic: how many rows a CTA holds, with how many warps, and which rows come in pieces."""

from __future__ import annotations

from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.problem import RowsProblem

_HELD = 32
"""Elements of a row that a thread holds, for each argument that it loads."""

_MOST_HELD = 64
"""At most, before a row is read in pieces."""

_WARPS, _MOST_WARPS = 4, 16

_GROUP_VECTOR = 8
"""Elements of a thread in a piece of a row that has groups."""

_CTAS = 264
"""CTAs that add up columns."""


def choose(problem: RowsProblem) -> RowsConfig:
    """Return the config of a kernel on rows."""
    if problem.is_elementwise:
        return _choose_tile(problem)
    n = problem.columns
    if _HELD * WARP_THREADS * _MOST_WARPS < n <= _MOST_HELD * WARP_THREADS * _MOST_WARPS:
        reason = "pieces need fewer registers than a whole row"
        return RowsConfig(1, _MOST_WARPS, 1, problem.vector, held=True, reason=reason)
    if n > _MOST_HELD * WARP_THREADS * _MOST_WARPS:
        return RowsConfig(
            1, _MOST_WARPS, 4, problem.vector, reason="a row does not fit in registers"
        )
    threads = 1
    while threads * _HELD < n:
        threads *= 2
    warps = min(_MOST_WARPS, max(_WARPS, threads // WARP_THREADS))
    rows = max(1, warps * WARP_THREADS // threads)
    rows = min(rows, 1 << (problem.rows - 1).bit_length())
    ctas = count_ctas(problem, rows) if problem.column_sums else 0
    return RowsConfig(rows, warps, ctas=ctas, reason=f"{threads} threads a row")


def choose_for_columns(problem: RowsProblem) -> RowsConfig:
    """Return the config of a kernel that only adds up columns: a CTA has some of them."""
    return RowsConfig(4, 4, 4, problem.vector, ctas=count_ctas(problem, 4))


def choose_for_groups(rows: int, columns: int) -> RowsConfig:
    """Return the config of a kernel with groups of columns, whose tiles are powers of two."""
    threads = WARP_THREADS
    while threads * _HELD < columns and threads < _MOST_WARPS * WARP_THREADS:
        threads *= 2
    if columns & (columns - 1) == 0 and columns <= threads * _MOST_HELD:
        warps = max(_WARPS, threads // WARP_THREADS)
        several = min(warps * WARP_THREADS // threads, 1 << (rows - 1).bit_length())
        return RowsConfig(several, warps, reason=f"{threads} threads a row")
    warps = max(_WARPS, threads // WARP_THREADS)
    is_held = columns <= warps * WARP_THREADS * _MOST_HELD
    reason = "pieces are powers of two"
    return RowsConfig(1, warps, 1, _GROUP_VECTOR, held=is_held, reason=reason)


def count_ctas(problem: RowsProblem, rows: int) -> int:
    """Return how many CTAs add up columns, each of which has so many rows at a time."""
    return min(_CTAS, -(-problem.rows // rows))


def _choose_tile(problem: RowsProblem) -> RowsConfig:
    """Return the config of a kernel that computes each element by itself."""
    piece = max(1, 8 // len(problem.elementwise))
    elements = piece * problem.vector * _WARPS * WARP_THREADS
    rows = max(1, elements // max(4, 1 << (problem.columns - 1).bit_length()))
    return RowsConfig(rows, _WARPS, piece, problem.vector, reason="each element by itself")
