"""The heuristic: tiles by depth, packed heads where queries are few, splits where CTAs are."""

from __future__ import annotations

from lego_mlir.hardware.specs import GpuSpec
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.attention.config import AttentionConfig
from lego_mlir.kernels.attention.problem import AttentionProblem

_WARP_ROWS = 16
"""Rows of a warp: those of one instruction."""

_ROWS, _COLUMNS, _DEEP = 64, 64, 128
_SPLIT_KEYS = 256
"""A CTA has so many keys at least, for the combination of splits to cost little."""

_CTAS_PER_SM = 2

_DEPTH_UNIT = 16
"""Elements along the depth that one wgmma multiplies."""


_PIPELINED = {64: 128, 128: 128, 256: 64}
"""Keys of an iteration by the greatest depth, for kernels with rings of keys and values."""

_PIPELINED_ROWS, _PIPELINED_WARPS = 128, 8


def choose(problem: AttentionProblem, spec: GpuSpec, target: Target) -> AttentionConfig:
    """Return the config of an attention kernel on a card."""
    depth = max(problem.depth, problem.depth_v)
    if target.has_wgmma and _fits_schedule(problem):
        columns = next(n for most, n in _PIPELINED.items() if depth <= most)
        return AttentionConfig(
            _PIPELINED_ROWS,
            columns,
            _PIPELINED_WARPS,
            schedule="attention",
            reason="many queries, on a GPU with wgmma",
        )
    packed = problem.group > 1 and problem.queries < _ROWS
    queries = problem.queries * (problem.group if packed else 1)
    rows = min(_ROWS, max(_WARP_ROWS, 1 << (queries - 1).bit_length()))
    columns = _COLUMNS if depth <= _DEEP else _COLUMNS // 2
    if problem.cache is not None:
        columns = min(columns, problem.cache.page)
    heads = problem.heads_kv if packed else problem.heads
    ctas = problem.batch * heads * -(-queries // rows)
    wanted = spec.multiprocessors * _CTAS_PER_SM
    most = max(1, problem.keys // max(_SPLIT_KEYS, columns))
    splits = min(most, wanted // ctas) if ctas * 2 <= wanted else 1
    why = f"{ctas} tiles of queries for {spec.multiprocessors} multiprocessors"
    return AttentionConfig(rows, columns, rows // _WARP_ROWS, packed, max(1, splits), reason=why)


def _fits_schedule(problem: AttentionProblem) -> bool:
    """Return whether keys and values of a problem can pass through rings that TMA fills."""
    return (
        problem.queries >= _PIPELINED_ROWS
        and problem.cache is None
        and not problem.has_lengths
        and all(depth % _DEPTH_UNIT == 0 for depth in (problem.depth, problem.depth_v))
    )
