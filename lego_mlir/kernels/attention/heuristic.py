"""The heuristic: tiles by depth, packed heads where queries are few, splits where CTAs are."""

from __future__ import annotations

from lego_mlir.hardware.specs import GpuSpec
from lego_mlir.kernels.attention.config import AttentionConfig
from lego_mlir.kernels.attention.problem import AttentionProblem

_WARP_ROWS = 16
"""Rows of a warp: those of one instruction."""

_ROWS, _COLUMNS, _DEEP = 64, 64, 128
_SPLIT_KEYS = 256
"""A CTA has so many keys at least, for the combination of splits to cost little."""

_CTAS_PER_SM = 2


def choose(problem: AttentionProblem, spec: GpuSpec) -> AttentionConfig:
    """Return the config of an attention kernel on a card."""
    packed = problem.group > 1 and problem.queries < _ROWS
    queries = problem.queries * (problem.group if packed else 1)
    rows = min(_ROWS, max(_WARP_ROWS, 1 << (queries - 1).bit_length()))
    depth = max(problem.depth, problem.depth_v)
    columns = _COLUMNS if depth <= _DEEP else _COLUMNS // 2
    if problem.cache is not None:
        columns = min(columns, problem.cache.page)
    heads = problem.heads_kv if packed else problem.heads
    ctas = problem.batch * heads * -(-queries // rows)
    wanted = spec.multiprocessors * _CTAS_PER_SM
    most = max(1, problem.keys // max(_SPLIT_KEYS, columns))
    splits = min(most, wanted // ctas) if ctas * 2 <= wanted else 1
    why = f"{ctas} tiles of queries for {spec.multiprocessors} multiprocessors"
    return AttentionConfig(rows, columns, rows // _WARP_ROWS, packed, max(1, splits), why)
