"""The body of a GEMM kernel for few columns of C: what a thread does; see `gemv_config`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from itertools import product
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.frontend import Value, barrier, block_id, fold, loop, shared, thread_id, zeros
from lego_mlir.hardware.limits import MMA_COLUMNS
from lego_mlir.index import minimum
from lego_mlir.kernels.gemm.gemv_config import GROUPS, HALVES, THREADS, GemvConfig
from lego_mlir.kernels.gemm.gemv_fragments import AcrossK, AlongK, Place
from lego_mlir.kernels.gemm.kernel import (
    Epilogue,
    Matrices,
    Operand,
    TiledGemm,
    check_epilogue_result,
    operand_tile,
)
from lego_mlir.kernels.gemm.matrices import subdivided, tile_index

_PAIR = 2
"""Neighbouring elements of a row of the accumulator that a lane holds."""


def gemv_body(
    gemm: TiledGemm,
    config: GemvConfig,
    matrices: Matrices,
    accumulator: str,
    epilogue: Epilogue | None,
    operands: Mapping[str, Operand],
) -> Callable[..., None]:
    """Return the function of the kernel, whose parameters are a, b, c and the operands.

    Args:
        gemm: the GEMM; `config` is its config.
        config: the config.
        matrices: the layouts of the problem's matrices.
        accumulator: the element type of the accumulator.
        epilogue: computes C from the accumulator; `None` to store the accumulator.
        operands: the parameters that the epilogue takes.
    """
    problem = gemm.problem
    fragments = (AlongK if problem.a == "row" else AcrossK)(problem, config, matrices)
    lanes = OrderBy(Row(*config.warps, GROUPS, THREADS))
    k_tile = config.tile[2]
    iterations = max(1, problem.k // k_tile)  # of whole tiles, but at least one

    def matmul(a: Any, b: Any, c: Any, **values: Any) -> None:
        x, y = (b, a) if gemm.is_transposed else (a, b)
        *batch, i, j = gemm.rasterization.inv(block_id())
        batch = batch or [block_id("y")] * gemm.batch_rank
        down, along, group, thread = lanes.inv(thread_id())
        place = Place(batch, (i, j), (down, along), group, thread)
        totals = tuple(zeros((HALVES * _PAIR,), accumulator) for _ in fragments.tiles)

        def step(n: Any, *carried: Value) -> tuple[Value, ...]:
            following = fragments.load(x, y, place, n)
            totals, chunks = carried[: len(fragments.tiles)], carried[len(fragments.tiles) :]
            return (*fragments.multiply(chunks, totals), *following)

        # An iteration loads the chunks of the next one. So they are in flight while it multiplies,
        # and the assembler cannot put off loads until registers of others are free.
        chunks = fragments.load(x, y, place, 0)
        if iterations > 1:
            carried = fold(iterations, (*totals, *chunks), start=1)(step)
            totals, chunks = carried[: len(totals)], carried[len(totals) :]
        if iterations * k_tile < problem.k:
            totals = fragments.multiply(chunks, totals)
            chunks = fragments.load(x, y, place, iterations)
        totals = fragments.multiply(chunks, totals)
        _store(gemm, config, matrices[2], c, place, totals, epilogue, (operands, values))

    names = ("a", "b", "c", *operands)
    matmul.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return matmul


# ------------------------------------------------------------------------------- reduction
def _store(
    gemm: TiledGemm,
    config: GemvConfig,
    layout: Layout,
    c: Any,
    place: Place,
    totals: Sequence[Value],
    epilogue: Epilogue | None,
    operands: tuple[Mapping[str, Operand], Mapping[str, Any]],
) -> None:
    """Add the accumulators of the warps along k, and store C; every thread has some elements."""
    problem = gemm.problem
    rows, columns, _ = config.tile
    down, along = config.warps
    tiles, groups = config.row_tiles(problem), config.column_tiles()
    of_tile = config.row_layout(problem)
    dtype = str(totals[0].ssa.type.element_type)
    own = OrderBy(Row(along, groups, down, tiles, HALVES, GROUPS, THREADS, _PAIR))
    sums = shared(dtype, own)
    for (row, column), total in zip(product(range(tiles), range(groups)), totals, strict=True):
        for half in range(HALVES):
            at = (place.warp[1], column, place.warp[0], row, half, place.group, place.thread)
            sums[*at, :] = total[[half * _PAIR, half * _PAIR + 1]]
    barrier()
    count = rows * columns
    elements = OrderBy(Row(groups, down, tiles, HALVES, GROUPS, MMA_COLUMNS))
    by_warp = sums.view(OrderBy(Row(along, count, 1, 1)))
    out = c.view(subdivided(layout, (rows, columns)))
    whole_rows = OrderBy(Row(config.tiles(problem)[0], rows))
    whole_columns = OrderBy(Row(config.tiles(problem)[1], columns))
    kinds, values = operands
    for n in loop(count, start=thread_id(), step=config.threads):
        total = by_warp[0, n, :, :]
        for warp in range(1, along):
            total = total + by_warp[warp, n, :, :]
        group, warp_row, tile, half, lane, in_group = elements.inv(n)
        row = of_tile.apply(warp_row, tile, half, lane)
        column = OrderBy(Row(groups, MMA_COLUMNS)).apply(group, in_group)
        i, j = place.tile
        result = total
        if epilogue is not None:
            element = (
                gemm.at(minimum(whole_rows.apply(i, row), problem.m - 1)),
                gemm.at(minimum(whole_columns.apply(j, column), problem.n - 1)),
            )
            found = {
                name: operand_tile(value, kinds[name], gemm, (1, 1), element)
                for name, value in values.items()
            }
            result = epilogue(total, **found)
            check_epilogue_result(result)
        out[tile_index(place.batch, (i, j), (row, column))] = result.to(problem.out)[0, 0]
