"""The heuristic: how many rows a CTA holds, with how many warps, and which rows come in pieces.

All numbers were measured on an H200 (bench/results/rows_sweep.jsonl). A row wants few threads, so
that reductions are short and many CTAs overlap; each of them with several vectors under way. From
8 KiB on it comes in pieces, so that what is computed of it needs few registers at a time. What only
reads a row wants fewer threads still. A row that the registers of a CTA do not hold is divided
among the CTAs of a cluster, or read again.
"""

from __future__ import annotations

from lego_mlir.hardware.limits import MAX_ACCESS_BYTES, WARP_THREADS
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.problem import RowsProblem

_WARPS, _MANY_WARPS, _MOST_WARPS = 4, 8, 16

_SHORT_BYTES, _MIDDLE_BYTES = 4096, 8192
"""Rows up to these sizes are whole; the first ones with two vectors a thread, then with four."""

_READ_WHOLE, _READ_HELD = 1024, 8192
"""The longest rows that are only read once, and yet held in registers: whole, and in pieces."""

_HELD_ELEMENTS = 64
"""Elements of a thread, of all inputs together, before a row is read again."""

_BUSY_THREADS = 132 * 1024
"""Threads that keep all multiprocessors busy: below, rows are divided among more of them."""

_SUM_TABLE = {
    1: ((512, 16, 4, 528), (4096, 32, 8, 132), (8192, 16, 16, 132)),
    2: ((1024, 16, 4, 396), (4096, 16, 8, 264), (8192, 16, 16, 132)),
}
"""By how many outputs are sums of columns: the longest row of 16 bits, the elements of a thread,
warps, and CTAs."""

_GROUP_VECTOR = 8
"""Elements of a thread in a piece of a row that has groups."""


def choose(problem: RowsProblem) -> RowsConfig:
    """Return the config of a kernel on rows."""
    if problem.is_elementwise:
        return _choose_tile(problem)
    if problem.column_sums:
        return _choose_sums(problem)
    if problem.finish is None:
        return _choose_read(problem)
    n, size = problem.columns, _size(problem)
    if n * size > _MIDDLE_BYTES:
        return _choose_long(problem)
    is_short = n * size <= _SHORT_BYTES
    threads = _threads(n, (2 if is_short else 4) * problem.vector)
    return _whole(problem, threads, _WARPS if is_short else _MANY_WARPS)


def _choose_long(problem: RowsProblem) -> RowsConfig:
    """Return the config of long rows: in pieces, or divided among the CTAs of a cluster."""
    inputs, n = len(problem.loaded_elementwise), problem.columns
    for warps in (_MANY_WARPS, _MOST_WARPS) if _size(problem) < 4 else (_MOST_WARPS,):
        # With one CTA on a multiprocessor, a second reduction leaves the memory idle.
        is_alone = warps == _MOST_WARPS and _size(problem) < 4 and len(problem.stats) > 1
        if n <= _held(warps, inputs) and not is_alone:
            return _pieces(problem, warps, 2, "pieces need few registers", held=True)
    for cluster, held in ((4, 32), (8, 64), (16, 64)):
        if n * inputs <= cluster * _MANY_WARPS * WARP_THREADS * held:
            return RowsConfig(1, _MANY_WARPS, cluster=cluster, reason="CTAs divide a row")
    return _pieces(problem, _MOST_WARPS, 4, "a row does not fit in registers")


def _choose_read(problem: RowsProblem) -> RowsConfig:
    """Return the config of a kernel that only reads rows."""
    n = problem.columns
    if n > _READ_HELD:
        return _pieces(problem, _MANY_WARPS, 2, "a row that is only read is not held")
    if n > _READ_WHOLE:
        warps = _threads(n, 32) // WARP_THREADS
        return _pieces(problem, warps, 1, "pieces need few registers", held=True)
    is_short = n * _size(problem) <= _READ_WHOLE
    held = 64 if _size(problem) < 4 and not is_short else 32
    return _whole(problem, _threads(n, held), _WARPS if is_short else _WARPS // 2)


def _held(warps: int, inputs: int) -> int:
    """Return the longest row that a CTA can hold."""
    return warps * WARP_THREADS * _HELD_ELEMENTS // inputs


def _size(problem: RowsProblem) -> int:
    """Return the bytes of the widest elements."""
    return max(a.bytes for a in problem.elementwise)


def _threads(columns: int, held: int) -> int:
    """Return how many threads have a row, each of them so many elements."""
    return 1 << (-(-columns // held) - 1).bit_length()


def _whole(problem: RowsProblem, threads: int, warps: int) -> RowsConfig:
    """Return the config of whole rows, each of which so many threads have."""
    while (
        threads * problem.many_rows < _BUSY_THREADS and threads * problem.vector < problem.columns
    ):
        threads *= 2
    threads = min(threads, _MANY_WARPS * WARP_THREADS)
    warps = max(warps, threads // WARP_THREADS)
    rows = min(warps * WARP_THREADS // threads, 1 << (problem.many_rows - 1).bit_length())
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
    wide = _size(problem) // 2
    table = _SUM_TABLE[min(2, len(problem.column_sums))]
    found = next((row[1:] for row in table if problem.columns * wide <= row[0]), None)
    if found is None:
        return _choose_long(problem)
    held, warps, ctas = found
    threads = min(_threads(problem.columns, max(1, held // wide)), warps * WARP_THREADS)
    rows = min(warps * WARP_THREADS // threads, 1 << (problem.many_rows - 1).bit_length())
    ctas = min(ctas, -(-problem.many_rows // rows))
    # Two sums, and what they are made of, leave no room in long rows.
    is_ahead = problem.columns * wide < _MOST_WARPS * 512 or len(problem.column_sums) < 2
    reason = f"{threads} threads a row"
    return RowsConfig(rows, warps, ctas=ctas, ahead=int(is_ahead), reason=reason)


def choose_for_columns(problem: RowsProblem) -> RowsConfig:
    """Return the config of a kernel that only adds up columns: a CTA has some of them."""
    return RowsConfig(4, _WARPS, 4, problem.vector, ctas=count_ctas(problem, 4))


def choose_for_groups(rows: int, columns: int) -> RowsConfig:
    """Return the config of a kernel with groups of columns, whose tiles are powers of two."""
    threads = WARP_THREADS
    while threads * 32 < columns and threads < _MOST_WARPS * WARP_THREADS:
        threads *= 2
    warps = max(_WARPS, threads // WARP_THREADS)
    if columns & (columns - 1) == 0 and columns <= threads * _HELD_ELEMENTS:
        several = min(warps * WARP_THREADS // threads, 1 << (rows - 1).bit_length())
        return RowsConfig(several, warps, reason=f"{threads} threads a row")
    is_held = columns <= _held(warps, 1)
    reason = "pieces are powers of two"
    return RowsConfig(1, warps, 1, _GROUP_VECTOR, held=is_held, reason=reason)


_CTAS = 264
"""CTAs that add up columns, unless the table says how many."""


def count_ctas(problem: RowsProblem, rows: int) -> int:
    """Return how many CTAs add up columns, each of which has so many rows at a time."""
    return min(_CTAS, -(-problem.many_rows // rows))
