"""Tensor maps of slices: the boxes that TMA copies wherever a slice of a tensor begins.

    OrderBy(Row(384, 384, 384)).GroupBy([384, 384, 96, 4])   56 rows of 26 words, in shared memory
    OrderBy(Row(56, 26, 4))

    shape (384, 384, 384)   strides (1536, 589824)   box (104, 56, 1)

`tma_boxes` has the tiles of a grid, which begin at multiples of their sizes.

Source: PTX ISA 5.5 (tensors, boxes, fill of what is out of bounds).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import prod

import numpy as np

from lego_mlir.algebra import Layout
from lego_mlir.algebra.slices import Slice
from lego_mlir.analysis.instructions.tma_boxes import TensorMapBoxes, map_of, strides_of
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import construct


def slice_boxes(
    layout: Layout,
    extents: Sequence[int],
    whole: Sequence[bool],
    shared: Slice,
    order: Sequence[int],
    element: int,
) -> tuple[TensorMapBoxes, tuple[tuple[int, ...], ...]]:
    """Derive a tensor map whose boxes copy a slice of a tensor, wherever the slice begins.

    Neighbouring dimensions that are one run of memory become one dimension of the map if the slice
    has all of the inner ones. So the words of a row make a box as wide as the row.

    Args:
        layout: of the tensor, of known or symbolic size; it has strides.
        extents: of the slice along each dimension of the layout, 1 where it has an index.
        whole: for each of these, whether the slice has all of it, from index 0 on.
        shared: the slice in shared memory.
        order: for each dimension of `shared` the dimension of the layout.
        element: bytes of an element.

    Returns:
        The map with its boxes, and for each of its dimensions, in the order that the boxes' `dims`
        count, the dimensions of the layout that it is made of.

    Raises:
        LegoError: TMA cannot copy such slices.
    """
    shape, strides = strides_of(layout)
    groups: list[tuple[int, ...]] = []
    for d, n in enumerate(shape):
        is_run = d > 0 and strides[d - 1] == construct.mul(n, strides[d])
        if is_run and whole[d]:
            groups[-1] = (*groups[-1], d)
        else:
            groups.append((d,))
    placed = np.asarray(shared.offsets(), dtype=np.int64).transpose(np.argsort(order))
    sizes = [prod(extents[d] for d in group) for group in groups]
    found = map_of(
        layout,
        [functools.reduce(construct.mul, (shape[d] for d in group)) for group in groups],
        [strides[group[-1]] for group in groups],
        placed.reshape(sizes),
        element,
        1,
    )
    if found is None:
        raise LegoError(
            f"TMA cannot write {list(shared.shape)} elements of '{layout}' as '{shared}' in shared "
            "memory",
            hint="what is contiguous in global memory is so in shared memory, in rows of a "
            "multiple of 16 bytes, one below the other; it begins at a multiple of 128",
        )
    return found, tuple(groups)
