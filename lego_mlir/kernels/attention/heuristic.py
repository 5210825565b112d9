"""The heuristic: tiles by depth, packed heads where queries are few, splits where CTAs are."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from lego_mlir.algebra.sizes import ceildiv
from lego_mlir.hardware.specs import GpuSpec
from lego_mlir.hardware.targets import Target
from lego_mlir.index import Int, maximum, minimum
from lego_mlir.kernels.attention.config import AttentionConfig
from lego_mlir.kernels.attention.order import tiles_visited
from lego_mlir.kernels.attention.persistence import with_rings
from lego_mlir.kernels.attention.problem import BYTES, NARROW_UNIT, AttentionProblem

_WARP_ROWS = 16
"""Rows of a warp: those of one instruction."""

_ROWS, _COLUMNS, _DEEP, _DEEP_WARPS = 64, 64, 128, 4
"""Queries of a CTA where they are few, keys of an iteration, the depth from which on these are half
as many, and the warps that share the registers of such tiles."""

_DEEPEST, _DEEPEST_WARPS = 192, 8
"""Up to this depth the registers of four warps hold the tiles of mma.sync and what is loaded ahead;
and the warps of greater depths, which divide the keys of the first dot and the depth of the second,
too."""

_MANY_ROWS = 128
_MANY = {64: (128, 8), 128: (128, 24), 256: (64, 0)}
_MANY_NARROW = {64: (128, 8), 128: (128, 0), 256: (64, 0)}
"""Queries of a CTA where they are many; and by the most depth keys of an iteration, and registers
of speculated exponentials, also where these have 8 bits."""

_SHALLOW, _MORE_ROWS, _MOST_ADDED, _MOST_ADDED_CUT = 64, 192, 1.13, 1.1
"""Up to this depth three warpgroups are faster than two, with up to this factor more scores; the
second one is for masks, which cut more of their tiles."""

_CONVERTERS, _FEW_CONVERTERS, _OPERAND_REGISTERS = 4, 2, 64
"""Warps that transpose values of 8 bits, fewer where tensor cores' instructions need more registers
than so many threads have at the launch; and registers of queries, which shared memory need not be
read for: half of what it can be read at goes to operands in registers."""

_FEW_NARROW_STAGES, _DEEP_NARROW_STAGES = 4, 3
"""Stages of rings of keys and values of 8 bits, where queries are few, so that as many bytes are in
flight as with 16 bits; and where there are half as many keys to an iteration."""

_SPLIT_KEYS, _MANY_KEYS = 128, 512
"""A CTA has so many keys at least, for the combination of splits to cost little, if its queries are
few, or many, and only the launch knows how many CTAs there are."""

_BUSY = 0.75
"""So large a share of the multiprocessors can read as fast as memory is."""

_CTA_BYTES, _MANY_CTA_BYTES = 50e3, 31e3
"""Bytes of keys and values a microsecond that a CTA of few or many queries takes: each iteration
waits for what the one before has computed."""

_SHARPNESS = 4
"""How close the time is to the longer one of two, of the memory and of a CTA: the exponent of a
norm, which is infinite for their maximum."""

_COMBINATION_US, _SPLIT_BYTES = 1.5, 2700e3
"""The time of a second launch, and bytes of splits' results a microsecond, which are stored and
loaded. These and those above were fitted to kernels of 1 to 8 sequences on an H200."""

_COPIES_FROM, _FEW_STAGES, _RING_SHARE = (8, 0), 3, 0.6
"""From this compute capability on there is cp.async; the stages of its rings where queries are few,
if these take no more than this share of a multiprocessor's shared memory."""

_FINEST = "f8E4M3FN"
"""The element type of 8 bits with most bits of fraction."""

_DEPTH_UNIT = 16
"""Values of 16 bits along the depth that one wgmma multiplies."""


def choose(problem: AttentionProblem, spec: GpuSpec, target: Target) -> AttentionConfig:
    """Return the config of an attention kernel on a card."""
    found = _choose_tiles(problem, spec, target)
    if found.rows <= _ROWS:  # CTAs that read all the time gain nothing by more rings
        return found
    return with_rings(problem, found, _tiles(problem, found), spec, target)


def exponentials_of(problem: AttentionProblem, target: Target) -> str | None:
    """Return the element type of exponentials where the caller names none; `None` for 16 bits.

    Who gives 8 bits for all inputs wants their speed, and 3 bits of fraction hold exponentials as
    well as they hold values. With 2 bits of fraction, or without wgmma, exponentials have 16 bits.
    """
    page = NARROW_UNIT if problem.cache is None else problem.cache.page
    is_narrow = problem.dtype == problem.dtype_kv == _FINEST
    fits = target.has_wgmma and page % NARROW_UNIT == 0
    return _FINEST if is_narrow and fits else None


def _choose_tiles(problem: AttentionProblem, spec: GpuSpec, target: Target) -> AttentionConfig:
    """Return a config's schedule, tiles and splits."""
    # Where only the launch knows how many queries there are, they are taken for many.
    queries = problem.queries if isinstance(problem.queries, int) else _MANY_ROWS
    packed = problem.group > 1 and queries < _ROWS
    depth = max(problem.depth, problem.depth_v)
    rows = queries * (problem.group if packed else 1)
    if not (target.has_wgmma and _fits_rings(problem)):
        return _by_mma(problem, spec, target, rows, packed=packed)
    page = _MANY_ROWS if problem.cache is None else problem.cache.page
    is_cast = problem.dtype_kv != problem.computed or problem.dtype_kv != problem.dtype
    few = _config(problem, spec, _ROWS, "pipelined", packed=packed)
    if problem.is_narrow and not is_cast and depth <= _DEEP and page % few.columns == 0:
        few = replace(few, schedule="attention", stages=_FEW_NARROW_STAGES, converters=_CONVERTERS)
    if rows <= _ROWS:
        return few
    if is_cast or page < _COLUMNS:
        # Values are converted on their way to the second dot, which cannot come late then; nor can
        # the dots of several pages.
        return _config(problem, spec, _MANY_ROWS, "pipelined", packed=packed)
    size = _many_rows(problem, depth, spec, packed=packed)
    many = _config(problem, spec, size, "attention", packed=packed)
    if problem.is_narrow:
        many = _with_converters(problem, many, depth)
    if rows > _MANY_ROWS or _is_busy(_tiles(problem, many), spec) or many.is_open:
        return many
    return min(few, many, key=lambda config: _microseconds(problem, config, spec))


def _with_converters(
    problem: AttentionProblem, config: AttentionConfig, depth: int
) -> AttentionConfig:
    """Return the config of exponentials of 8 bits, whose values warps of their own transpose."""
    # Threads of three warpgroups have so few registers that none are left for what begins early.
    is_tight, is_deep = config.rows > _MANY_ROWS, depth > _DEEP
    return replace(
        config,
        converters=_FEW_CONVERTERS if is_tight or is_deep else _CONVERTERS,
        operand_registers=_OPERAND_REGISTERS,
        speculated=0 if is_tight else config.speculated,
        # Dots of such depths leave so much time that warpgroups need not take turns.
        turns=0 if is_deep else config.turns,
        stages=_DEEP_NARROW_STAGES if is_deep and problem.mask is None else config.stages,
    )


def _by_mma(
    problem: AttentionProblem, spec: GpuSpec, target: Target, rows: int, *, packed: bool
) -> AttentionConfig:
    """Return the config of a kernel whose dots are mma.sync, for so many rows of a head of keys."""
    # Where the numbers of pages are loaded, copies do not come iterations before their use.
    is_copied = _fits_rings(problem) and problem.cache is None
    is_copied = is_copied and problem.dtype_kv == problem.computed
    if not is_copied or target.capability < _COPIES_FROM:
        size = min(_ROWS, max(_WARP_ROWS, 1 << (rows - 1).bit_length()))
        return _config(problem, spec, size, None, packed=packed)
    if rows > _ROWS and max(problem.depth, problem.depth_v) <= _SHALLOW:
        # Two rows of instructions in a warp: what is loaded of keys and values serves both.
        return replace(_config(problem, spec, _MANY_ROWS, "cp_async", packed=packed), warps=4)
    found = _config(problem, spec, _ROWS, "cp_async", packed=packed)
    if max(problem.depth, problem.depth_v) > _DEEPEST:
        found = replace(found, warps=_DEEPEST_WARPS)
    stage = found.columns * (problem.depth + problem.depth_v) * BYTES[problem.dtype_kv]
    has_room = _FEW_STAGES * stage <= _RING_SHARE * spec.sm_shared_bytes
    return replace(found, stages=_FEW_STAGES) if rows <= _ROWS and has_room else found


def _config(
    problem: AttentionProblem, spec: GpuSpec, rows: int, schedule: str | None, *, packed: bool
) -> AttentionConfig:
    """Return the config of tiles of so many rows, with its splits."""
    depth = max(problem.depth, problem.depth_v)
    least, speculated, warps = _SPLIT_KEYS, 0, rows // _WARP_ROWS
    if schedule == "attention":
        least = _MANY_KEYS
        tiles_of = _MANY_NARROW if problem.is_narrow else _MANY
        columns, speculated = next(n for most, n in tiles_of.items() if depth <= most)
    else:
        columns = _COLUMNS if depth <= _DEEP else _COLUMNS // 2
        if schedule is None and depth > _SHALLOW:  # keys and values are in registers
            columns //= 2
            warps = max(warps, _DEEP_WARPS if depth > _DEEP else 1)
    page = columns if problem.cache is None else problem.cache.page
    if page % columns and (schedule == "attention" or columns % page):
        columns = gcd(_COLUMNS, columns, page)
    if problem.scale_block is not None:  # a tile of keys has one number
        columns = gcd(columns, problem.scale_block, page)
    found = AttentionConfig(
        rows,
        columns,
        warps,
        packed,
        schedule=schedule,
        speculated=speculated,
    )
    tiles = _tiles(problem, found)
    why = f"{tiles} tiles of queries for {spec.multiprocessors} multiprocessors"
    if isinstance(problem.queries, int):
        found = _divided(problem, found, least, spec)
    return replace(found, reason=why)


def _many_rows(problem: AttentionProblem, depth: int, spec: GpuSpec, *, packed: bool) -> int:
    """Return the queries of a CTA where they are many."""
    if not problem.has_known_sizes or depth > _SHALLOW or packed:
        return _MANY_ROWS
    columns, _ = _MANY[_SHALLOW]
    tiles = {rows: ceildiv(problem.queries, rows) for rows in (_MANY_ROWS, _MORE_ROWS)}
    if problem.batch * problem.heads * tiles[_MORE_ROWS] < spec.multiprocessors:
        return _MANY_ROWS
    # What is around the iterations takes as long as one.
    few, more = (
        n * rows * (tiles_visited(problem, rows, columns) + 1) for rows, n in tiles.items()
    )
    most = _MOST_ADDED if problem.mask is None else _MOST_ADDED_CUT
    return _MORE_ROWS if more <= few * most else _MANY_ROWS


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


def _divided(
    problem: AttentionProblem, config: AttentionConfig, least: int, spec: GpuSpec
) -> AttentionConfig:
    """Return a config with the splits of keys that take the least time.

    Args:
        problem: what is computed.
        config: without splits.
        least: keys of each, about, where only the launch knows how many CTAs there are.
        spec: the card.
    """
    tiles, keys, columns = _tiles(problem, config), problem.keys, config.columns
    if not (isinstance(tiles, int) and isinstance(keys, int)):
        if isinstance(tiles, int) and _is_busy(tiles, spec):
            return config
        most: Int = maximum(keys // max(least, columns), 1)
        wanted = maximum(spec.multiprocessors // tiles, 2 if isinstance(tiles, int) else 1)
        open_: Int = minimum(wanted, most)
        return replace(config, splits=open_)
    if _is_busy(tiles, spec):
        return config
    blocks = ceildiv(keys, columns)
    wanted = min(blocks, max(spec.multiprocessors // tiles, 2))
    # Splits without keys are left out.
    counts = {ceildiv(blocks, ceildiv(blocks, n)) for n in range(1, wanted + 1)}
    configs = (replace(config, splits=n) for n in sorted(counts))
    return min(configs, key=lambda config: _microseconds(problem, config, spec))


def _microseconds(problem: AttentionProblem, config: AttentionConfig, spec: GpuSpec) -> float:
    """Return what a kernel of known sizes takes, besides its launch, whose CTAs run at once."""
    sizes = problem.batch, problem.queries, problem.keys, config.splits
    batch, queries, keys, splits = (n for n in sizes if isinstance(n, int))
    key_bytes = (problem.depth + problem.depth_v) * BYTES[problem.dtype_kv]
    memory = batch * problem.heads_kv * keys * key_bytes / (spec.memory_gb_per_s * 1e3)
    iterations = ceildiv(ceildiv(keys, config.columns), splits)
    rate = _CTA_BYTES if config.rows <= _ROWS else _MANY_CTA_BYTES
    waiting = iterations * config.columns * key_bytes / rate
    reading = (memory**_SHARPNESS + waiting**_SHARPNESS) ** (1 / _SHARPNESS)
    if splits == 1:
        return float(reading)
    rows = batch * problem.heads * queries
    passed = 2 * splits * rows * problem.depth_v * BYTES["f32"]
    return float(reading + _COMBINATION_US + passed / _SPLIT_BYTES)


def _fits_rings(problem: AttentionProblem) -> bool:
    """Return whether keys and values of a problem can pass through rings that TMA fills."""
    return problem.depth == problem.padded_depth and problem.depth_v % _DEPTH_UNIT == 0
