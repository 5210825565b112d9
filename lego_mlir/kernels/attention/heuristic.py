"""The heuristic: tiles by depth, packed heads where queries are few, splits where CTAs are."""

from __future__ import annotations

from lego_mlir.algebra.sizes import ceildiv
from lego_mlir.hardware.specs import GpuSpec
from lego_mlir.hardware.targets import Target
from lego_mlir.index import Int, maximum, minimum
from lego_mlir.kernels.attention.config import AttentionConfig
from lego_mlir.kernels.attention.problem import AttentionProblem

_WARP_ROWS = 16
"""Rows of a warp: those of one instruction."""

_ROWS, _COLUMNS, _DEEP = 64, 64, 128
"""Queries of a CTA where they are few, keys of an iteration, and the depth from which on these are
half as many."""

_MANY_ROWS = 128
_MANY = {64: (128, 0, 0), 128: (128, 32, 24), 256: (80, 0, 0)}
"""Queries of a CTA where they are many; and by the most depth keys of an iteration, registers for
queries, and registers of speculated exponentials."""

_SHALLOW, _MORE_ROWS, _MOST_ADDED = 64, 192, 1.07
"""Up to this depth three warpgroups are faster than two, by this factor."""

_SPLIT_KEYS = 128
"""A CTA has so many keys at least, for the combination of splits to cost little."""

_BUSY = 0.75
"""So large a share of the multiprocessors can read as fast as memory is."""

_DEPTH_UNIT = 16
"""Elements along the depth that one wgmma multiplies."""


def choose(problem: AttentionProblem, spec: GpuSpec, target: Target) -> AttentionConfig:
    """Return the config of an attention kernel on a card."""
    depth = max(problem.depth, problem.depth_v)
    # Where only the launch knows how many queries there are, they are taken for many.
    queries = problem.queries if isinstance(problem.queries, int) else _MANY_ROWS
    packed = problem.group > 1 and queries < _ROWS
    group = problem.group if packed else 1
    fits_rings = target.has_wgmma and _fits_rings(problem)
    kept = speculated = 0
    if fits_rings and queries * group > _ROWS:
        rows, schedule = _many_rows(problem.queries, depth), "attention"
        warps = rows // _WARP_ROWS
        columns, kept, speculated = next(n for most, n in _MANY.items() if depth <= most)
    else:
        rows, warps, schedule = _ROWS, _ROWS // _WARP_ROWS, "pipelined"
        columns = _COLUMNS if depth <= _DEEP else _COLUMNS // 2
        if not fits_rings:
            rows = min(rows, max(_WARP_ROWS, 1 << (queries * group - 1).bit_length()))
            warps, schedule = rows // _WARP_ROWS, None
    if problem.cache is not None:
        columns = min(columns, problem.cache.page)
    heads = problem.heads_kv if packed else problem.heads
    ctas = problem.batch * heads * ceildiv(problem.queries * group, rows)
    is_divided = isinstance(problem.queries, int) and not problem.is_ragged
    splits = _splits(ctas, problem.keys, columns, spec) if is_divided else 1
    why = f"{ctas} tiles of queries for {spec.multiprocessors} multiprocessors"
    return AttentionConfig(
        rows,
        columns,
        warps,
        packed,
        splits,
        schedule,
        operand_registers=kept,
        speculated=speculated,
        reason=why,
    )


def _many_rows(queries: Int, depth: int) -> int:
    """Return the queries of a CTA where they are many."""
    if not isinstance(queries, int) or depth > _SHALLOW:
        return _MANY_ROWS
    few, more = (ceildiv(queries, rows) * rows for rows in (_MANY_ROWS, _MORE_ROWS))
    return _MORE_ROWS if more <= few * _MOST_ADDED else _MANY_ROWS


def _splits(ctas: Int, keys: Int, columns: int, spec: GpuSpec) -> Int:
    """Return among how many CTAs the keys of a tile of queries are divided."""
    most: Int = maximum(keys // max(_SPLIT_KEYS, columns), 1)
    if not isinstance(ctas, int):
        many: Int = minimum(maximum(spec.multiprocessors // ctas, 1), most)
        return many
    if ctas >= _BUSY * spec.multiprocessors:
        return 1
    wanted: Int = minimum(max(spec.multiprocessors // ctas, 2), most)
    if not isinstance(wanted, int) or not isinstance(keys, int):
        return wanted
    blocks = -(-keys // columns)
    return -(-blocks // -(-blocks // wanted))  # splits without keys are left out


def _fits_rings(problem: AttentionProblem) -> bool:
    """Return whether keys and values of a problem can pass through rings that TMA fills."""
    return (
        problem.has_known_sizes
        and not problem.is_ragged
        and not problem.strides
        and all(depth % _DEPTH_UNIT == 0 for depth in (problem.depth, problem.depth_v))
    )
