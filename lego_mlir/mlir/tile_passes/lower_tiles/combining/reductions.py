"""Reductions: a tree in registers, butterfly shuffles, and partial results of other warps.

    %m = "lego.reduce"(%x) {kind = "max", dim = 1 : i64} : (tensor<4x256xf32, #D>) -> ...

becomes, for 8 registers a thread of 32 lanes,

    %v = arith.maximumf %x0, %x1 : vector<4xf32>
    ...                                                      and among the elements of %v
    %other, %ok = gpu.shuffle xor %r, %c16, %c32 : f32       for 16, 8, 4, 2, 1
    %r1 = arith.maximumf %r, %other : f32

The plan (`analysis.distributed.reduction`) follows from the layout alone. Every thread that has an
element of a row gets the row's result: the result's layout is the quotient.

The greatest of numbers that are extended is the greatest of the shorter ones, extended: where a
tile is an extension of bf16 or f16, registers are combined before it, two elements by an
instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.analysis.distributed import DistributedLayout, Place, plan_reduction, reduced
from lego_mlir.analysis.distributed.reduction import Butterfly, Gather, Tree
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.tile_ir.types import bytes_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.combining.combine import Combine, Values
from lego_mlir.mlir.tile_passes.lower_tiles.conversions import convert_together
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.shuffles import shuffle_xor
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import (
    Fragment,
    of_elements,
    part_type,
    part_width,
)
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads

_SHORT_BYTES = 2
"""Bytes of elements of which an instruction combines two with two others."""


def reduce_tiles(
    tiles: Sequence[Fragment],
    dim: int,
    combine: Combine,
    threads: Threads,
    short: Fragment | None = None,
) -> list[Fragment]:
    """Build the reduction of tiles of one layout along a dimension.

    Args:
        tiles: one, or several whose elements are combined together.
        dim: the dimension.
        combine: what combines two elements of each.
        threads: those of the kernel.
        short: what the one tile is an extension of, if combining its elements gives the same.

    Returns:
        The results, in the quotient of the layout.
    """
    held = list(tiles)
    plan = plan_reduction(held[0].layout, dim, max(bytes_of(t.element) for t in held))
    for number, step in enumerate(plan.steps):
        layout = held[0].layout
        match step:
            case Tree():
                is_short = short is not None and number == 0
                combined = [short] if short is not None and is_short else held
                combined = _tree(combined, step, _reduced_registers(layout, dim), combine)
                held = [_extended(t, held[0].element) for t in combined] if is_short else combined
            case Butterfly():
                held = [t.renamed(layout) for t in _butterfly(held, step, combine)]
            case Gather():
                # Lanes have been combined: what the plan converts has the same elements.
                source, target = step.conversion.source, step.conversion.target
                held = convert_together([t.renamed(source) for t in held], target, threads)
    return [t.renamed(plan.result) for t in held]


def _extended(tile: Fragment, element: Any) -> Fragment:
    """Build the extension of a tile to a type of wider elements."""
    kind = part_type(tile.layout, element)
    return Fragment(tile.layout, tuple(build.make("arith.extf", kind, p) for p in tile.parts))


def _reduced_registers(layout: DistributedLayout, dim: int) -> DistributedLayout:
    """Return the layout after the registers of a dimension have been combined."""
    return reduced(layout, dim, (Place.REGISTER,))


def _tree(
    held: Sequence[Fragment], step: Tree, layout: DistributedLayout, combine: Combine
) -> list[Fragment]:
    """Build the combinations of registers, of whole parts where groups are made of parts."""
    width = part_width(held[0].layout)
    shapes = [_rectangle(group, width) for group in step.groups]
    if combine.takes_vectors and width > 1 and None not in shapes:
        (tile,) = held
        vectors = {}
        elements = []
        for shape in shapes:
            assert shape is not None
            parts, inside = shape
            if parts not in vectors:
                (vector,) = combine.tree([(tile.parts[p],) for p in parts])
                if len(inside) == width and bytes_of(tile.element) == _SHORT_BYTES:
                    vector = _by_pairs(vector, combine)
                vectors[parts] = build.to_elements(vector)
            elements.append(combine.tree([(x,) for x in _picked(vectors[parts], inside)]))
    else:
        rows = list(zip(*(t.elements() for t in held), strict=True))
        elements = [combine.tree([rows[r] for r in group]) for group in step.groups]
    return [of_elements(layout, column) for column in zip(*elements, strict=True)]


def _by_pairs(vector: Any, combine: Combine) -> Any:
    """Build the combination of the halves of a vector, until it has two elements.

    An instruction combines two elements of 2 bytes with two others.
    """
    count = vector.type.shape[0]
    while count > 2 and count % 2 == 0:
        count //= 2
        low, high = (_slice(vector, first, count) for first in (0, count))
        (vector,) = combine.apply((low,), (high,))
    return vector


def _slice(vector: Any, first: int, count: int) -> Any:
    """Build the vector of some neighbouring elements of a vector."""
    numbers = {"offsets": first, "sizes": count, "strides": 1}
    i64 = ir.IntegerType.get_signless(64)
    attributes = {
        name: ir.ArrayAttr.get([ir.IntegerAttr.get(i64, n)]) for name, n in numbers.items()
    }
    kind = build.vector_type(count, vector.type.element_type)
    return build.make("vector.extract_strided_slice", kind, vector, **attributes)


def _picked(elements: Sequence[Any], inside: Sequence[int]) -> Sequence[Any]:
    """Return those elements of a vector that are combined: all, if that has been halved."""
    return elements if len(elements) < len(inside) else [elements[k] for k in inside]


def _rectangle(group: Sequence[int], width: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the parts, and the elements in each of them, whose product a group of registers is.

    `None` if the group has other elements in one part than in another.
    """
    parts = tuple(dict.fromkeys(r // width for r in group))
    inside = tuple(dict.fromkeys(r % width for r in group))
    is_product = {(p, k) for p in parts for k in inside} == {divmod(r, width) for r in group}
    return (parts, inside) if is_product else None


def _butterfly(held: Sequence[Fragment], step: Butterfly, combine: Combine) -> list[Fragment]:
    """Build the rounds in which every lane combines its values with those of another lane."""
    is_warp = sorted(step.masks) == [1 << k for k in range(WARP_THREADS.bit_length() - 1)]
    made: dict[Values, Values] = {}
    if combine.takes_vectors and combine.redux is None:
        rows = list(zip(*(t.parts for t in held), strict=True))
        for row in dict.fromkeys(rows):
            made[row] = _rounds(row, step, combine)
        columns = list(zip(*(made[row] for row in rows), strict=True))
        return [Fragment(t.layout, tuple(c)) for t, c in zip(held, columns, strict=True)]
    rows = list(zip(*(t.elements() for t in held), strict=True))
    for row in dict.fromkeys(rows):
        if is_warp and combine.redux is not None:
            made[row] = (_redux(combine.redux, row[0]),)
        else:
            made[row] = _rounds(row, step, combine)
    columns = list(zip(*(made[row] for row in rows), strict=True))
    return [of_elements(t.layout, c) for t, c in zip(held, columns, strict=True)]


def _rounds(row: Values, step: Butterfly, combine: Combine) -> Values:
    for mask in step.masks:
        other = tuple(shuffle_xor(x, mask) for x in row)
        row = combine.apply(row, other)
    return row


def _redux(kind: str, value: object) -> object:
    """Build the reduction of an i32 over the warp, where the target has it one instruction."""
    attributes = {
        "op": ir.Attribute.parse(f"#gpu<all_reduce_op {kind}>"),
        "uniform": ir.UnitAttr.get(),
    }
    return build.make("gpu.subgroup_reduce", build.i32(), value, **attributes)
