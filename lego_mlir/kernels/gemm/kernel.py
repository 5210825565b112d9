"""The body of a GEMM kernel: what a CTA does, written for its whole tile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any, TypeAlias

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import ScalarType, TensorType, Value, block_id, dot, fold, zeros
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.matrices import tiled, transposed
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig

Epilogue: TypeAlias = Callable[..., Value]
"""A function from the accumulator tile, and the tiles of the epilogue's operands, to C's tile."""

Operand: TypeAlias = TensorType | ScalarType
"""A parameter of the kernel that only its epilogue uses."""

TileIndex: TypeAlias = tuple[Any, ...]
"""The index of a tile along a dimension: its number; or its group's, and its number in that."""

Matrices: TypeAlias = tuple[Layout, Layout, Layout]
"""The layouts of A, B and C."""


@dataclass(frozen=True, slots=True)
class TiledGemm:
    """A GEMM with its config and its rasterization.

    Attributes:
        problem: the GEMM that the kernel computes.
        config: its config.
        rasterization: the layout from a CTA's id to its tile of C, (down, across) or (GEMM, down,
            across). In the first case a CTA's id along y is its position in the batch.
        batch_rank: the number of dimensions before those of the matrices: 1 in a batch, else 0.
        is_transposed: whether the kernel computes the transpose of C, so that the operand A of the
            problem is the kernel's parameter b, and B is a.
        stores_by_threads: whether threads store C, whose rows TMA does not take.
        workspaces: the names of the config's workspaces, which the kernel takes last.
    """

    problem: Problem
    config: GemmConfig
    rasterization: Layout
    batch_rank: int
    is_transposed: bool
    stores_by_threads: bool = False
    workspaces: tuple[str, ...] = ()

    @property
    def padding(self) -> tuple[int, int]:
        """The tiles, down and across, of which the grid has a multiple."""
        return self.config.padding(self.problem)

    @property
    def is_padded(self) -> bool:
        """Whether there may be tiles outside of C; a tile's index then has two levels."""
        return self.padding != (1, 1)

    def tiled(self, layout: Layout, tiles: Sequence[int], groups: Sequence[int]) -> Layout:
        """Return the layout of a tensor of tiles, in groups if the grid is padded."""
        return tiled(layout, groups, tiles) if self.is_padded else tiled(layout, tiles)

    def at(self, number: Any) -> TileIndex:
        """Return the index of a tile along a dimension whose groups have one tile."""
        return (number, 0) if self.is_padded else (number,)


def gemm_body(
    gemm: TiledGemm,
    matrices: Matrices,
    accumulator: str,
    epilogue: Epilogue | None,
    operands: Mapping[str, Operand],
) -> Callable[..., None]:
    """Return the function of the kernel, whose parameters are a, b, c and the operands.

    Args:
        gemm: the GEMM.
        matrices: the layouts of the problem's matrices.
        accumulator: the element type of the accumulator.
        epilogue: computes C's tile from the accumulator; `None` to store the accumulator.
        operands: the parameters that the epilogue takes.
    """
    problem, config, batch_rank = gemm.problem, gemm.config, gemm.batch_rank
    assert isinstance(config, WgmmaConfig), "others are programs on tiles"
    m, n, k = config.tile
    ones, whole = (1,) * batch_rank, (*(0,) * batch_rank, slice(None), slice(None))
    down, across = gemm.padding
    sizes = ((m, k), (k, n), (m, n))
    groups = ((down, 1), (1, across), (down, across))
    tiles_a, tiles_b, tiles_c = (
        gemm.tiled(layout, (*ones, *size), (*ones, *group))
        for layout, size, group in zip(matrices, sizes, groups, strict=True)
    )
    shared_a, shared_b, shared_c = config.shared_layouts(problem)
    if gemm.stores_by_threads:
        shared_c = config.thread_stored_layout(problem)
    warps = config.warp_layout

    def matmul(a: Any, b: Any, c: Any, **values: Any) -> None:
        x, y = (b, a) if gemm.is_transposed else (a, b)
        batch, i, j = _tile_index(gemm)

        @fold(config.k_iterations(problem), zeros((m, n), accumulator))
        def total(step: Any, total: Any) -> Value:
            steps = gemm.at(step)
            left = x.view(tiles_a).staged(shared_a)[*_by_level(*batch, i, steps), *whole]
            right = y.view(tiles_b).staged(shared_b)[*_by_level(*batch, steps, j), *whole]
            return dot(left, right, total, warps=warps)

        result = total
        if epilogue is not None:
            tiles = {
                name: operand_tile(value, operands[name], gemm, config.tile[:2], (i, j))
                for name, value in values.items()
            }
            result = epilogue(total, **tiles)
            check_epilogue_result(result)
        written = c.view(tiles_c).staged(shared_c, by_threads=gemm.stores_by_threads)
        written[*_by_level(*batch, i, j), *whole] = result.to(problem.out)

    names = ("a", "b", "c", *operands)
    matmul.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return matmul


def check_epilogue_result(result: object) -> None:
    """Check that an epilogue has returned a kernel value.

    Raises:
        LegoError: it has not.
    """
    if not isinstance(result, Value):
        raise LegoError(
            f"the epilogue of the GEMM returned {result!r}, not a kernel value",
            hint="return the tile of C: lambda x: lg.relu(x)",
        )


def _tile_index(gemm: TiledGemm) -> tuple[list[TileIndex], TileIndex, TileIndex]:
    """Return the index of a CTA's tile along the dimensions of the batch, rows and columns."""
    layout = gemm.rasterization
    if gemm.is_padded:
        layout = tiled(layout, ((1,) * (layout.rank - 2)) + gemm.padding)
    index = layout.inv(block_id())
    rank = gemm.rasterization.rank
    *batch, i, j = (tuple(index[k::rank]) for k in range(rank))
    return batch or [gemm.at(block_id("y"))] * gemm.batch_rank, i, j


def _by_level(*index: TileIndex) -> tuple[Any, ...]:
    """Return an index of several dimensions as a tiled layout takes it, level by level."""
    return tuple(number for level in zip(*index, strict=True) for number in level)


def operand_tile(
    value: Any,
    kind: Operand,
    gemm: TiledGemm,
    tile: tuple[int, int],
    tile_index: tuple[TileIndex, TileIndex],
) -> Any:
    """Return the tile of an epilogue operand that belongs to a tile of C.

    Args:
        value: the operand.
        kind: its parameter.
        gemm: the GEMM.
        tile: rows and columns of the tile of C.
        tile_index: the tile's index, down and across.
    """
    if isinstance(kind, ScalarType):
        return value
    layout = kind.layout
    if layout.rank == 1:  # the same for every row of C
        axis = 0 if gemm.is_transposed else 1
        tiles = gemm.tiled(layout, [tile[axis]], [gemm.padding[axis]])
        found = value.view(tiles)[*tile_index[axis], :]
        return found[:, None] if gemm.is_transposed else found
    if gemm.is_transposed:
        layout = transposed(layout)
    sizes = [1 if n == 1 else size for n, size in zip(layout.dims, tile, strict=True)]
    groups = [1 if n == 1 else size for n, size in zip(layout.dims, gemm.padding, strict=True)]
    outer = [gemm.at(0) if n == 1 else i for n, i in zip(layout.dims, tile_index, strict=True)]
    inner = [0 if n == 1 else slice(None) for n in layout.dims]
    found = value.view(gemm.tiled(layout, sizes, groups))[*_by_level(*outer), *inner]
    is_column = layout.dims[1] == 1 and layout.dims[0] != 1
    return found[:, None] if is_column else found
