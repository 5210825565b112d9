"""The body of a GEMM kernel for few columns of C: what a thread does; see `gemv.config`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from itertools import product
from math import prod
from typing import Any

from lego_mlir.algebra import GenP, Layout, OrderBy, Row, ceildiv, swizzle
from lego_mlir.frontend import (
    ScalarType,
    Value,
    atomic_add,
    atomic_exchange,
    barrier,
    block_id,
    choose,
    fence,
    fold,
    loop,
    shared,
    thread_id,
    zeros,
)
from lego_mlir.hardware.limits import MMA_COLUMNS
from lego_mlir.index import minimum
from lego_mlir.kernels.gemm.gemv.chunks import GROUPS, HALVES, THREADS, shift_classes
from lego_mlir.kernels.gemm.gemv.config import GemvConfig
from lego_mlir.kernels.gemm.gemv.fragments import AcrossK, AlongK, Fragments, Place
from lego_mlir.kernels.gemm.gemv.packing import PACKED
from lego_mlir.kernels.gemm.gemv.shifted import ShiftedAcrossK, ShiftedAlongK
from lego_mlir.kernels.gemm.kernel import (
    Epilogue,
    Matrices,
    Operand,
    TiledGemm,
    check_epilogue_result,
)
from lego_mlir.kernels.gemm.matrices import tiled, transposed
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
    """Return the function of the kernel: of a, b, c, the operands and the config's workspaces.

    Args:
        gemm: the GEMM; `config` is its config.
        config: the config.
        matrices: the layouts of the problem's matrices.
        accumulator: the element type of the accumulator.
        epilogue: computes C from the accumulator; `None` to store the accumulator.
        operands: the parameters that the epilogue takes.
    """
    problem = gemm.problem
    lanes = OrderBy(Row(*config.warps, GROUPS, THREADS))

    def matmul(a: Any, b: Any, c: Any, **values: Any) -> None:
        x, y = (b, a) if gemm.is_transposed else (a, b)
        *batch, i, j = gemm.rasterization.inv(block_id())
        batch = batch or [block_id("y")] * gemm.batch_rank
        down, along, group, thread = lanes.inv(thread_id())
        k_warp = OrderBy(Row(config.split_k, config.warps[1])).apply(block_id("z"), along)
        sizes = c.view(matrices[2]).shape[-2:]
        place = Place(batch, (i, j), (down, k_warp), along, group, thread, sizes)
        packed = values.pop(PACKED, None)
        memory = [values.pop(name) for name in gemm.workspaces if name != PACKED]
        fragments = _fragments(problem, config, matrices, packed)
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
        sums = _summed(config, problem, fragments, place, totals)
        output = _Output(gemm, config, fragments, place, epilogue, (operands, values))
        if memory:
            _store_last(sums, output, memory, c.view(matrices[2]))
            return
        for element in output.elements():
            output.store(c.view(matrices[2]), element, sums(element.number))

    names = ("a", "b", "c", *operands, *gemm.workspaces)
    matmul.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return matmul


def _fragments(problem: Problem, config: GemvConfig, matrices: Matrices, packed: Any) -> Fragments:
    """Return how a warp loads its fragments."""
    if shift_classes(problem) > 1:
        shifted = ShiftedAlongK if problem.a == "row" else ShiftedAcrossK
        return shifted(problem, config, matrices, packed)
    return (AlongK if problem.a == "row" else AcrossK)(problem, config, matrices)


# ------------------------------------------------------------------------------- reduction
def _summed(
    config: GemvConfig,
    problem: Problem,
    fragments: Fragments,
    place: Place,
    totals: Sequence[Value],
) -> Callable[[Any], Value]:
    """Add the accumulators of the CTA's warps along k, through shared memory.

    Args:
        config: the config.
        problem: the GEMM.
        fragments: how warps load.
        place: where the thread is.
        totals: the thread's accumulators, by `mma` tile.

    Returns:
        A function from the number of an element of the CTA's tile to its sum, a tile of 1×1.
    """
    tiles, groups = config.row_tiles(problem), config.column_tiles()
    sums = shared(str(totals[0].ssa.type.element_type), _sums_layout(config, problem))
    for (tile, column), own in zip(product(range(tiles), range(groups)), totals, strict=True):
        for half in range(HALVES):
            at = (place.along, column, place.warp[0], tile, half, place.group, place.thread)
            sums[*at, :] = own[[half * _PAIR, half * _PAIR + 1]]
    barrier()
    of_tile = config.row_layout(problem)
    of_warp = sums.view(_sums_layout(config, problem, (MMA_COLUMNS, 1, 1)))
    elements = OrderBy(Row(groups, config.output_rows(problem), MMA_COLUMNS))

    def sum_of(number: Any) -> Value:
        group, row, in_group = elements.inv(number)
        parts = []
        for warp in range(config.warps[1]):
            of_row = of_tile.inv(fragments.tile_row(row, warp))
            parts.append(of_warp[warp, group, *of_row, in_group, :, :])
        return functools.reduce(operator.add, parts)

    return sum_of


@dataclass(frozen=True, slots=True)
class _Element:
    """An element of a CTA's tile of C.

    Attributes:
        number: in the tile.
        inside: its row and column in C; those of the last one if it lies beyond.
        is_outside: 1 if it lies beyond C's last row or column, else 0.
    """

    number: Any
    inside: list[Any]
    is_outside: Any


@dataclass(frozen=True, slots=True)
class _Output:
    """The elements of a CTA's tile of C, and what is stored of each.

    Attributes:
        gemm: the GEMM.
        config: its config.
        fragments: how warps load.
        place: where the thread is.
        epilogue: computes C from the accumulator; `None` to store the accumulator.
        operands: the types and the values of the epilogue's operands.
    """

    gemm: TiledGemm
    config: GemvConfig
    fragments: Fragments
    place: Place
    epilogue: Epilogue | None
    operands: tuple[Mapping[str, Operand], Mapping[str, Any]]

    @property
    def count(self) -> int:
        """The elements of a CTA's tile."""
        config, problem = self.config, self.gemm.problem
        return config.column_tiles() * config.output_rows(problem) * MMA_COLUMNS

    def elements(self) -> Iterator[_Element]:
        """Make a loop over the thread's elements, and yield the one of its body."""
        problem, config, tile = self.gemm.problem, self.config, self.place.tile
        rows, groups = config.output_rows(problem), config.column_tiles()
        in_tile = OrderBy(Row(groups, rows, MMA_COLUMNS))
        whole_columns = OrderBy(Row(config.tiles(problem)[1], groups, MMA_COLUMNS))
        sizes = (problem.m, problem.n)
        wholes = (self.fragments.c_rows, whole_columns)
        for number in loop(self.count, start=thread_id(), step=config.threads):
            group, row, in_group = in_tile.inv(number)
            element = (
                self.fragments.global_row(tile[0], row),
                whole_columns.apply(tile[1], group, in_group),
            )
            inside = [minimum(i, n - 1) for i, n in zip(element, self.place.sizes, strict=True)]
            outside = [
                OrderBy(Row(ceildiv(whole.size, size), size)).inv(i)[0]
                for whole, i, size in zip(wholes, element, sizes, strict=True)
            ]
            yield _Element(number, inside, minimum(outside[0] + outside[1], 1))

    def store(self, c: Any, element: _Element, total: Value) -> None:
        """Store an element if it lies in C.

        Args:
            c: the matrix.
            element: which one.
            total: its accumulator.
        """
        result = total
        if self.epilogue is not None:
            result = _epilogue(self.epilogue, total, self.gemm, element.inside, self.operands)

        def write() -> None:
            stored = result.to(self.gemm.problem.out)[0, 0]
            c[*self.place.batch, *element.inside] = stored

        choose(element.is_outside, [write, _nothing])


def _store_last(
    sums: Callable[[Any], Value], output: _Output, memory: Sequence[Any], c: Any
) -> None:
    """Add the sums to those of the other slices of k in memory; the last CTA stores C.

    The barriers and the fences beside the atomic update order all of it: what threads add comes
    before their CTA's arrival, and what the last CTA loads comes after all arrivals. Both buffers
    hold zeros again when the kernel ends.

    Args:
        sums: returns an element's sum over the CTA's own slice.
        output: the elements of the CTA's tile.
        memory: the sums of all slices, and how many CTAs have added to them, by tile.
        c: the matrix.
    """
    gemm, config, place = output.gemm, output.config, output.place
    down, across = config.tiles(gemm.problem)
    tile = OrderBy(Row(gemm.problem.batch, down, across)).apply(*(place.batch or [0]), *place.tile)
    added, arrivals = memory
    accumulator = added.dtype
    added = added.view(OrderBy(Row(gemm.problem.batch * down * across, output.count, 1, 1)))
    for element in output.elements():
        number = element.number
        own = sums(number)[0, 0]

        def add(number: Any = number, own: Value = own) -> None:
            atomic_add(added, (tile, number, 0, 0), own)

        choose(element.is_outside, [add, _nothing])
    barrier()
    arrived = shared("i32", OrderBy(Row(1)))
    is_other = minimum(thread_id(), 1)

    def arrive() -> None:
        fence()
        arrived[0] = atomic_add(arrivals, tile, 1)
        fence()

    choose(is_other, [arrive, _nothing])
    barrier()

    def finish() -> None:
        for element in output.elements():
            total = added[tile, element.number, :, :]
            added[tile, element.number, :, :] = zeros((1, 1), accumulator)
            output.store(c, element, total)

        def reset() -> None:
            atomic_exchange(arrivals, tile, 0)

        choose(is_other, [reset, _nothing])

    missing = config.split_k - 1 - arrived[0].below(config.split_k)
    choose(minimum(missing, 1), [finish, _nothing])


def _nothing() -> None:
    """Do nothing."""


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
    found = {name: _operand(value, kinds[name], gemm, element) for name, value in values.items()}
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


def _operand(value: Any, kind: Operand, gemm: TiledGemm, element: Sequence[Any]) -> Any:
    """Return what belongs to an element of C of an epilogue operand: a number, or 1×1 of them.

    Args:
        value: the operand.
        kind: its parameter.
        gemm: the GEMM.
        element: the row and the column.
    """
    if isinstance(kind, ScalarType):
        return value
    layout = kind.layout
    if layout.rank == 1:  # the same for every row of C
        axis = 0 if gemm.is_transposed else 1
        found = value.view(tiled(layout, [1]))[element[axis], :]
        return found[:, None] if gemm.is_transposed else found
    if gemm.is_transposed:
        layout = transposed(layout)
    outer = [0 if n == 1 else i for n, i in zip(layout.dims, element, strict=True)]
    inner = [0 if n == 1 else slice(None) for n in layout.dims]
    found = value.view(tiled(layout, [1, 1]))[*outer, *inner]
    is_column = layout.dims[1] == 1 and layout.dims[0] != 1
    return found[:, None] if is_column else found
