"""The heuristic: tiles by depth, packed heads where queries are few, splits where CTAs are."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

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
_MANY = {64: (128, 8), 128: (128, 24), 256: (64, 0)}
"""Queries of a CTA where they are many; and by the most depth keys of an iteration, and registers
of speculated exponentials."""

_SHALLOW, _MORE_ROWS, _MOST_ADDED = 64, 192, 1.13
"""Up to this depth three warpgroups are faster than two, with up to this factor more rows."""

_SPLIT_KEYS, _MANY_KEYS = 128, 512
"""A CTA has so many keys at least, for the combination of splits to cost little, if its queries are
few, or many."""

_BUSY = 0.75
"""So large a share of the multiprocessors can read as fast as memory is."""

_DEPTH_UNIT = 16
"""Values of 16 bits along the depth that one wgmma multiplies."""


def choose(problem: AttentionProblem, spec: GpuSpec, target: Target) -> AttentionConfig:
    """Return the config of an attention kernel on a card."""
    # Where only the launch knows how many queries there are, they are taken for many.
    queries = problem.queries if isinstance(problem.queries, int) else _MANY_ROWS
    packed = problem.group > 1 and queries < _ROWS
    depth = max(problem.depth, problem.depth_v)
    rows = queries * (problem.group if packed else 1)
    if not (target.has_wgmma and _fits_rings(problem)):
        size = min(_ROWS, max(_WARP_ROWS, 1 << (rows - 1).bit_length()))
        return _config(problem, spec, size, None, packed=packed)
    few = _config(problem, spec, _ROWS, "pipelined", packed=packed)
    if rows <= _ROWS:
        return few
    if problem.dtype_kv != problem.computed:
        # Values are converted on their way to the second dot, which cannot come late then.
        return _config(problem, spec, _MANY_ROWS, "pipelined", packed=packed)
    many = _config(problem, spec, _many_rows(problem.queries, depth), "attention", packed=packed)
    is_busy = _is_busy(_tiles(problem, many) * many.splits, spec)
    return many if is_busy or rows > _MANY_ROWS else few


def _config(
    problem: AttentionProblem, spec: GpuSpec, rows: int, schedule: str | None, *, packed: bool
) -> AttentionConfig:
    """Return the config of tiles of so many rows, with its splits."""
    depth = max(problem.depth, problem.depth_v)
    least, speculated = _SPLIT_KEYS, 0
    if schedule == "attention":
        least = _MANY_KEYS
        columns, speculated = next(n for most, n in _MANY.items() if depth <= most)
    else:
        columns = _COLUMNS if depth <= _DEEP else _COLUMNS // 2
    if problem.cache is not None and problem.cache.page % columns:
        columns = gcd(_COLUMNS, columns, problem.cache.page)
    found = AttentionConfig(
        rows,
        columns,
        rows // _WARP_ROWS,
        packed,
        schedule=schedule,
        speculated=speculated,
    )
    tiles = _tiles(problem, found)
    why = f"{tiles} tiles of queries for {spec.multiprocessors} multiprocessors"
    is_divided = isinstance(problem.queries, int) and not problem.is_ragged
    splits = _splits(tiles, problem.keys, columns, least, spec) if is_divided else 1
    return replace(found, splits=splits, reason=why)


def _many_rows(queries: Int, depth: int) -> int:
    """Return the queries of a CTA where they are many."""
    if not isinstance(queries, int) or depth > _SHALLOW:
        return _MANY_ROWS
    few, more = (ceildiv(queries, rows) * rows for rows in (_MANY_ROWS, _MORE_ROWS))
    return _MORE_ROWS if more <= few * _MOST_ADDED else _MANY_ROWS


def _tiles(problem: AttentionProblem, config: AttentionConfig) -> Int:
    """Return the tiles of queries of all heads and sequences."""
    heads, group = problem.heads, 1
    if config.packed:
        heads, group = problem.heads_kv, problem.group
    tiles: Int = problem.batch * heads * ceildiv(problem.queries * group, config.rows)
    return tiles


def _is_busy(ctas: Int, spec: GpuSpec) -> bool:
    """Return whether CTAs keep the memory busy; where only the launch knows them, they do."""
    return not isinstance(ctas, int) or ctas >= _BUSY * spec.multiprocessors


def _splits(tiles: Int, keys: Int, columns: int, least: int, spec: GpuSpec) -> Int:
    """Return among how many CTAs the keys of a tile of queries are divided.

    Args:
        tiles: of queries.
        keys: of a sequence.
        columns: keys of an iteration.
        least: keys that each has, about.
        spec: the card.
    """
    most: Int = maximum(keys // max(least, columns), 1)
    if not isinstance(tiles, int):
        open_: Int = minimum(maximum(spec.multiprocessors // tiles, 1), most)
        return open_
    if _is_busy(tiles, spec):
        return 1
    wanted: Int = minimum(max(spec.multiprocessors // tiles, 2), most)
    if not isinstance(wanted, int) or not isinstance(keys, int):
        return wanted
    blocks = -(-keys // columns)
    return -(-blocks // -(-blocks // wanted))  # splits without keys are left out


def _fits_rings(problem: AttentionProblem) -> bool:
    """Return whether keys and values of a problem can pass through rings that TMA fills."""
    return problem.depth == problem.padded_depth and problem.depth_v % _DEPTH_UNIT == 0
