"""Which kernels have persistent CTAs, and rings that results wait in to be stored.

A persistent CTA's next queries and keys are copied while it still computes, and its results are
stored while it goes on: that is worth most where tiles see few keys.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from lego_mlir.hardware.specs import GpuSpec
from lego_mlir.hardware.targets import Target
from lego_mlir.index import Int
from lego_mlir.kernels.attention.config import AttentionConfig
from lego_mlir.kernels.attention.problem import BYTES, AttentionProblem

_MOST_DEALT = 8192
"""So many tiles of queries that see different numbers of keys the schedule deals to CTAs."""

_QUERY_STAGES, _STORE_PARTS = (2, 1), (1, 2, 4, 8)
"""Stages of the ring of queries, and parts of a tile of results, the best ones first."""

_BARRIER_BYTES = 512


def with_rings(
    problem: AttentionProblem, config: AttentionConfig, tiles: Int, spec: GpuSpec, target: Target
) -> AttentionConfig:
    """Return a config with persistent CTAs where these are faster, and rings for results.

    Args:
        problem: what is computed.
        config: with tiles and splits.
        tiles: of queries, of all heads and sequences; an expression if the launch knows them.
        spec: the card.
        target: its architecture.
    """
    if config.schedule != "attention" or config.is_open:
        return config
    is_persistent = _is_persistent(problem, config, tiles, spec)
    if not (is_persistent or config.is_split):
        return config
    stages = _QUERY_STAGES if is_persistent else _QUERY_STAGES[-1:]
    for query_stages, parts in product(stages, _STORE_PARTS):
        ctas = spec.multiprocessors if is_persistent else 0
        found = replace(
            config, ctas=ctas, query_stages=query_stages, store_stages=1, store_parts=parts
        )
        if _shared_bytes(problem, found) <= target.optin_shared_bytes:
            return found
    return config


def _is_persistent(
    problem: AttentionProblem, config: AttentionConfig, tiles: Int, spec: GpuSpec
) -> bool:
    """Return whether persistent CTAs are faster, and can be dealt programs that take equally long.

    Where only the launch knows the tiles, CTAs run those in pairs that take equally long; where it
    knows the keys alone, that would take a table of what it knows.
    """
    varies = problem.is_ragged or problem.has_lengths or problem.cache is not None
    if varies or config.is_split or problem.arguments:
        return False
    if not isinstance(tiles, int):
        return True
    if problem.mask is None:
        return tiles > spec.multiprocessors
    return problem.has_known_sizes and spec.multiprocessors < tiles <= _MOST_DEALT


def _shared_bytes(problem: AttentionProblem, config: AttentionConfig) -> int:
    """Return the shared memory of a CTA: its rings of queries, keys, values and results."""
    query = config.rows * problem.padded_depth * BYTES[problem.dtype]
    keys = config.columns * (problem.padded_depth + problem.depth_v) * BYTES[problem.dtype_kv]
    out = BYTES["f32" if config.is_split else problem.out]
    result = config.rows * problem.depth_v * out // config.store_parts
    rings = config.query_stages * query + config.stages * keys + config.store_stages * result
    if config.converters:
        rings += config.stages * config.columns * problem.depth_v * BYTES[problem.dtype_kv]
    return rings + config.rows * BYTES["f32"] + _BARRIER_BYTES
