"""A GEMM as a program on tiles, whose pipeline the steps of a schedule make.

    i, j = rasterization.inv(block_id())
    total = fold(iterations, zeros, dot(a.tile(m, k)[i, step], b.tile(k, n)[step, j], total))
    c.tile(m, n)[i, j] = epilogue(total)

The body says nothing of shared memory, roles or instructions: layouts of tiles, in registers and in
shared memory, are derived. With a config for `wgmma` the schedule is `persistent`, and
`schedule_params` are the parameters of its steps. With one for `mma.sync` the accumulator has a
layout, because the config says how warps divide it.

Of split-K through a cluster the body says what each CTA of a cluster computes:

    total = fold(iterations of a slice of k, ...)
    own = reduce_scatter(total)                            the CTA's slice of the columns
    c.tile(m, n // split_k)[i, j * split_k + rank] = epilogue(own)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, Signature
from math import gcd, prod
from typing import Any, cast

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.analysis.distributed.mma_grids import accumulator as accumulator_layout
from lego_mlir.analysis.distributed.tensor_cores import wgmma_accumulator
from lego_mlir.frontend import (
    ScalarType,
    Tile,
    Value,
    block_id,
    convert,
    dot,
    fill,
    fold,
    reduce_scatter,
    zeros,
)
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES, MMA_COLUMNS, WGMMA_ROWS
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.kernel import (
    Epilogue,
    Matrices,
    Operand,
    TiledGemm,
    check_epilogue_result,
)
from lego_mlir.kernels.gemm.matrices import transposed
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig

_BARRIER_BYTES = 1024
"""Shared memory for barriers, and for aligning what follows them."""

_MOST_CONVERTED = 64
"""Elements of a tile of C that a thread converts at once, at most, if the next tile follows."""

_COLUMNS = 16
"""Columns of a tile come in multiples of so many, but where a config says otherwise."""

_STORE_STAGES = 4
"""Parts of a tile of C that wait to be stored, at most."""

_SHORT_ROW = 5
"""Accesses of 16 bytes of a row that lanes store as soon as TMA does, whichever lane has them. Of 7
they take 4 % longer on an H200 (bench/results/gemm_cluster.jsonl)."""

_LEAST_STAGES = 2
"""Stages of the ring of these parts, also if a tile has one, where they fit."""


def tile_multiple(config: WgmmaConfig) -> int:
    """Return what divides the sizes of the tiles that have these in registers, too."""
    return gcd(config.tile[1] // config.column_slices, _COLUMNS)


def schedule_params(
    config: WgmmaConfig,
    problem: Problem,
    target: Target,
    *,
    stores_by_tma: bool = False,
    stores_by_threads: bool = False,
) -> dict[str, int]:
    """Return the parameters of the schedule for a config.

    Args:
        config: the config.
        problem: the GEMM that the kernel computes.
        target: the GPU architecture.
        stores_by_tma: whether TMA stores C in any case, as if CTAs had several tiles.
        stores_by_threads: whether TMA does not take the rows of C.
    """
    cluster = prod(config.cluster)
    ctas = config.persistent_ctas or (config.work_items(problem) if cluster > 1 else 0)
    is_ring = stores_by_tma or config.persistent_ctas > 0
    # The last of the CTAs that share a tile stores it, in a branch.
    by_threads = stores_by_threads or config.sums_through_l2
    padding = MAX_ACCESS_BYTES if stores_by_threads else 0
    stages, parts = _store_ring(
        config, problem, target, is_ring=is_ring, by_threads=by_threads, padding=padding
    )
    return {
        **config.params(problem),
        "split_k": config.split_k if config.sums_through_l2 else 1,
        "ctas": ctas,
        "raster_group": 1,  # the rasterization is in the body
        "cluster": cluster,
        "cluster_rows": 1,  # slices of K are rows of the grid, and those of a tile no cluster
        "store_stages": stages,
        "store_parts": parts,
        "in_order": int(config.deterministic),
        "overlap_epilogue": int(config.overlap_epilogue),
        "ping_pong": int(config.ping_pong),
    }


def _store_ring(
    config: WgmmaConfig,
    problem: Problem,
    target: Target,
    *,
    is_ring: bool,
    by_threads: bool,
    padding: int,
) -> tuple[int, int]:
    """Return the stages of the ring from which a tile of C is stored, and the parts of the tile.

    A part is as wide as a row of the widest swizzle. There is no ring if a CTA has one tile, which
    fits in shared memory: all its threads then store it at once, sooner than one warp by TMA, but
    for a slice of a tile of which each lane would store another row. Two stages, of narrower parts
    if need be, are better than one: a part is put while another one is stored. If threads have to
    store it, its parts are as few as fit, with so many bytes of padding for each row in shared
    memory.
    """
    is_whole = by_threads or config.column_slices == 1 or _stores_sectors(config, problem)
    stored = partial(_stored_bytes, element=ELEMENT_BYTES[problem.out], padding=padding)
    free, size = _free_bytes(config, problem, target), ELEMENT_BYTES[problem.out]
    m, n = config.stored_tile
    if not is_ring and is_whole and stored(m, n) <= free:
        return 0, 1
    if by_threads:
        blocks, most = n // MMA_COLUMNS, _MOST_CONVERTED * config.threads
        counts = (p for p in range(1, blocks + 1) if blocks % p == 0)
        room = free // (config.consumers // config.sharers)  # of each that stores at a time
        fitting = (p for p in counts if m * (n // p) <= most and stored(m, n // p) <= room)
        return 0, next(fitting, blocks)
    parts = config.epilogue_tiles(problem) // (m // config.sharers // WGMMA_ROWS)
    if free < 2 * m * (n // parts) * size and n // parts % (2 * MMA_COLUMNS) == 0:
        parts *= 2
    most = max(_LEAST_STAGES, min(_STORE_STAGES, parts))
    return max(1, min(most, free // (m * (n // parts) * size))), parts


def _stores_sectors(config: WgmmaConfig, problem: Problem) -> bool:
    """Return whether neighbouring lanes store whole sectors of C, or a row of a tile is short.

    Lanes divide a row's accesses of 16 bytes by powers of two: where their number is odd, each lane
    stores another row.
    """
    m, n = config.stored_tile
    accesses = (n if problem.c == "row" else m) * ELEMENT_BYTES[problem.out] // MAX_ACCESS_BYTES
    return accesses <= _SHORT_ROW or accesses % 2 == 0


def _stored_bytes(m: int, n: int, *, element: int, padding: int) -> int:
    """Return the bytes of shared memory of a part of a tile of C, at most.

    Args:
        m: its rows.
        n: its columns.
        element: bytes of an element.
        padding: of each row or column in shared memory, in bytes.
    """
    return m * n * element + padding * max(m, n)


def _free_bytes(config: WgmmaConfig, problem: Problem, target: Target) -> int:
    """Return the bytes of shared memory that are left beside the operands' rings."""
    m, n, k = config.tile
    ring = config.stages * (m + n) * k * ELEMENT_BYTES[problem.dtype]
    return target.optin_shared_bytes - ring - config.received_bytes - _BARRIER_BYTES


def instruction_of(config: GemmConfig) -> dict[str, Any]:
    """Return what `lego_mlir.dot` takes for a config: the instruction that multiplies."""
    return {"instruction": "mma.sync" if isinstance(config, MmaConfig) else "wgmma"}


def first_sums(config: GemmConfig, accumulator: str) -> Value:
    """Build the zeros with which the K loop begins, placed if the config says how.

    Args:
        config: the config.
        accumulator: the element type.
    """
    zero = zeros(config.tile[:2], accumulator)
    if not isinstance(config, MmaConfig):
        return zero
    return convert(cast("Tile", zero), accumulator_layout(config.tile[:2], config.warps))


def tile_body(
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
    problem, config = gemm.problem, gemm.config
    m, n, k = config.tile
    layout_a, layout_b, layout_c = matrices
    ctas = config.column_slices if isinstance(config, WgmmaConfig) else 1
    iterations = -(-config.k_iterations(problem) // ctas)

    def matmul(a: Any, b: Any, c: Any, **values: Any) -> None:
        first, second = (b, a) if gemm.is_transposed else (a, b)
        left = first.view(layout_a).tile(m, k)
        right = second.view(layout_b).tile(k, n)
        number, rank = block_id(), None
        if ctas > 1:
            number, rank = OrderBy(Row(gemm.rasterization.size, ctas)).inv(number)
        *batch, i, j = gemm.rasterization.inv(number)
        batch = batch or [block_id("y")] * gemm.batch_rank

        @fold(iterations, first_sums(config, accumulator))
        def total(step: Any, total: Any) -> Value:
            if rank is not None:
                step = rank * iterations + step
            operands = left[(*batch, i, step)], right[(*batch, step, j)]
            if rank is not None:  # the last slice may run beyond the end of k
                operands = fill(operands[0], 0), fill(operands[1], 0)
            return dot(*operands, total, **instruction_of(config))

        result = total
        if rank is not None:
            result = reduce_scatter(cast("Tile", total))
            j = OrderBy(Row(gemm.rasterization.dims[-1], ctas)).apply(j, rank)
        if epilogue is not None:
            tiles = {
                name: _operand_tile(value, operands[name], gemm, (i, j))
                for name, value in values.items()
            }
            result = epilogue(result, **tiles)
            check_epilogue_result(result)
        c.view(layout_c).tile(m, n // ctas)[(*batch, i, j)] = result.to(problem.out)

    names = ("a", "b", "c", *operands)
    matmul.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return matmul


def _operand_tile(value: Any, kind: Operand, gemm: TiledGemm, index: tuple[Any, Any]) -> Any:
    """Return the tile of an epilogue operand that belongs to a tile of C.

    Args:
        value: the operand.
        kind: its parameter.
        gemm: the GEMM.
        index: of the tile of C, down and across.
    """
    if isinstance(kind, ScalarType):
        return value
    config = gemm.config
    layout, tile = kind.layout, config.tile[:2]
    if isinstance(config, WgmmaConfig):
        tile = config.stored_tile
    if layout.rank == 1:  # the same for every row of C
        axis = 0 if gemm.is_transposed else 1
        found = value.tile(tile[axis])[index[axis]]
        return found[:, None] if gemm.is_transposed else found
    if gemm.is_transposed:
        layout = transposed(layout)
    sizes = [1 if n == 1 else size for n, size in zip(layout.dims, tile, strict=True)]
    at = [0 if n == 1 else i for n, i in zip(layout.dims, index, strict=True)]
    grid = value.view(layout).tile(*sizes)
    if isinstance(config, WgmmaConfig) and tuple(sizes) == tile:
        # Through shared memory it would take the room of the operands' rings.
        grid = grid.placed(wgmma_accumulator(tile, (config.sharers, 1)))
    return grid[tuple(at)]
