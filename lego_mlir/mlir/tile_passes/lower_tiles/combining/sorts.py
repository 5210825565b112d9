"""Sorts: rounds in which elements meet, and the one that comes first goes to the lower index.

    %s = "lego.sort_with"(%x) ({ ^bb0(%a: f32, %b: f32): ... gpu.yield %is_before : i1 }) {dim = 0}

becomes, for a round in which lane bits differ,

    %other, %ok = gpu.shuffle xor %r, %mask, %c32 : f32
    %comes = arith.cmpf olt, %other, %r
    %goes = arith.cmpf olt, %r, %other
    %takes = arith.select %is_lower, %comes, %goes
    %r1 = arith.select %takes, %other, %r

The plan (`analysis.distributed.sort`) lists the rounds. Both threads of a pair compare, and equal
elements stay where they are, so that no two threads take the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.analysis.distributed import DistributedLayout, plan_sort
from lego_mlir.analysis.distributed.sort import Round
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.combining.combine import Combine, Values
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.shared_memory import store
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.shuffles import shuffle_xor
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import (
    Fragment,
    of_elements,
    once,
    part_types,
    register_factors,
    repeated,
)
from lego_mlir.mlir.tile_passes.lower_tiles.memory import allocate
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads


def sort_tiles(
    held: Sequence[Fragment], dim: int, before: Combine, threads: Threads
) -> list[Fragment]:
    """Build the sort of tiles of one layout along a dimension.

    Args:
        held: one, or several whose elements are sorted together.
        dim: the dimension.
        before: returns, of an element of each and another one of each, whether the first ones come
            before: one i1.
        threads: those of the kernel.

    Raises:
        LegoError: CTAs or threads divide the dimension so that it is not sorted.
    """
    single = [once(tile) for tile in held]
    layout = single[0].layout
    rows = list(zip(*(t.elements() for t in single), strict=True))
    for step in plan_sort(layout, dim).rounds:
        if step.is_local:
            rows = _among_registers(rows, step, before)
        else:
            rows = _among_threads(rows, step, before, layout, dim, threads)
    columns = zip(*rows, strict=True)
    return [
        repeated(of_elements(layout, column), tile.layout)
        for column, tile in zip(columns, held, strict=True)
    ]


def _among_registers(rows: list[Values], step: Round, before: Combine) -> list[Values]:
    """Build the exchanges of a thread's registers, each pair once."""
    found = list(rows)
    for r, p in enumerate(step.partners):
        if p is not None and step.lower[r]:
            (swaps,) = before.apply(rows[p], rows[r])
            found[r] = _chosen(swaps, rows[p], rows[r])
            found[p] = _chosen(swaps, rows[r], rows[p])
    return found


def _among_threads(
    rows: list[Values],
    step: Round,
    before: Combine,
    layout: DistributedLayout,
    dim: int,
    threads: Threads,
) -> list[Values]:
    """Build the exchanges with another thread's registers."""
    if step.coordinate:
        others = _of_other_warps(rows, step, layout, dim, threads)
    else:
        others = [tuple(shuffle_xor(x, step.lanes) for x in row) for row in rows]
    is_lower = None if step.digit is None else threads.is_digit(step.digit, 0)
    found = list(rows)
    for r, p in enumerate(step.partners):
        if p is None:
            continue
        mine, other = rows[r], others[p]
        if is_lower is None:
            pair = (other, mine) if step.lower[r] else (mine, other)
            (takes,) = before.apply(*pair)
        else:
            (comes,), (goes,) = before.apply(other, mine), before.apply(mine, other)
            takes = build.select(is_lower, comes, goes)
        found[r] = _chosen(takes, other, mine)
    return found


def _of_other_warps(
    rows: list[Values], step: Round, layout: DistributedLayout, dim: int, threads: Threads
) -> list[Values]:
    """Build what the thread of another warp holds, through shared memory.

    Raises:
        LegoError: the CTAs of a cluster hold copies of the tile.
    """
    if layout.ctas > 1:
        raise LegoError(
            "a tile that the CTAs of a cluster hold is not sorted between warps",
            hint="launch the kernel without a cluster, or with warps=1",
        )
    memory = layout_attribute(OrderBy(Row(*layout.shape)))
    index = threads.coordinates(layout)
    index[dim] = build.binary("xori", index[dim], build.index(step.coordinate))
    columns = []
    for column in zip(*rows, strict=True):
        tile = of_elements(layout, [build.bool_to_byte(x) for x in column])
        buffer = allocate(memory, tile.element)
        store(tile, buffer, memory, (0,), threads)
        parts = tiles.load_parts(
            part_types(layout, tile.element), buffer, index, memory, register_factors(layout)
        )
        loaded = Fragment(layout, tuple(parts)).elements()
        columns.append([build.byte_to_bool(x) if build.is_bool(column[0]) else x for x in loaded])
    return list(zip(*columns, strict=True))


def _chosen(condition: Any, a: Values, b: Values) -> Values:
    return tuple(build.select(condition, x, y) for x, y in zip(a, b, strict=True))
