"""The heuristic of rows that pass through shared memory: which do, and how many CTAs have one.

All numbers were measured on an H200 (bench/results/rows_streams.jsonl, rows_pieces.jsonl,
rows_larger_pieces.jsonl, rows_refilled.jsonl, and rows_filled.jsonl). The threads of a
multiprocessor copy rows ahead into two to four stages: so the memory is busy while they wait for
one another, and a row needs no registers meanwhile. A row of which a stage would be too large is
divided among the CTAs of a cluster. The larger pieces are, the fewer operations a kernel has, and the sooner it is compiled.
"""

from __future__ import annotations

from typing import NamedTuple

from lego_mlir.hardware.limits import MAX_CLUSTER_CTAS, WARP_THREADS
from lego_mlir.kernels.rows.config import RowsConfig, has_vectors
from lego_mlir.kernels.rows.problem import ELEMENT, RowsProblem, names_of


class _Stream(NamedTuple):
    """Which rows pass through shared memory, and how.

    Attributes:
        beyond: bytes of the longest row that does not.
        held: bytes of a row that a thread reads.
        piece: vectors of a thread in a piece.
        warps: of a CTA.
        masked: as `RowsConfig` has it: whether the compiler keeps the memory busier so.
        most: bytes of a row that a thread reads where half as many CTAs have it so, in two stages.
        stages: iterations whose rows are in shared memory; 0 for rows in the registers of CTAs that
            have one each, many of them at once.
        per_sm: CTAs of a multiprocessor, which has registers for them; 0 for as many as have 16
            warps together, if they find registers.
        refilled: whether each piece has stages of its own, as `RowsConfig.ring_bytes` has it.
        short: as `RowsConfig` has it: whether registers are short.
        exact: whether that is of rows that pieces of one vector divide; others have such pieces, of
            one CTA of a multiprocessor, `refilled` and `short`: they have masks, too.
        fits: whether fewer warps, more than half of them, have rows that fill their pieces better.
    """

    beyond: int
    held: int = 64
    piece: int = 1
    warps: int = 16
    masked: bool = False
    most: int = 0
    stages: int = 3
    per_sm: int = 0
    refilled: bool = False
    short: bool = False
    exact: bool = False
    fits: bool = False


_STREAMS: dict[tuple[int, int, bool], tuple[_Stream, ...]] = {
    (0, 1, False): (
        _Stream(262144, 128, 4, most=160, refilled=True),
        _Stream(131072, 128, 4, most=160, stages=2),
        _Stream(65536, 128, 8, 4, stages=0, per_sm=5),
    ),
    (1, 1, False): (_Stream(65536, 128, 4),),
    (2, 1, False): (
        _Stream(262144, 160, 2, 8, per_sm=1, refilled=True),
        _Stream(131072, piece=4),
        _Stream(122880),
        _Stream(65536, stages=4),
        _Stream(32768, piece=2, masked=True, stages=4),
    ),
    (0, 2, False): (
        _Stream(131072, piece=4),
        _Stream(65536, 64, 4, 4, stages=0, per_sm=4),
    ),
    (1, 2, False): (_Stream(65536),),
    (2, 2, False): (_Stream(32768),),
    (1, 1, True): (
        _Stream(524288, 128, 4, refilled=True),
        _Stream(262144, piece=4, refilled=True),
    ),
    (2, 1, True): (
        _Stream(655360, 128, 4, refilled=True),
        _Stream(524288, 160, 2, 8, per_sm=1, refilled=True),
        _Stream(393216, 160, 4, 8, per_sm=1, refilled=True),
        _Stream(131072, piece=4),
        _Stream(65536, 128, 2, 4, stages=0, per_sm=4),
    ),
}
"""By how many inputs belong to columns, how many to elements, and whether these have 4 bytes."""

_FILLED, _UNFILLED = _Stream(32768, 128, 1, 8, stages=2, per_sm=2, fits=True), 8
"""Two CTAs of a multiprocessor, of as many warps as a row fills; and one in how many columns of the
pieces of others may have no elements, or rows are streamed so."""

_STREAMS_BETWEEN: dict[tuple[int, int, bool], tuple[_Stream, ...]] = {
    (0, 1, False): (
        *_STREAMS[0, 1, False][:1],
        _STREAMS[0, 1, False][1]._replace(beyond=196608),
        _Stream(131072, 160, 1, 8, stages=0, fits=True),
        _STREAMS[0, 1, False][2],
        _Stream(32768, 112, 2, 8, stages=0, fits=True),
    ),
    (0, 1, True): (
        _Stream(819200, 320, 1, 8, stages=0, per_sm=1),
        _Stream(524288, 320, 1, 5, stages=0, per_sm=1, fits=True),
    ),
    (1, 1, False): (
        _Stream(262144, 128, 4, stages=2, refilled=True),
        _Stream(131072, 128, 1, 8, per_sm=1, refilled=True),
        _FILLED._replace(beyond=65536),
    ),
    (2, 1, False): (_FILLED._replace(beyond=327680), _Stream(245760, 160, 2, 8, per_sm=1), _FILLED),
    (2, 1, True): (*_STREAMS[2, 1, True][:-1], _FILLED._replace(beyond=65536)),
}
"""Of rows that are no power of two, which many threads divide badly."""

_FOLLOWED = {
    1: (_Stream(65536, 128), _Stream(49152, 256, warps=8, stages=2)),
    2: (_Stream(98304), _Stream(49152, 96, 4, stages=2)),
}
"""Of short elements where a second statistic follows, and one input belongs to columns, by how many
belong to elements."""

_SUMS: dict[tuple[int, bool], tuple[_Stream, ...]] = {
    (1, False): (
        _Stream(262144, piece=2, stages=2, refilled=True),
        _Stream(65536, piece=2),
        _Stream(16384, masked=True),
    ),
    (1, True): (
        _Stream(524288, 128, 2, stages=2, refilled=True),
        _Stream(262144, piece=2, stages=2, refilled=True),
        _Stream(16384, piece=4),
    ),
    (2, False): (
        _Stream(65536, 128, warps=8),
        _Stream(32768, 128, 2, warps=8),
        _Stream(16384, 128, 8, warps=8),
        _Stream(8192, 128, 8, warps=4, per_sm=2),
    ),
    (2, True): (
        _Stream(524288, 256, warps=8, stages=2, per_sm=1, refilled=True),
        _Stream(262144, stages=2, refilled=True),
        _Stream(131072, masked=True),
        _Stream(65536, 128, 8, 8, per_sm=1),
        _Stream(16384, 64, 4, 8, per_sm=2),
    ),
}
"""By how many outputs are sums of columns, and whether elements have 4 bytes. Two sums of the
columns of shorter elements want all registers: of few threads, whose addresses take fewer."""

_SUMS_BETWEEN: dict[tuple[int, bool], tuple[_Stream, ...]] = {
    (1, False): (
        _Stream(262144, 160, 2, 8, per_sm=1, refilled=True, short=True),
        _Stream(237568, piece=2),
        _Stream(131072, refilled=True),
        _Stream(90112, piece=2),
        _Stream(65536, refilled=True),
        _Stream(8192, 128, warps=4, per_sm=2),
        _Stream(4096, warps=4, per_sm=3),
    ),
    (1, True): (
        _Stream(524288, 128, stages=2, refilled=True),
        _Stream(262144, piece=2, most=80, refilled=True),
        _Stream(204800, piece=2),
        _Stream(131072, refilled=True),
        _Stream(90112, piece=2),
        _Stream(65536, refilled=True),
        _Stream(21504, 128, warps=8, per_sm=1),
        _Stream(16384, 128, warps=8, per_sm=1, refilled=True),
        _Stream(8192, 128, warps=4, per_sm=2),
    ),
    (2, False): (
        _Stream(65536, 128, warps=8, per_sm=1, refilled=True, short=True),
        _Stream(22528, 128, 2, warps=8, exact=True),
        _Stream(16384, 128, 2, warps=8),
        _Stream(10752, 128, warps=4, per_sm=2),
        _Stream(8192, 128, warps=4, per_sm=2, refilled=True),
        _Stream(4096, warps=4, per_sm=3),
    ),
    (2, True): (
        _Stream(786432, 256, warps=8, stages=2, per_sm=1, refilled=True),
        _Stream(524288, 256, 2, 8, stages=2, per_sm=1, refilled=True),
        _Stream(262144, piece=2, most=80, refilled=True),
        _Stream(204800, masked=True),
        _Stream(131072, refilled=True),
        _Stream(90112, 128, warps=8, per_sm=1),
        _Stream(65536, 128, warps=8, per_sm=1, refilled=True),
        _Stream(21504, 128, warps=8, per_sm=1),
        _Stream(16384, 128, warps=8, per_sm=1, refilled=True),
        _Stream(8192, 128, warps=4, per_sm=2),
    ),
}
"""Of rows that are no power of two, which many threads divide badly. Where threads have few bytes
of a row, stages that are filled one by one keep the memory busy."""

_OPEN_SUMS: dict[tuple[int, bool], tuple[_Stream, ...]] = {
    (1, False): (_Stream(65536, piece=2), _Stream(16384, masked=True)),
    (1, True): (_Stream(16384, piece=2),),
    (2, False): (
        _Stream(24576, warps=8),
        _Stream(16384, 128, 2, warps=8),
        _Stream(8192, warps=8),
    ),
    (2, True): (
        _Stream(131072, masked=True),
        _Stream(65536, 128, warps=8, per_sm=1),
        _Stream(16384, 64, 4, 8, per_sm=2),
    ),
}
"""Of rows whose length only the launch knows: where masks take registers, too, and sums want them
all, a thread has at most three quarters of what it has of known rows
(bench/results/rows_open.jsonl)."""

_IN_WORDS = {1: (_Stream(0, 256, warps=8, stages=2),), 2: (_Stream(0, 128, stages=2),)}
"""By how many inputs belong to elements, of rows that begin anywhere in a vector."""

_IN_WORDS_COLUMNS: dict[bool, tuple[_Stream, ...]] = {
    False: (
        _Stream(131072, 256, warps=8, stages=2, per_sm=1),
        _Stream(16384, 224, warps=4, stages=2, per_sm=2),
        _Stream(0, 128, warps=4, stages=2, per_sm=6),
    ),
    True: (
        _Stream(114688, 128, stages=2),
        _Stream(57344, 112, warps=8, stages=2, per_sm=2),
        _Stream(0, 128, stages=2),
    ),
}
"""Of such rows with inputs that belong to columns, by whether elements have 4 bytes."""

_IN_WORDS_SUMS: dict[tuple[int, bool], tuple[_Stream, ...]] = {
    (1, False): (
        _Stream(65536, 128, warps=8, per_sm=1),
        _Stream(49152, 128, warps=8, stages=2, per_sm=1),
        _Stream(16384, 192, warps=4, stages=2, per_sm=2),
        _Stream(8192, 128, warps=4, stages=2, per_sm=3),
        _Stream(0, 128, warps=4, per_sm=3),
    ),
    (2, False): (
        _Stream(229376, warps=8, stages=4, per_sm=1, refilled=True),
        _Stream(65536, 128, warps=8, per_sm=1),
        _Stream(8192, 112, warps=4, stages=2, per_sm=2),
        _Stream(0, 128, warps=4, per_sm=3),
    ),
    (1, True): (_Stream(0, 224, warps=8, stages=2, per_sm=1),),
    (2, True): (_Stream(0, 224, warps=8, stages=2, per_sm=1),),
}
"""Of such rows, by how many outputs are sums of columns, and whether elements have 4 bytes."""

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
    stream = next((s for s in _streams(problem, is_wide=widest >= 4) if row > s.beyond), None)
    if stream is None:
        return None
    if problem.has_masks:  # they take the registers
        stream = stream._replace(refilled=False, short=False)
    config, inputs = _streamed(problem, stream), len(problem.loaded_by_column)
    # Not those that are refilled, or held, as fast as they are.
    is_fast = inputs < 2 and (stream.stages == 0 or (inputs > 0 and stream.refilled))
    if is_fast or config is None or config.fills(problem.longest, _UNFILLED):
        return config
    return choose_filled(problem) or config


def choose_filled(problem: RowsProblem) -> RowsConfig | None:
    """Return the config of rows that fill the pieces they are streamed in; `None` if none do."""
    is_other = problem.has_masks or problem.is_in_words or problem.column_sums or problem.strided
    if is_other or len(_inputs(problem)) > 1 or not has_vectors(problem):
        return None
    config = _streamed(problem, _FILLED)
    return config if config and config.fills(problem.longest, _UNFILLED) else None


def _streamed(problem: RowsProblem, stream: _Stream) -> RowsConfig | None:
    """Return the config of rows that are streamed so; `None` if they are too long."""
    row = problem.longest_in_words * problem.element_bytes
    cluster, threads = 1, stream.warps * WARP_THREADS
    while row > cluster * threads * stream.held:
        cluster *= 2
    tried = [(cluster, stream.held, stream.stages)]
    if cluster > 1 and row <= cluster // 2 * threads * stream.most:
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
    problem: RowsProblem, stream: _Stream, cluster: int, held: int, stages: int
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
        least = max(
            warps // 2 + 1, -(-longest * problem.element_bytes // (held * cluster * WARP_THREADS))
        )
        unit = problem.vector * WARP_THREADS * cluster
        warps = min(range(warps, least - 1, -1), key=lambda n: -longest % (n * unit), default=warps)
    vectors = problem.vector * warps * WARP_THREADS * cluster
    if stream.exact and longest % vectors > 0:
        stream = stream._replace(per_sm=1, refilled=True, short=True)
        piece = 1
    while piece > 1 and _is_too_long(longest, piece * vectors, piece):
        piece //= 2
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
    if cluster > MAX_CLUSTER_CTAS or per_sm < (most if problem.is_in_words else 1):
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


def _streams(problem: RowsProblem, *, is_wide: bool) -> tuple[_Stream, ...]:
    """Return how rows are streamed, the longest first."""
    if problem.is_in_words and problem.loaded_by_column:
        if problem.column_sums:
            return _IN_WORDS_SUMS[min(2, len(problem.column_sums)), is_wide]
        return _IN_WORDS_COLUMNS[is_wide]
    is_between = not problem.has_masks and problem.longest & (problem.longest - 1) > 0
    if problem.column_sums:
        kind = min(2, len(problem.column_sums)), is_wide
        known = _SUMS.get(kind, ())
        if problem.has_masks:
            return _OPEN_SUMS.get(kind, known)
        return _SUMS_BETWEEN.get(kind, known) if is_between else known
    by_column, inputs = len(problem.loaded_by_column), len(problem.loaded_elementwise)
    if problem.is_in_words:
        return _IN_WORDS[min(2, inputs)]
    if by_column == 1 and inputs in _FOLLOWED and len(problem.stats) > 1 and not is_wide:
        return _FOLLOWED[inputs]
    of = min(2, by_column), min(2, inputs), is_wide
    known = _STREAMS.get(of, ())
    return _STREAMS_BETWEEN.get(of, known) if is_between else known
