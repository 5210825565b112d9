"""The tiles of several GEMMs in one launch, on tiles or staged in shared memory by threads.

A kernel is a program on tiles with a `MmaConfig`, or if its config says `on_tiles`; `tile_program`
is the one for a GEMM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.frontend import Value, arange, restrict, zeros
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm import tile_program
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.matrices import tile_index, tiled_matrices
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig


def is_on_tiles(config: GemmConfig) -> bool:
    """Return whether the kernel of a config is a program on tiles."""
    return not isinstance(config, WgmmaConfig) or config.on_tiles is True


def steps_of(
    config: GemmConfig,
    problem: Problem,
    target: Target,
    *,
    pdl: bool = True,
    stores_by_tma: bool = False,
) -> dict[str, Any]:
    """Return what `lego_mlir.kernel` takes for a config: threads, schedule and parameters.

    Args:
        config: the config.
        problem: one of the GEMMs.
        target: the GPU architecture.
        pdl: whether the launch may use programmatic dependent launch.
        stores_by_tma: whether TMA stores C of a program on tiles, however many tiles a CTA has;
            else threads do.

    Raises:
        LegoError: the config says `on_tiles`, and there are no steps for it.
    """
    warps = config.threads // WARP_THREADS
    if not isinstance(config, WgmmaConfig) or not is_on_tiles(config):
        params = config.grouped_params(problem, pdl=pdl)
        if is_on_tiles(config):
            return {"warps": warps, "pdl": pdl, "schedule": MmaConfig.steps, "params": params}
        return {"block": config.threads, "schedule": config.schedule, "params": params}
    why_not = tile_program.why_no_tile_program(config, problem)
    if why_not is not None:
        raise why_not
    params = tile_program.schedule_params(
        config,
        problem,
        target,
        stores_by_tma=stores_by_tma,
        stores_by_threads=not stores_by_tma,
    )
    return {
        "warps": warps,
        "tile_multiple": tile_program.tile_multiple(config),
        "schedule": tile_program.SCHEDULE,
        "params": params,
        "pdl": pdl,
    }


def instruction_of(config: GemmConfig) -> dict[str, Any]:
    """Return what `lego_mlir.dot` takes for a config: the instruction, or the layout of warps."""
    if not isinstance(config, WgmmaConfig) or is_on_tiles(config):
        return tile_program.instruction_of(config)
    return {"warps": config.warp_layout}


def first_sums(config: GemmConfig, accumulator: str) -> Value:
    """Build the zeros with which the K loop begins, of an element type."""
    if is_on_tiles(config):
        return tile_program.first_sums(config, accumulator)
    return zeros(config.tile[:2], accumulator)


def layout_in_tiles(config: GemmConfig, layout: Layout, tile: Sequence[int]) -> Layout:
    """Return the layout through which a kernel sees a matrix that it has in tiles.

    Args:
        config: the kernel's.
        layout: of the matrix; dimensions before those of the tile have an index.
        tile: rows and columns.
    """
    if is_on_tiles(config):
        return layout
    return tiled_matrices(layout, tile)


def staged_layouts(config: GemmConfig, problem: Problem) -> dict[str, Layout | None]:
    """Return the layouts of the tiles of a, b and c in shared memory, if threads stage them."""
    if not isinstance(config, WgmmaConfig) or is_on_tiles(config):
        return dict.fromkeys("abc")
    return dict(zip("abc", config.shared_layouts(problem), strict=True))


class Tiles:
    """The tiles of a matrix: `tiles[i, j]`.

    Args:
        config: the kernel's.
        tensor: the matrix, through its `layout_in_tiles`.
        tile: rows and columns.
        shared: the layout of a tile in shared memory, for threads that stage it; else `None`.
    """

    def __init__(
        self, config: GemmConfig, tensor: Any, tile: Sequence[int], shared: Layout | None
    ) -> None:
        is_whole = is_on_tiles(config)
        self._tiles = tensor.tile(*tile) if is_whole else tensor.staged(shared)
        self._is_whole = is_whole
        self._rows = tile[0]

    def __getitem__(self, index: tuple[Any, ...]) -> Any:
        return self._tiles[self._at(index)]

    def __setitem__(self, index: tuple[Any, ...], value: Any) -> None:
        self._tiles[self._at(index)] = value

    def store(self, index: tuple[Any, Any], value: Any, first: Any, last: Any) -> None:
        """Store the rows of a tile that are from `first` to `last`, exclusive, of the matrix."""
        if not self._is_whole:
            self._tiles.rows(first, last)[self._at(index)] = value
            return
        row = index[0] * self._rows + arange(self._rows)
        self._tiles[index] = restrict(value, ((row >= first) & (row < last))[:, None])

    def _at(self, index: tuple[Any, ...]) -> tuple[Any, ...]:
        if self._is_whole:
            return index
        *lead, i, j = index
        return tile_index(lead, (i, j), (slice(None), slice(None)))
