"""The heuristic of rows that pass through shared memory: which do, and how many CTAs have one.

The threads of a multiprocessor copy rows ahead into two to four stages: so the memory is busy while
they wait for one another, and a row needs no registers meanwhile. A row of which a stage would be
too large is divided among the CTAs of a cluster.
"""

from __future__ import annotations

from lego_mlir.hardware.limits import MAX_CLUSTER_CTAS, WARP_THREADS
from lego_mlir.kernels.functions import names_of
from lego_mlir.kernels.rows.config import RowsConfig, has_vectors
from lego_mlir.kernels.rows.heuristics.stream_tables import (
    FILLED,
    FOLLOWED,
    IN_WORDS,
    IN_WORDS_COLUMNS,
    IN_WORDS_SUMS,
    OPEN_SUMS,
    STREAMS,
    STREAMS_BETWEEN,
    SUMS,
    SUMS_BETWEEN,
    UNFILLED,
    Stream,
)
from lego_mlir.kernels.rows.problem import ELEMENT, RowsProblem

_SHARED_BYTES = 208 << 10
"""Shared memory of a multiprocessor that stages may have."""

_AT_ONCE = {1: 132, 2: 66, 4: 30, 8: 15, 16: 7}
"""The clusters of so many CTAs, of 16 warps, that an H200 runs at once."""

_MOST_APART = {1: 3 / 4, 2: 7 / 8}
"""The part of these that have rows as far apart as they are many, if it is more; else all have runs
of rows, which the memory serves less well. By how many outputs are sums of columns
(bench/results/rows_shifted.jsonl)."""

_SM_WARPS = 16

_WASTE = 12
"""One in so many elements of a row's pieces may be past its end, unless pieces are short."""

_MASKED = 4
"""The most vectors of a thread in a piece that rows do not fill: masks take registers, too."""


def choose_stream(problem: RowsProblem) -> RowsConfig | None:
    """Return the config of rows that pass through shared memory.

    Returns:
        `None` if rows are too short or too long, or not known to be aligned.
    """
    widest = problem.element_bytes
    if problem.strided or not has_vectors(problem):
        return None
    row = problem.longest_in_words * widest
    streams, rows = _streams(problem, is_wide=widest >= 4), problem.many_rows
    stream = next((s for s in streams if row > s.beyond and rows >= s.rows), None)
    if stream is None:
        return None
    if problem.has_masks:  # they take the registers
        stream = stream._replace(refilled=False, short=False)
    config, inputs = _streamed(problem, stream), len(problem.loaded_by_column)
    # Not those that are refilled, or held, as fast as they are.
    is_fast = inputs < 2 and (stream.stages == 0 or (inputs > 0 and stream.refilled))
    if is_fast or config is None or config.fills(problem.longest, UNFILLED):
        return config
    return choose_filled(problem) or config


def choose_filled(problem: RowsProblem) -> RowsConfig | None:
    """Return the config of rows that fill the pieces they are streamed in; `None` if none do."""
    is_other = problem.has_masks or problem.is_in_words or problem.column_sums or problem.strided
    if is_other or len(_inputs(problem)) > 1 or not has_vectors(problem):
        return None
    config = _streamed(problem, FILLED)
    return config if config and config.fills(problem.longest, UNFILLED) else None


def _streamed(problem: RowsProblem, stream: Stream) -> RowsConfig | None:
    """Return the config of rows that are streamed so; `None` if they are too long."""
    row = problem.longest_in_words * problem.element_bytes
    cluster, threads = 1, stream.warps * WARP_THREADS
    while row > cluster * threads * stream.held:
        cluster *= 2
    tried = [(cluster, stream.held, stream.stages)]
    is_halved = not stream.fits and row <= cluster // 2 * threads * stream.most
    if cluster > 1 and is_halved:
        tried.insert(0, (cluster // 2, stream.most, 2))
    if problem.is_in_words:
        tried.append((2 * cluster, stream.held, stream.stages))
    streams = [stream]
    if len(_inputs(problem)) > len(problem.loaded_elementwise):  # of which pieces take registers
        small = stream._replace(piece=1, per_sm=1, refilled=True)
        streams = [small] if stream.refilled else [stream, small]
    found = (_config(problem, how, *each) for how in streams for each in tried)
    return next((config for config in found if config is not None), None)


def _inputs(problem: RowsProblem) -> tuple[str, ...]:
    """Return the inputs that have stages: those of `load`, and others that `finish` takes."""
    loaded = problem.loaded_elementwise
    taken = names_of(problem.finish) if problem.finish is not None else ()
    elements = (n for n in taken if n in problem.arguments and n not in loaded)
    return *loaded, *(n for n in elements if problem.arguments[n].per == ELEMENT)


def _config(
    problem: RowsProblem, stream: Stream, cluster: int, held: int, stages: int
) -> RowsConfig | None:
    """Return the config of rows that so many CTAs divide; `None` if their stages do not fit.

    Args:
        problem: the kernel.
        stream: how its rows are streamed.
        cluster: CTAs that have a row together.
        held: bytes of it that a thread reads, at most.
        stages: iterations whose rows are in shared memory.
    """
    inputs = [problem.arguments[name] for name in _inputs(problem)]
    longest, piece, warps = problem.longest_in_words, stream.piece, stream.warps
    if stream.fits:  # of equally good ones the most
        each = max(held, stream.most) * cluster * WARP_THREADS
        least = max(stream.fits, -(-longest * problem.element_bytes // each))
        unit = problem.vector * WARP_THREADS * cluster
        warps = min(range(warps, least - 1, -1), key=lambda n: -longest % (n * unit), default=warps)
    vectors = problem.vector * warps * WARP_THREADS * cluster
    if stream.exact and longest % vectors > 0:
        stream = stream._replace(per_sm=1, refilled=True, short=True)
        piece = 1
    while piece > 1 and _is_too_long(longest, piece * vectors, piece):
        piece //= 2
    if cluster > MAX_CLUSTER_CTAS:
        return None
    if not stages:
        return RowsConfig(
            1,
            warps,
            piece,
            problem.vector,
            held=True,
            cluster=cluster,
            ctas_per_sm=stream.per_sm or 1,
            reason=f"{held} bytes a thread",
        )
    columns = -(-longest // (piece * vectors)) * piece * vectors // cluster
    stage = columns * sum(a.bytes for a in inputs)
    most = stream.per_sm or _SM_WARPS // stream.warps
    per_sm = min(most, _SHARED_BYTES // (stage if stream.refilled else stages * stage))
    if per_sm < (most if problem.is_in_words else 1):
        return None
    return RowsConfig(
        1,
        warps,
        piece,
        problem.vector,
        cluster=cluster,
        ctas=min(_count_ctas(problem, per_sm * _AT_ONCE[cluster]), problem.many_rows),
        stages=stages,
        masked=stream.masked,
        ring_bytes=_SHARED_BYTES // per_sm if stream.refilled else 0,
        short=stream.short,
        ctas_per_sm=stream.per_sm or 1,
        reason=f"{held} bytes a thread",
    )


def _count_ctas(problem: RowsProblem, most: int) -> int:
    """Return how many persistent CTAs, or clusters, there are, if so many run at once.

    All rows of a CTA begin at the same place of a vector, so that copies of columns stay there. If
    too few CTAs have that, those that add up columns have runs of such rows instead.
    """
    unit = problem.starts if problem.is_in_words and problem.loaded_by_column else 1
    apart = most // unit * unit
    sums = min(2, len(problem.column_sums))
    return most if sums and apart < _MOST_APART[sums] * most else apart


def _is_too_long(longest: int, columns: int, vectors: int) -> bool:
    """Return whether pieces of so many columns, or vectors of a thread, are too long for a row."""
    past = -longest % columns
    return past * _WASTE > longest or (past > 0 and vectors > _MASKED)


def _streams(problem: RowsProblem, *, is_wide: bool) -> tuple[Stream, ...]:
    """Return how rows are streamed, the longest first."""
    if problem.is_in_words and problem.loaded_by_column:
        if problem.column_sums:
            return IN_WORDS_SUMS[min(2, len(problem.column_sums)), is_wide]
        return IN_WORDS_COLUMNS[is_wide]
    is_between = not problem.has_masks and problem.longest & (problem.longest - 1) > 0
    if problem.column_sums:
        kind = min(2, len(problem.column_sums)), is_wide
        known = SUMS.get(kind, ())
        if problem.has_masks:
            return OPEN_SUMS.get(kind, known)
        return SUMS_BETWEEN.get(kind, known) if is_between else known
    by_column, inputs = len(problem.loaded_by_column), len(problem.loaded_elementwise)
    if problem.is_in_words:
        return IN_WORDS[min(2, inputs)]
    if by_column == 1 and inputs in FOLLOWED and len(problem.stats) > 1 and not is_wide:
        return FOLLOWED[inputs]
    of = min(2, by_column), min(2, inputs), is_wide
    known = STREAMS.get(of, ())
    return STREAMS_BETWEEN.get(of, known) if is_between else known
