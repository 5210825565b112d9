"""The body of a GEMM kernel for few columns of C: what a thread does; see `gemv.config`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from itertools import product
from math import prod
from typing import Any

from lego_mlir.algebra import GenP, Layout, OrderBy, Row, ceildiv, swizzle
from lego_mlir.frontend import (
    Value,
    barrier,
    block_id,
    choose,
    fold,
    loop,
    shared,
    thread_id,
    zeros,
)
from lego_mlir.hardware.limits import MMA_COLUMNS
from lego_mlir.index import minimum
from lego_mlir.kernels.gemm.gemv.config import GROUPS, HALVES, THREADS, GemvConfig, shift_classes
from lego_mlir.kernels.gemm.gemv.fragments import AcrossK, AlongK, Fragments, Place
from lego_mlir.kernels.gemm.gemv.shifted import ShiftedAcrossK, ShiftedAlongK
from lego_mlir.kernels.gemm.kernel import (
    Epilogue,
    Matrices,
    Operand,
    TiledGemm,
    check_epilogue_result,
    operand_tile,
)
from lego_mlir.kernels.gemm.problem import Problem

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
    fragments = _fragments(problem, config, matrices)
    lanes = OrderBy(Row(*config.warps, GROUPS, THREADS))

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
        rest = fragments.rest(x, y, place)
        iterations = fragments.iterations
        chunks = fragments.load(x, y, place, 0) if iterations else rest.pop(0)()
        if iterations > 1:
            carried = fold(iterations, (*totals, *chunks), start=1)(step)
            totals, chunks = carried[: len(totals)], carried[len(totals) :]
        for load in rest:
            following = load()
            totals, chunks = fragments.multiply(chunks, totals), following
        totals = fragments.multiply(chunks, totals)
        _store(gemm, config, fragments, matrices[2], c, place, totals, epilogue, (operands, values))

    names = ("a", "b", "c", *operands)
    matmul.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return matmul


def _fragments(problem: Problem, config: GemvConfig, matrices: Matrices) -> Fragments:
    """Return how a warp loads its fragments."""
    is_shifted = shift_classes(problem) > 1
    if problem.a == "row":
        return (ShiftedAlongK if is_shifted else AlongK)(problem, config, matrices)
    return (ShiftedAcrossK if is_shifted else AcrossK)(problem, config, matrices)


# ------------------------------------------------------------------------------- reduction
def _store(
    gemm: TiledGemm,
    config: GemvConfig,
    fragments: Fragments,
    layout: Layout,
    c: Any,
    place: Place,
    totals: Sequence[Value],
    epilogue: Epilogue | None,
    operands: tuple[Mapping[str, Operand], Mapping[str, Any]],
) -> None:
    """Add the accumulators of the warps along k, and store C; every thread has some elements."""
    problem = gemm.problem
    along = config.warps[1]
    tiles, groups = config.row_tiles(problem), config.column_tiles()
    sums = shared(str(totals[0].ssa.type.element_type), _sums_layout(config, problem))
    for (tile, column), own in zip(product(range(tiles), range(groups)), totals, strict=True):
        for half in range(HALVES):
            at = (place.warp[1], column, place.warp[0], tile, half, place.group, place.thread)
            sums[*at, :] = own[[half * _PAIR, half * _PAIR + 1]]
    barrier()
    rows = config.output_rows(problem)
    of_tile = config.row_layout(problem)
    elements = OrderBy(Row(groups, rows, MMA_COLUMNS))
    count = groups * rows * MMA_COLUMNS
    of_warp = sums.view(_sums_layout(config, problem, (MMA_COLUMNS, 1, 1)))
    whole_columns = OrderBy(Row(config.tiles(problem)[1], groups, MMA_COLUMNS))
    sizes = (problem.m, problem.n)
    for n in loop(count, start=thread_id(), step=config.threads):
        group, row, in_group = elements.inv(n)
        parts = []
        for warp in range(along):
            of_row = of_tile.inv(fragments.tile_row(row, warp))
            parts.append(of_warp[warp, group, *of_row, in_group, :, :])
        total = functools.reduce(operator.add, parts)
        element = (
            fragments.global_row(place.tile[0], row),
            whole_columns.apply(place.tile[1], group, in_group),
        )
        inside = [minimum(i, size - 1) for i, size in zip(element, sizes, strict=True)]
        result = total if epilogue is None else _epilogue(epilogue, total, gemm, inside, operands)

        def write(result: Value = result, inside: Sequence[Any] = inside) -> None:
            c.view(layout)[*place.batch, *inside] = result.to(problem.out)[0, 0]

        outside = [
            OrderBy(Row(ceildiv(whole.size, size), size)).inv(i)[0]
            for whole, i, size in zip(
                (fragments.c_rows, whole_columns), element, sizes, strict=True
            )
        ]
        choose(minimum(outside[0] + outside[1], 1), [write, lambda: None])


def _epilogue(
    epilogue: Epilogue,
    total: Value,
    gemm: TiledGemm,
    element: Sequence[Any],
    operands: tuple[Mapping[str, Operand], Mapping[str, Any]],
) -> Value:
    """Return what the epilogue makes of the accumulator of an element of C, a tile of 1×1.

    Args:
        epilogue: the caller's function.
        total: the accumulator.
        gemm: the GEMM.
        element: its row and column.
        operands: the types and the values of the epilogue's operands.
    """
    kinds, values = operands
    at = (gemm.at(element[0]), gemm.at(element[1]))
    found = {
        name: operand_tile(value, kinds[name], gemm, (1, 1), at) for name, value in values.items()
    }
    result = epilogue(total, **found)
    check_epilogue_result(result)
    return result


def _sums_layout(
    config: GemvConfig, problem: Problem, columns: Sequence[int] = (THREADS, _PAIR)
) -> Layout:
    """Return the layout of the warps' accumulators in shared memory, without bank conflicts.

    Lanes write the rows of their groups, and read rows that follow one another, which may be those
    of one group. So groups are XORed with the number of the row in its group.

    Args:
        config: the config.
        problem: the GEMM.
        columns: how the eight columns of an `mma` tile are indexed.
    """
    sizes = [config.warps[1], config.column_tiles(), config.warps[0], config.row_tiles(problem)]
    sizes += [HALVES, GROUPS]
    rows = prod(sizes[:-1])
    swizzled = min(GROUPS, rows & -rows)  # a power of two
    order = GenP([swizzled, GROUPS * MMA_COLUMNS], swizzle(MMA_COLUMNS, 1, swizzled))
    return OrderBy(Row(rows // swizzled), order).GroupBy([*sizes, *columns])
