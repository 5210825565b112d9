"""The heuristic of rows that pass through shared memory: which do, and how many CTAs have one.

All numbers were measured on an H200 (bench/results/rows_streams.jsonl). The threads of a
multiprocessor copy rows ahead into three stages: so the memory is busy while they wait for one
another, and a row needs no registers meanwhile. A row that is longer than a third of the shared
memory is divided among the CTAs of a cluster.
"""

from __future__ import annotations

from typing import NamedTuple

from lego_mlir.hardware.limits import MAX_ACCESS_BYTES, MAX_CLUSTER_CTAS, WARP_THREADS
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.problem import RowsProblem


class _Stream(NamedTuple):
    """Which rows pass through shared memory, and how.

    Attributes:
        beyond: bytes of the longest row that does not.
        held: bytes of a row that a thread reads.
        piece: vectors of a thread in a piece.
        warps: of a CTA.
        masked: as `RowsConfig` has it: whether the compiler keeps the memory busier so.
    """

    beyond: int
    held: int = 64
    piece: int = 1
    warps: int = 16
    masked: bool = False


_STREAMS: dict[tuple[int, int, bool], tuple[_Stream, ...]] = {
    (0, 1, False): (_Stream(65536, 128, 2),),
    (1, 1, False): (_Stream(65536, 128),),
    (2, 1, False): (_Stream(262144, 128, warps=8), _Stream(32768)),
    (0, 2, False): (_Stream(131072),),
    (1, 2, False): (_Stream(65536),),
    (2, 2, False): (_Stream(32768),),
    (1, 1, True): (_Stream(524288, 128), _Stream(262144)),
    (2, 1, True): (_Stream(262144, 128), _Stream(131072)),
}
"""By how many inputs belong to columns, how many to elements, and whether these have 4 bytes."""

_SUMS: dict[tuple[int, bool], tuple[_Stream, ...]] = {
    (1, False): (_Stream(65536), _Stream(16384, masked=True)),
    (1, True): (_Stream(16384),),
    (2, False): (_Stream(16384, 128, 2, warps=8),),
    (2, True): (_Stream(16384, masked=True),),
}
"""By how many outputs are sums of columns, and whether elements have 4 bytes. Two sums of the
columns of shorter elements want all registers: of few threads, whose addresses take fewer."""

_SHARED_BYTES = 200 << 10
"""Shared memory of a multiprocessor that stages may have."""

_STAGES = 3

_AT_ONCE = {1: 132, 2: 66, 4: 30, 8: 15, 16: 7}
"""The clusters of so many CTAs, of 16 warps, that an H200 runs at once."""

_SM_WARPS = 16

_WASTE = 16
"""One in so many elements of a row's pieces may be past its end, unless pieces are short."""


def choose_stream(problem: RowsProblem) -> RowsConfig | None:
    """Return the config of rows that pass through shared memory.

    Returns:
        `None` if rows are too short or too long, or not known to be aligned.
    """
    inputs = [problem.arguments[name] for name in problem.loaded_elementwise]
    widest = max(a.bytes for a in problem.elementwise)
    if problem.strided or problem.vector * widest < MAX_ACCESS_BYTES:
        return None
    row = problem.longest * widest
    stream = next((s for s in _streams(problem, is_wide=widest >= 4) if row > s.beyond), None)
    if stream is None:
        return None
    cluster = 1
    while row > cluster * stream.warps * WARP_THREADS * stream.held:
        cluster *= 2
    vectors, piece = problem.vector * stream.warps * WARP_THREADS * cluster, stream.piece
    while piece > 1 and -problem.longest % (piece * vectors) * _WASTE > problem.longest:
        piece //= 2
    columns = -(-problem.longest // (piece * vectors)) * piece * vectors // cluster
    stage = columns * sum(a.bytes for a in inputs)
    per_sm = min(_SM_WARPS // stream.warps, _SHARED_BYTES // (_STAGES * stage))
    if cluster > MAX_CLUSTER_CTAS or not per_sm:
        return None
    return RowsConfig(
        1,
        stream.warps,
        piece,
        problem.vector,
        cluster=cluster,
        ctas=min(per_sm * _AT_ONCE[cluster], problem.many_rows),
        stages=_STAGES,
        masked=stream.masked,
        reason=f"{stream.held} bytes a thread",
    )


def _streams(problem: RowsProblem, *, is_wide: bool) -> tuple[_Stream, ...]:
    """Return how rows are streamed, the longest first."""
    if problem.column_sums:
        return _SUMS.get((min(2, len(problem.column_sums)), is_wide), ())
    by_column, inputs = len(problem.loaded_by_column), len(problem.loaded_elementwise)
    return _STREAMS.get((min(2, by_column), min(2, inputs), is_wide), ())
