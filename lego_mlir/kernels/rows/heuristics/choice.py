"""The heuristic: how many rows a CTA holds, with how many warps, and which rows come in pieces.

All numbers were measured on an H200 (bench/results, rows_sweep, _filled and _read.jsonl). A row
wants few threads, so that reductions are short and many CTAs overlap; each of them with several
vectors under way, and no more than it fills. From 8 KiB on it comes in pieces, so that what is
computed of it needs few registers at a time. What only reads a row wants fewer threads still. A row
that the registers of a CTA do not hold is divided among the CTAs of a cluster, or read again.
"""

from __future__ import annotations

from dataclasses import replace

from lego_mlir.hardware.limits import MAX_ACCESS_BYTES, MAX_CLUSTER_CTAS, WARP_THREADS
from lego_mlir.kernels.rows.config import RowsConfig, has_vectors, threads_of
from lego_mlir.kernels.rows.heuristics.column_sums import choose_sums
from lego_mlir.kernels.rows.heuristics.odd import choose_in_words
from lego_mlir.kernels.rows.heuristics.streams import choose_filled, choose_stream
from lego_mlir.kernels.rows.problem import ROW, RowsProblem

_WARPS, _MANY_WARPS, _MOST_WARPS = 4, 8, 16

_SHORTEST_BYTES, _SHORT_BYTES, _MIDDLE_BYTES = 1024, 4096, 8192
"""Rows up to these sizes are whole; short ones with two vectors a thread, then with four. Where few
threads have a row, only the shortest ones have two."""

_SHORT_HELD = 36
"""The most bytes that a thread has of a short row: a little more than two vectors, so that rows a
little longer than a power of two do not have twice as many threads."""

_READ_WHOLE, _READ_BYTES = {False: 1536, True: 1024}, 96
"""The longest rows that are only read once, and yet held in registers as a whole, by whether
elements have 4 bytes; and the most bytes of one that a thread has."""

_READ_HELD = {False: (2, ((4096, 2), (12288, 4))), True: (2, ((4096, 4), (16384, 8)))}
"""The vectors of a thread in a piece of longer rows that are only read, and held, with the warps of
a row by its most columns, by whether elements have 4 bytes: of many rows."""

_READ_AT_ONCE = range(462, 1057)
_READ_AGAIN = {
    False: ((16383, _MANY_WARPS, 2, 1), (53248, _MANY_WARPS, 4, 1), (1 << 31, _MOST_WARPS, 2, 1)),
    True: ((36864, _MANY_WARPS, 4, 1), (1 << 31, _MOST_WARPS, 4, 2)),
}
"""Rows that are only read, and not held: numbers of long ones that CTAs of 4 warps read at once,
4 to 8 a multiprocessor; and by whether elements have 4 bytes the most columns, warps, piece and
`ctas_per_sm`: where it is 1, ptxas gives f32 32 registers, not 40 (rows_read.jsonl)."""

_READ_FEW = 8192
"""The longest row that is only read, and held, of few."""

_HELD_ELEMENTS = 64
"""Elements of a thread, of all inputs together, before a row is read again."""

_FILLED, _FILLED_BY = 10, {False: (3, 11, 14), True: (3, 8, 12)}
"""One in so many columns of pieces may be past the end of a row, or fewer warps are tried: of
threads that have so many vectors of it at least, rather up to 8 warps or those that have the second
number, and at most, by whether elements have 4 bytes. Shorter ones are for no more than 8 warps."""

_HELD_ALONE = 96
"""The same where statistics follow one another, and what belongs to columns them."""

_FEW_WARPS = (
    (_WARPS, 5, 1, {1: 64, 2: 64}),
    (_WARPS, 4, 1, {1: 96, 2: 96}),
    (_MANY_WARPS, 3, 1, {1: 64}),
    (_MANY_WARPS, 1, 1, {1: 96}),
    (_MANY_WARPS, 2, 1, {2: 128}),
    (_MOST_WARPS, 1, 2, {2: 96}),
)
"""Warps of a row, CTAs for which a multiprocessor has registers, and vectors of a piece, with the
most elements of a thread by how many inputs there are, where a second statistic follows, and one
input belongs to columns: few threads wait."""

_FEW_ROWS, _IDLE_CTAS, _FEW_BYTES = (66, 132), 132, 32
"""Rows up to which a cluster has one, without inputs that belong to columns and with them: so more
multiprocessors work on few rows. The CTAs up to which there are rather more of half as many
threads, and the bytes of a row that each thread has."""

_BUSY_THREADS = 132 * 1024
"""Threads that keep all multiprocessors busy: below, rows are divided among more of them."""

_WASTE, _WHOLE = 16, 13
"""One in so many elements of a tile may be past the end of a row; the same of rows that four CTAs
have as a whole, rather than two in pieces."""

_CTA_BYTES, _FEW_CTAS = 8192, 8192
"""Bytes that a CTA moves, and CTAs of a launch, up to which dependent launches cost no time: with
them CTAs begin every 1.2 ns at most."""

_LONG_TILE, _LONG_PIECE = 8192, 2
"""Columns of a row beyond which its tiles are of more threads, and the most vectors of each."""

_TILE_ELEMENTS = 32
"""Elements of a thread in a tile of rows that have numbers of their own."""

_GROUP_VECTOR = 8
"""Elements of a thread in a piece of a row that has groups."""

_GROUP_PIECES, _GROUP_WARPS = 2048, ((4096, 2), (8192, 4), (16384, 8))
"""Columns from which rows of short elements with groups come in pieces, and the warps of a row by
its most columns: then a thread holds up to 64 elements."""


def choose(problem: RowsProblem, *, clusters: bool = True) -> RowsConfig:
    """Return the config of a kernel on rows.

    Args:
        problem: the kernel.
        clusters: whether the target has clusters of CTAs.
    """
    if problem.has_groups:
        return _choose_for_groups(problem)
    if problem.is_in_words:
        return choose_in_words(problem, clusters=clusters)
    if problem.is_elementwise:
        return _choose_tile(problem)
    if problem.column_sums:
        found = choose_sums(problem, clusters=clusters)
        return found or _choose_long(problem, clusters=clusters)
    if problem.finish is None:
        return _choose_read(problem)
    n, size = problem.longest, problem.element_bytes
    if n * size > _MIDDLE_BYTES:
        divided = _choose_few(problem) if clusters else None
        return divided or _choose_long(problem, clusters=clusters)
    # Where statistics follow one another, fewer threads wait.
    waits = size < 4 and len(problem.stats) > 1 and bool(problem.loaded_by_column)
    few = waits and len(problem.loaded_by_column) == 1
    is_short = n * size <= (_SHORTEST_BYTES if few else _SHORT_BYTES)
    held = _SHORT_HELD if is_short else 8 * MAX_ACCESS_BYTES if waits else 4 * MAX_ACCESS_BYTES
    warps = _WARPS if is_short or waits else _MANY_WARPS
    threads = threads_of(n * size, held)
    is_narrow = len(problem.stats) > 1 and problem.loaded_by_column and not has_vectors(problem)
    if is_narrow and not is_short:  # CTAs that have one row wait for no other
        threads = max(threads, _WARPS * WARP_THREADS >> (2 * n * size <= _SHORT_BYTES))
        warps = threads // WARP_THREADS
    return _whole(problem, threads, warps)


def _choose_long(problem: RowsProblem, *, clusters: bool) -> RowsConfig:
    """Return the config of long rows: in pieces, or divided among the CTAs of a cluster."""
    inputs, n = len(problem.loaded_elementwise), problem.longest
    is_wide = problem.element_bytes >= 4
    by_column, is_open = len(problem.loaded_by_column), problem.has_masks
    stream = None
    if clusters and not problem.column_sums and not _fills_whole(problem):
        stream = choose_stream(problem)
    if stream is not None:
        return stream
    many = _is_many(problem)
    if many and by_column > 1 and len(problem.stats) > 1 and inputs == 1:
        # Reductions wait for all threads, then for what belongs to columns: many CTAs are best.
        for warps in (_MANY_WARPS,) if is_wide else (_WARPS, _MANY_WARPS):
            if n <= warps * WARP_THREADS * _HELD_ALONE:
                is_large = has_vectors(problem) and (is_wide or warps == _WARPS)
                piece = 4 if is_large else 2
                return _pieces(problem, warps, piece, "pieces need few registers", held=True)
    if many and by_column == 1 and len(problem.stats) > 1 and not is_wide:
        for warps, per_sm, piece, most_of in _FEW_WARPS:
            if n * inputs <= warps * WARP_THREADS * most_of.get(inputs, 0):
                config = _pieces(problem, warps, piece, "few threads a row", held=True)
                return replace(config, ctas_per_sm=per_sm)
    for warps in (_MOST_WARPS,) if is_wide else (_MANY_WARPS, _MOST_WARPS):
        # With one CTA on a multiprocessor, a second reduction leaves the memory idle.
        is_alone = warps == _MOST_WARPS and len(problem.stats) > 1 and not by_column
        if clusters and not is_wide and warps == _MOST_WARPS and _fills_clusters(problem):
            break
        if n <= _held(warps, inputs) // (1 + is_wide) and (is_wide or not is_alone):
            config = _pieces(problem, warps, 2, "pieces need few registers", held=True)
            is_many_warps = config.warps == _MOST_WARPS and inputs == 1 and not problem.has_masks
            return _filled(problem, config) if is_many_warps else config
    divided = (4, 32), *(((8, 32), (16, 32)) if is_wide else ((8, 64),)), (16, 64)
    for cluster, held in divided if clusters else ():
        if n * inputs <= cluster * _MANY_WARPS * WARP_THREADS * held:
            # What is loaded earlier needs registers, of which shorter elements leave few.
            ahead = int(by_column > 0 and (is_wide or held <= 32))
            warps = _MOST_WARPS if ahead and held > 32 else _MANY_WARPS
            warps = _fitting_warps(problem, cluster, warps)
            past = -n % (cluster * warps * WARP_THREADS * problem.vector)
            filled = choose_filled(problem) if by_column and past * _FILLED > n else None
            if filled is not None:
                return filled
            per_sm = 2 if is_open and warps * held <= _MANY_WARPS * 32 else 1
            return RowsConfig(
                1,
                warps,
                cluster=cluster,
                ahead=ahead,
                ctas_per_sm=per_sm,
                reason="CTAs divide a row",
            )
    all_threads = MAX_CLUSTER_CTAS * _MOST_WARPS * WARP_THREADS
    beside = by_column if is_wide and not has_vectors(problem) else by_column > 0
    if clusters and n * (inputs + beside) <= all_threads * _HELD_ALONE:
        config = RowsConfig(1, _MOST_WARPS, cluster=MAX_CLUSTER_CTAS, reason="CTAs divide a row")
        if has_vectors(problem):
            vectors = config.cluster * config.threads * problem.vector
            piece = 1 if n % (2 * vectors) else 2
            return replace(config, piece=piece, vector=problem.vector, held=True)
        return config
    return _pieces(problem, _MOST_WARPS, 4, "a row does not fit in registers")


def _choose_few(problem: RowsProblem) -> RowsConfig | None:
    """Return the config of few long rows: more CTAs divide one, each thread has few bytes of it.

    Returns:
        `None` if there are many rows, or more than a cluster has so.
    """
    most = _FEW_ROWS[bool(problem.loaded_by_column)]
    is_few = problem.rows is not None and problem.rows <= most
    if not is_few or problem.has_masks or not has_vectors(problem):
        return None
    warps, threads = _MANY_WARPS, threads_of(problem.longest * problem.element_bytes, _FEW_BYTES)
    cluster = threads // (warps * WARP_THREADS)
    if not 1 < cluster <= MAX_CLUSTER_CTAS:
        return None
    if 2 * cluster <= MAX_CLUSTER_CTAS and 2 * cluster * problem.many_rows <= _IDLE_CTAS:
        cluster, warps = 2 * cluster, warps // 2
    warps = _fitting_warps(problem, cluster, warps)
    return RowsConfig(1, warps, cluster=cluster, reason="CTAs divide one of few rows")


def _is_many(problem: RowsProblem) -> bool:
    """Return whether a few warps a row keep all multiprocessors busy."""
    return problem.many_rows * _WARPS * WARP_THREADS >= _BUSY_THREADS


def _fills_clusters(problem: RowsProblem) -> bool:
    """Return whether rows of short elements fill the registers of four CTAs, 32 a thread."""
    all_elements = 4 * _MANY_WARPS * WARP_THREADS * 32
    elements = problem.longest * len(problem.loaded_elementwise)
    return (
        not problem.has_masks
        and elements <= all_elements
        and (all_elements - elements) * _WASTE <= all_elements
    )


def _fills_whole(problem: RowsProblem) -> bool:
    """Return whether a row of short elements, too long for a CTA, fills four CTAs of 8 warps."""
    n, all_vectors = problem.longest, 4 * _MANY_WARPS * WARP_THREADS * problem.vector
    is_held = _held(_MANY_WARPS, 1) < n <= _held(_MOST_WARPS, 1)
    is_short = problem.element_bytes < 4 and len(problem.loaded_elementwise) == 1
    fits = _fitting_warps(problem, 4, _MANY_WARPS) == _MANY_WARPS
    is_filled = is_held and fits and -n % all_vectors * _WHOLE <= n
    return is_filled and is_short and not (problem.loaded_by_column or problem.has_masks)


def _fitting_warps(problem: RowsProblem, cluster: int, warps: int) -> int:
    """Return the fewest warps, of so many at least, whose vectors are not much more than a row.

    The tile of another row would have shorter vectors.
    """
    n = problem.longest
    for fitting in range(warps, 2 * warps + 1):
        vectors = cluster * fitting * WARP_THREADS * problem.vector
        if -n % vectors * _WASTE <= n:
            return fitting
    return warps


def _choose_read(problem: RowsProblem) -> RowsConfig:
    """Return the config of a kernel that only reads rows."""
    n, is_wide = problem.longest, problem.element_bytes >= 4
    if n <= _READ_WHOLE[is_wide]:
        return _whole(problem, threads_of(n * problem.element_bytes, _READ_BYTES), _WARPS)
    piece, held = _READ_HELD[is_wide]
    warps_of = dict(held)
    if not _is_many(problem):
        piece, warps_of = 1, {_READ_FEW: threads_of(n, 32) // WARP_THREADS}
    warps = next((warps for most, warps in warps_of.items() if n <= most), 0)
    if warps:
        return _pieces(problem, warps, piece, "pieces need few registers", held=True)
    warps, piece, per_sm = _MANY_WARPS, 4 if is_wide and has_vectors(problem) else 2, 1
    is_even = is_wide and n % (warps * WARP_THREADS * piece * problem.vector) == 0
    if has_vectors(problem) and not (problem.has_masks or is_even):
        warps, piece, per_sm = next(how for most, *how in _READ_AGAIN[is_wide] if n <= most)
        if is_wide and warps == _MOST_WARPS and problem.many_rows in _READ_AT_ONCE:
            warps, per_sm = _WARPS, 1
    config = _pieces(problem, warps, piece, "a row that is only read is not held")
    return replace(config, ctas_per_sm=per_sm)


def _held(warps: int, inputs: int) -> int:
    """Return the longest row that a CTA can hold."""
    return warps * WARP_THREADS * _HELD_ELEMENTS // inputs


def _whole(problem: RowsProblem, threads: int, warps: int) -> RowsConfig:
    """Return the config of whole rows, each of which so many threads have."""
    while (
        threads * problem.many_rows < _BUSY_THREADS and threads * problem.vector < problem.longest
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
    piece *= MAX_ACCESS_BYTES // problem.element_bytes // problem.vector
    warps = 1 << (warps - 1).bit_length()
    while warps > 1 and warps * WARP_THREADS * problem.vector >= 2 * problem.longest:
        warps //= 2
    while piece > 1 and piece * warps * WARP_THREADS * problem.vector >= 2 * problem.longest:
        piece //= 2
    return RowsConfig(1, warps, piece, problem.vector, held=held, reason=reason)


def _filled(problem: RowsProblem, config: RowsConfig) -> RowsConfig:
    """Return a config of held pieces, or one of fewer warps whose pieces a row fills better."""

    def past(warps: int, piece: int) -> int:
        """Return how many columns of pieces are past the end of a row."""
        return -problem.longest % (warps * WARP_THREADS * piece * problem.vector)

    def is_filled(warps: int, piece: int) -> bool:
        return past(warps, piece) * _FILLED <= problem.longest

    if is_filled(config.warps, config.piece):
        return config
    unit = MAX_ACCESS_BYTES // problem.element_bytes // problem.vector
    most, few, least = (
        -(-problem.longest // (vectors * WARP_THREADS * unit * problem.vector))
        for vectors in _FILLED_BY[problem.element_bytes >= 4]
    )
    if few > _MANY_WARPS and problem.element_bytes < 4:
        return config
    tried = [
        (warps, piece * unit)
        for warps in range(max(min(most, _MANY_WARPS), few), least - 1, -1)
        for piece in (2, 1)
    ]
    warps, piece = next(
        (each for each in tried if is_filled(*each)), min(tried, key=lambda each: past(*each))
    )
    return replace(config, warps=warps, piece=piece)


def _choose_tile(problem: RowsProblem) -> RowsConfig:
    """Return the config of a kernel that computes each element by itself."""
    is_long = problem.longest > _LONG_TILE
    piece = max(1, min(8 // len(problem.elementwise), _LONG_PIECE if is_long else 8))
    warps = _WARPS if len(problem.elementwise) < 3 and not is_long else _MOST_WARPS
    if has_vectors(problem) and any(a.per == ROW for a in problem.arguments.values()):
        # What belongs to a row is waited for once a tile, so a tile has a row, if it can.
        piece = max(1, _TILE_ELEMENTS // problem.vector)
        warps = threads_of(problem.longest, _TILE_ELEMENTS) // WARP_THREADS
        warps = min(max(warps, _WARPS), _MOST_WARPS)
    elements = piece * problem.vector * warps * WARP_THREADS
    rows = max(1, elements // max(4, 1 << (problem.longest - 1).bit_length()))
    return RowsConfig(rows, warps, piece, problem.vector, reason="each element by itself")


def dependent_ctas(problem: RowsProblem, config: RowsConfig) -> int | None:
    """Return up to how many CTAs a launch begins while the one ahead of it ends, and waits for it.

    Returns:
        0 for any number; `None` if no launch does.
    """
    columns = config.columns if problem.is_elementwise else problem.longest
    size = config.rows * columns * sum(a.bytes for a in problem.elementwise)
    ctas = problem.many_rows * -(-problem.longest // columns) // config.rows
    if size > _CTA_BYTES * config.cluster or config.ctas > 0:
        return 0
    if problem.rows is None:
        return _FEW_CTAS
    return 0 if ctas <= _FEW_CTAS else None


def _choose_for_groups(problem: RowsProblem) -> RowsConfig:
    """Return the config of a kernel with groups of columns, whose tiles are powers of two."""
    columns, threads = problem.longest, WARP_THREADS
    is_many = _is_many(problem) and columns >= _GROUP_PIECES and problem.element_bytes < 4
    warps = next((w for most, w in _GROUP_WARPS if is_many and columns <= most), 0)
    if warps:
        piece = 4 if warps == _MANY_WARPS else 2
        if columns % (piece * warps * WARP_THREADS * _GROUP_VECTOR):
            piece = 1
        reason = "few threads a row"
        return RowsConfig(1, warps, piece, _GROUP_VECTOR, held=True, reason=reason)
    while threads * 32 < columns and threads < _MOST_WARPS * WARP_THREADS:
        threads *= 2
    warps = max(_WARPS, threads // WARP_THREADS)
    if columns & (columns - 1) == 0 and columns <= threads * _HELD_ELEMENTS // 2:
        most = 1 << (problem.many_rows - 1).bit_length()
        several = min(warps * WARP_THREADS // threads, most)
        return RowsConfig(several, warps, reason=f"{threads} threads a row")
    is_held = columns <= _held(warps, len(problem.loaded_elementwise))
    reason = "pieces are powers of two"
    return RowsConfig(1, warps, 1, _GROUP_VECTOR, held=is_held, reason=reason)
