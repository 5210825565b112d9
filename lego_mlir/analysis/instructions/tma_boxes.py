"""Tensor maps and boxes from layouts, for TMA copies between global and shared memory.

The tensor's layout gives shape and strides, the tile gives the box, and the tile's layout in shared
memory gives the swizzle mode. A box is at most one swizzled row wide, so a tile may take several.

    OrderBy(Row(4096, 4096)).TileBy([32, 64], [128, 64])   a tile of f16, in shared memory
    OrderBy(GenP([128, 64], tma_swizzle(128, 2)))

    shape (4096, 4096)   strides (8192,)   box (64, 128)   swizzle 128

Sizes of the tensor may be symbols, which the launch knows. What TMA demands of a stride must then
follow from what is promised to divide them.

Dimensions of a map go from the innermost to the outermost, as in the driver's call and in the
coordinates of the instructions.

Source: PTX ISA 5.5 (tensors, boxes, swizzling modes); CUDA driver API, cuTensorMapEncodeTiled.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod
from typing import Any, cast

import numpy as np

from lego_mlir.algebra import Layout
from lego_mlir.algebra.slices import Slice
from lego_mlir.algebra.strided import StridedLayout
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import CACHE_LINE_BYTES, MAX_BOX_SIZE
from lego_mlir.hardware.swizzle import MODES, alignment, swizzled
from lego_mlir.index import Expr, Int, construct, evaluate, symbols

_ALIGN = 16
"""Bytes that strides and the width of a box are multiples of."""

_RANKS = (1, 5)
_MOST_ELEMENTS = 1 << 31
"""Along a dimension: coordinates are signed and have 32 bits (PTX ISA 9.7.9.25)."""

_TYPICAL_SIZE = 1 << 20

_STRIDES_END = 1 << 40
"""Bytes (CUDA driver API, cuTensorMapEncodeTiled)."""

L2_PROMOTION = CACHE_LINE_BYTES
"""Bytes that a read should bring into the L2 cache at least: a line. Two lines fetch parts of other
rows, or what the tile's next box reads anyway: 99 GEMMs whose rows are whole lines took 0.97 to
1.05 times as long with them on an H200, 1.005 times in the geometric mean, and others up to 1.2."""


@dataclass(frozen=True, slots=True)
class Box:
    """One TMA copy, of a box of the tile.

    Attributes:
        at: coordinates of the box's first element in the tile, innermost first.
        offset: that element's offset in the tile's shared memory before swizzling, in elements.
    """

    at: tuple[int, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class TensorMapBoxes:
    """The tensor map of a tensor, and the boxes of each tile.

    Attributes:
        dims: the tensor's dimensions in the layout's order, innermost first.
        shape: elements of the tensor; they may be expressions of symbols.
        strides: bytes from one element to the next, of all dimensions but the innermost; they may
            be expressions, too.
        box: shape of a box, in elements.
        swizzle: 0, 32, 64 or 128 bytes.
        boxes: boxes that make up one tile.
    """

    dims: tuple[int, ...]
    shape: tuple[Int, ...]
    strides: tuple[Int, ...]
    box: tuple[int, ...]
    swizzle: int
    boxes: tuple[Box, ...]

    @property
    def alignment(self) -> int:
        """Alignment of the tile in shared memory, in bytes."""
        return alignment(self.swizzle)


@functools.lru_cache(maxsize=64)
def tensor_map_boxes(layout: Layout, shared: Slice, element: int, parts: int = 1) -> TensorMapBoxes:
    """Derive the tensor map of a tensor, and the boxes of its tiles.

    Args:
        layout: layout of the tensor; a TileBy, whose innermost level is the tile.
        shared: the tile in shared memory, with the tile's dimensions; those of one element may be
            left out.
        element: bytes of an element.
        parts: CTAs to which a tile's boxes can be dealt evenly.

    Raises:
        LegoError: TMA cannot copy such tiles.
    """
    tile = _tile_of(layout)
    if _without_ones(shared.shape) != _without_ones(tile):
        raise LegoError(
            f"TMA: the tile of '{layout}' is {list(tile)}, in shared memory, as '{shared}', "
            f"it is {list(shared.shape)}"
        )
    offsets = np.asarray(shared.offsets(), dtype=np.int64).reshape(tile)
    found = map_of(layout, *strides_of(layout), offsets, element, parts)
    if found is None:
        raise LegoError(
            f"TMA cannot write the tile {list(tile)} of '{layout}' as '{shared}' in shared memory",
            hint="rows of at most 128 bytes along the dimension that is contiguous in global "
            f"memory, one below the other, in tma_swizzle(128, {element}) or another of its modes",
        )
    return found


def map_of(
    layout: Layout,
    shape: Sequence[Int],
    strides: Sequence[Int],
    offsets: Any,
    element: int,
    parts: int,
) -> TensorMapBoxes | None:
    """Return the tensor map and the boxes of a tile; `None` if TMA writes it in another order.

    Args:
        layout: of the tensor, for errors.
        shape: of the tensor, in the layout's order.
        strides: in elements.
        offsets: of the tile's elements in shared memory, an array of the tile's shape.
        element: bytes of an element.
        parts: CTAs to which the boxes can be dealt evenly.

    Raises:
        LegoError: TMA has no map of such a tensor.
    """
    # A dimension of one element has no stride; the tensor keeps it for its coordinates.
    order = tuple(sorted(range(len(shape)), key=lambda d: (shape[d] == 1, _typical(strides[d]))))
    _check(layout, [shape[d] for d in order], [strides[d] for d in order], element)
    extents = tuple(offsets.shape[d] for d in order)
    byte_offsets = offsets.transpose(order[::-1]) * element  # bytes, the outermost dimension first
    for mode in MODES:
        for box in _boxes(extents, mode, element, parts):
            boxes = _box_positions(byte_offsets, extents, box, mode, element)
            if boxes is not None:
                return TensorMapBoxes(
                    order,
                    tuple(shape[d] for d in order),
                    tuple(
                        _ALIGN if shape[d] == 1 else construct.mul(strides[d], element)
                        for d in order[1:]
                    ),
                    box,
                    mode,
                    boxes,
                )
    return None


def _without_ones(sizes: Sequence[Int]) -> list[Int]:
    return [n for n in sizes if n != 1]


def _tile_of(layout: Layout) -> tuple[int, ...]:
    view = layout.view
    if view is None or view.kind != "TileBy" or len(view.tiles) < 2:
        raise LegoError(
            f"TMA copies tiles, and '{layout}' has none",
            hint="end it in TileBy([tiles, ...], [tile, ...])",
        )
    if view.skew is not None:
        raise LegoError(f"TMA copies boxes, and the tiles of '{layout}' are skewed")
    sizes = view.tiles[-1]
    if any(not isinstance(n, int) for n in sizes):
        raise LegoError(f"TMA: the tile of '{layout}' has symbolic sizes")
    return cast("tuple[int, ...]", tuple(sizes))


def _divides(divisor: int, stride: Int) -> bool:
    """Return whether a number is known to divide a stride."""
    return construct.mod(stride, divisor) == 0


def _typical(stride: Int) -> int:
    """Return a stride for sizes that are large and alike, by which dimensions are ordered.

    Any order of the outer dimensions is right; that of their strides is what TMA does best.
    """
    if not isinstance(stride, Expr):
        return stride
    return int(evaluate(stride, {s.name: _TYPICAL_SIZE for s in symbols(stride)}))


def strides_of(layout: Layout) -> tuple[list[Int], list[Int]]:
    """Return shape and strides of the tensor, in elements.

    Raises:
        LegoError: a dimension has no stride.
    """
    if layout.window is not None:
        raise LegoError(
            f"TMA copies tiles of tensors, and '{layout}' is a window",
            hint="a schedule without TMA takes any layout: --schedule=cp_async",
        )
    tensor = Layout(layout.orders)
    shape = layout.tensor_shape
    if tuple(tensor.dims) != tuple(shape):
        tensor = tensor.TileBy(shape)
    try:
        strides = tensor.to_strides().stride
    except LegoError as e:
        raise LegoError(
            f"TMA addresses a tensor by strides: {e.message}",
            hint=e.hint or "a schedule without TMA takes any layout: --schedule=cp_async",
        ) from None
    if len(strides) != len(shape) or not all(isinstance(s, int | Expr) for s in strides):
        raise LegoError(
            f"TMA: '{layout}' does not have one stride per dimension, but {tensor.to_strides()}",
            hint="TMA takes up to five dimensions of one stride each",
        )
    placed = cast("list[Int]", list(strides))
    if isinstance(layout, StridedLayout):
        placed = [_in_buffer(layout, n, stride) for n, stride in zip(shape, placed, strict=True)]
    return list(shape), placed


def _in_buffer(layout: StridedLayout, size: Int, stride: Int) -> Int:
    """Return the stride in a buffer of a dimension that is one of the buffer's.

    Args:
        layout: of the tensor, in the buffer.
        size: of the dimension.
        stride: that it has in row-major order.
    """
    if size == 1:
        return stride
    step: Int = 1
    for n, placed in zip(reversed(layout.shape), reversed(layout.strides), strict=True):
        if n == size and step == stride:
            return placed
        step = construct.mul(step, n)
    raise LegoError(
        f"TMA: a dimension of {size} elements of '{layout}' is none of the buffer's, whose "
        "dimensions have strides",
        hint="a schedule without TMA takes any layout: --schedule=cp_async",
    )


def _check(layout: Layout, shape: Sequence[Int], strides: Sequence[Int], element: int) -> None:
    rank = len(shape)
    if not _RANKS[0] <= rank <= _RANKS[1]:
        raise LegoError(f"TMA takes tensors of 1 to 5 dimensions, '{layout}' has {rank}")
    # What the launch computes is checked when it does.
    sizes = [n for n in shape if isinstance(n, int)]
    steps = [n * element for n in strides[1:] if isinstance(n, int)]
    if max(sizes, default=0) > _MOST_ELEMENTS or max(steps, default=0) >= _STRIDES_END:
        raise LegoError(
            f"TMA takes up to {_MOST_ELEMENTS} elements along a dimension, and strides below "
            f"{_STRIDES_END} bytes; '{layout}' has more",
            hint="use a schedule without TMA",
        )
    if strides[0] not in (0, 1):
        raise LegoError(f"TMA: no dimension of '{layout}' is contiguous in memory")
    for n, stride in zip(shape[1:], strides[1:], strict=True):
        if n == 1 or _divides(_ALIGN, row := construct.mul(stride, element)):
            continue
        if isinstance(row, Expr):
            raise LegoError(
                f"TMA: a row of '{layout}' has {row} bytes, and nothing says that {_ALIGN} divides "
                "that",
                hint=f"say in the layout what divides its sizes, as in N/{_ALIGN // element}, or "
                "use a schedule without TMA",
            )
        raise LegoError(
            f"TMA: a row of '{layout}' has {row} bytes, no multiple of {_ALIGN}",
            hint=f"pad the rows to a multiple of {_ALIGN // element} elements, "
            "or use a schedule without TMA",
        )


def _boxes(
    extents: Sequence[int], mode: int, element: int, parts: int
) -> Iterator[tuple[int, ...]]:
    """Yield boxes whose number in a tile is a multiple of `parts`, the largest first."""
    widest = mode // element if mode else min(extents[0], MAX_BOX_SIZE)
    widths = [widest] if mode else [w for w in range(widest, 0, -1) if extents[0] % w == 0]
    outer = tuple(_greatest_divisor(n) for n in extents[1:])
    for width in widths:
        if extents[0] % width or width > MAX_BOX_SIZE or width * element % _ALIGN:
            continue
        box = (width, *outer)
        count = prod(extents) // prod(box)
        more = parts // gcd(count, parts)
        if more == 1:
            yield box
            continue
        yield from (
            (*box[:d], box[d] // more, *box[d + 1 :])
            for d in range(len(box) - 1, 0, -1)
            if box[d] % more == 0
        )


def _greatest_divisor(n: int) -> int:
    return next(d for d in range(min(n, MAX_BOX_SIZE), 0, -1) if n % d == 0)


def _box_positions(
    byte_offsets: Any, extents: Sequence[int], box: Sequence[int], mode: int, element: int
) -> tuple[Box, ...] | None:
    """Return the boxes of a tile; `None` if shared memory does not have one as TMA writes it.

    Args:
        byte_offsets: the byte offset of each element of the tile, outermost dimension first.
        extents: shape of the tile, innermost first.
        box: shape of a box, innermost first.
        mode: the swizzle mode.
        element: bytes of an element.
    """
    walk = np.arange(prod(box), dtype=np.int64).reshape(tuple(reversed(box))) * element
    found = []
    steps = [range(0, n, b) for n, b in zip(extents, box, strict=True)]
    for corner in product(*reversed(steps)):
        inside = tuple(slice(c, c + b) for c, b in zip(corner, reversed(box), strict=True))
        start = int(swizzled(byte_offsets[inside].flat[0], mode))
        if start % 128 or not np.array_equal(byte_offsets[inside], swizzled(start + walk, mode)):
            return None
        found.append(Box(tuple(reversed(corner)), start // element))
    return tuple(found)
