"""When the launch behind a permutation begins: programmatic dependent launch."""

from __future__ import annotations

from typing import Literal

from lego_mlir.frontend import barrier, launch_dependents

_SMALL_BYTES = 3584
"""Bytes of the largest tiles that are moved so fast that the next launch may begin when their CTAs
do (measured on an H200, bench/results/permute_dependent.jsonl)."""

_TINY_BYTES, _FEW_CTAS = 2560, 8192
"""Bytes of tiles up to which a launch of more CTAs is not dependent: with dependent launches an
H200 begins a CTA every 1.2 ns, in which its memory moves two such tiles."""


def dependence(tile_bytes: int) -> Literal[True, "wait"]:
    """Return `pdl` of a kernel whose CTAs move tiles of so many bytes through shared memory.

    The next launch begins when the tiles are there, or as soon as it may where they are small.
    Where all CTAs run at once, those of a launch that began earlier take longer.
    """
    return True if tile_bytes <= _SMALL_BYTES else "wait"


def dependent_ctas(tile_bytes: int) -> int:
    """Return `pdl_ctas` of a kernel whose CTAs move tiles of so many bytes; 0 for any number."""
    return _FEW_CTAS if tile_bytes <= _TINY_BYTES else 0


def complete_tile(tile_bytes: int) -> None:
    """Wait until all threads have written a tile in shared memory, and let the next launch begin.

    Args:
        tile_bytes: as of `dependence`.
    """
    barrier()
    if dependence(tile_bytes) == "wait":
        launch_dependents()
