"""The heuristic: how many rows a CTA holds, with how many warps, and which rows come in pieces.

All numbers were measured on an H200. A row wants few threads, so that reductions are short and many
CTAs overlap; each of them with several vectors under way. From 8 KiB on it comes in pieces, so that
what is computed of it needs few registers at a time. What only reads a row wants fewer threads
still, and what has too many elements for the registers reads it again.
"""

from __future__ import annotations

from lego_mlir.hardware.limits import MAX_ACCESS_BYTES, WARP_THREADS
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.problem import RowsProblem

_WARPS, _SMALL_WARPS, _MOST_WARPS = 4, 2, 16

_SHORT_BYTES, _MIDDLE_BYTES = 2048, 8192
"""Rows up to these sizes are whole; the first ones with two vectors a thread, then with four."""

_READ_ELEMENTS = 64
"""Elements of a thread that only reads a row."""

_READ_WHOLE, _READ_HELD = 1024, 8192
"""The longest rows that are only read once, and yet held in registers: whole, and in pieces."""

_HELD_REGISTERS = 64
"""Elements of a thread, of all inputs together, before a row is read again."""

_BUSY_THREADS = 132 * 1024
"""Threads that keep all multiprocessors busy: below, rows are divided among more of them."""

_SUM_REGISTERS = 144
"""Registers of tiles of a thread that adds up columns, with 8 warps; half of them have half."""

_CTAS = 264
"""CTAs that add up columns."""

_GROUP_VECTOR = 8
"""Elements of a thread in a piece of a row that has groups."""


def choose(problem: RowsProblem) -> RowsConfig:
    """Return the config of a kernel on rows."""
    if problem.is_elementwise:
        return _choose_tile(problem)
    if problem.column_sums:
        return _choose_sums(problem)
    n, size = problem.columns, max(a.bytes for a in problem.elementwise)
    inputs = len(problem.loaded_elementwise)
    is_read = problem.finish is None
    if is_read:
        held = _READ_ELEMENTS // inputs
        if n > _READ_HELD:
            return _pieces(problem, 8, 2, "a row that is only read is not held")
        if n > _READ_WHOLE:
            warps = n * 2 // (held * WARP_THREADS)
            return _pieces(problem, warps, 1, "pieces need few registers", held=True)
    elif n * size <= _SHORT_BYTES:
        held = 2 * problem.vector
    elif n * size <= _MIDDLE_BYTES:
        held = 4 * problem.vector
    else:
        warps = 8 if size < 4 else _MOST_WARPS
        warps = warps if n <= warps * WARP_THREADS * _HELD_REGISTERS // inputs else _MOST_WARPS
        if n <= warps * WARP_THREADS * _HELD_REGISTERS // inputs:
            return _pieces(problem, warps, 2, "pieces need few registers", held=True)
        return _pieces(problem, _MOST_WARPS, 4, "a row does not fit in registers")
    threads = 1 << (-(-n // held) - 1).bit_length()
    while threads * problem.rows < _BUSY_THREADS and threads * problem.vector < n:
        threads *= 2
    return _whole(problem, threads, _SMALL_WARPS if is_read else _WARPS)


def _whole(problem: RowsProblem, threads: int, warps: int) -> RowsConfig:
    """Return the config of whole rows, each of which so many threads have."""
    if threads > _MOST_WARPS * WARP_THREADS:
        threads = _MOST_WARPS * WARP_THREADS
    warps = max(warps, threads // WARP_THREADS)
    rows = min(warps * WARP_THREADS // threads, 1 << (problem.rows - 1).bit_length())
    return RowsConfig(rows, warps, reason=f"{threads} threads a row")


def _pieces(
    problem: RowsProblem, warps: int, piece: int, reason: str, *, held: bool = False
) -> RowsConfig:
    """Return the config of rows in pieces, which are no longer than a row."""
    # Where elements are accessed one by one, as many bytes are under way.
    piece *= MAX_ACCESS_BYTES // max(a.bytes for a in problem.elementwise) // problem.vector
    warps = 1 << (warps - 1).bit_length()
    while warps > 1 and warps * WARP_THREADS * problem.vector >= 2 * problem.columns:
        warps //= 2
    while piece > 1 and piece * warps * WARP_THREADS * problem.vector >= 2 * problem.columns:
        piece //= 2
    return RowsConfig(1, warps, piece, problem.vector, held=held, reason=reason)


def _choose_tile(problem: RowsProblem) -> RowsConfig:
    """Return the config of a kernel that computes each element by itself."""
    piece = max(1, 8 // len(problem.elementwise))
    elements = piece * problem.vector * _WARPS * WARP_THREADS
    rows = max(1, elements // max(4, 1 << (problem.columns - 1).bit_length()))
    return RowsConfig(rows, _WARPS, piece, problem.vector, reason="each element by itself")


def _choose_sums(problem: RowsProblem) -> RowsConfig:
    """Return the config of a kernel that adds up columns beside what it computes of rows."""
    size = max(a.bytes for a in problem.elementwise)
    inputs = len(problem.loaded_elementwise)
    each = inputs + len(problem.loaded_by_column) + len(problem.column_sums) + 1
    ahead = inputs * size / 2
    held = 16 if size < 4 else 8
    threads = 1 << (-(-problem.columns // held) - 1).bit_length()
    if threads > _MOST_WARPS * WARP_THREADS:
        return _pieces(problem, _MOST_WARPS, 2, "columns are added up by another kernel", held=True)
    registers = _SUM_REGISTERS if threads < _MOST_WARPS * WARP_THREADS else 120
    chosen = _whole(problem, threads, _WARPS)
    is_ahead = held * (each + ahead) <= registers
    ctas = count_ctas(problem, chosen.rows)
    reason = f"{chosen.reason}, the next rows {'loaded ahead' if is_ahead else 'not ahead'}"
    return RowsConfig(chosen.rows, chosen.warps, ctas=ctas, ahead=is_ahead, reason=reason)


def choose_for_columns(problem: RowsProblem) -> RowsConfig:
    """Return the config of a kernel that only adds up columns: a CTA has some of them."""
    return RowsConfig(4, 4, 4, problem.vector, ctas=count_ctas(problem, 4))


def choose_for_groups(rows: int, columns: int) -> RowsConfig:
    """Return the config of a kernel with groups of columns, whose tiles are powers of two."""
    threads = WARP_THREADS
    while threads * 32 < columns and threads < _MOST_WARPS * WARP_THREADS:
        threads *= 2
    warps = max(_WARPS, threads // WARP_THREADS)
    if columns & (columns - 1) == 0 and columns <= threads * _HELD_REGISTERS:
        several = min(warps * WARP_THREADS // threads, 1 << (rows - 1).bit_length())
        return RowsConfig(several, warps, reason=f"{threads} threads a row")
    is_held = columns <= warps * WARP_THREADS * _HELD_REGISTERS
    reason = "pieces are powers of two"
    return RowsConfig(1, warps, 1, _GROUP_VECTOR, held=is_held, reason=reason)


def count_ctas(problem: RowsProblem, rows: int) -> int:
    """Return how many CTAs add up columns, each of which has so many rows at a time."""
    return min(_CTAS, -(-problem.rows // rows))
