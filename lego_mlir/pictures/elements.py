"""Where the drawn elements of a layout lie: offsets of the cells, and of their tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lego_mlir.algebra import Layout
from lego_mlir.algebra.arguments import check_int64
from lego_mlir.algebra.sizes import product
from lego_mlir.diagnostics import LegoError
from lego_mlir.pictures.axes import Axis, Sampled, axes_of_layout

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of a layout that are drawn.

    Attributes:
        layout: the layout.
        rows: the drawn rows.
        columns: the drawn columns.
        offsets: their offsets, of shape (rows, columns); -1 where there is no element.
        tiles: the number of each row's and of each column's outermost tile.
    """

    layout: Layout
    rows: Sampled
    columns: Sampled
    offsets: Ints
    tiles: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def exists(self) -> Bools:
        """Which cells have an element: false in the padding of partial tiles."""
        return self.offsets >= 0

    @property
    def left_out(self) -> str | None:
        """A sentence on what is not drawn, if anything is not."""
        counts = [
            f"{len(s.digits)} of {s.axis.size} {name}"
            for name, s in (("rows", self.rows), ("columns", self.columns))
            if not s.is_whole
        ]
        return f"sampled: {' and '.join(counts)} are drawn" if counts else None


def elements_of(layout: Layout, rows: int, columns: int) -> Elements:
    """Return the elements of a layout that fit so many rows and columns.

    Raises:
        LegoError: a size is symbolic, or the layout is too large for int64 offsets.
    """
    check_sizes(layout)
    row_axis, column_axis = axes_of_layout(layout, columns)
    drawn_rows, drawn_columns = row_axis.sampled(rows), column_axis.sampled(columns)
    shape = (len(drawn_rows.digits), len(drawn_columns.digits))
    index = _index(layout, drawn_rows, drawn_columns, shape)
    return Elements(
        layout,
        drawn_rows,
        drawn_columns,
        offsets_at(layout, index, shape),
        (_tiles(drawn_rows), _tiles(drawn_columns)),
    )


def check_sizes(layout: Layout) -> None:
    """Raise LegoError if a size of the layout is symbolic, or too large for int64 offsets."""
    if layout.symbols:
        names = list(dict.fromkeys(s.name for s in layout.symbols))
        raise LegoError(
            f"'{layout}' has sizes without values ({', '.join(names)}): it cannot be drawn",
            hint=f"give them values: legoc --set {names[0]}=N, in Python layout.bind({names[0]}=N)",
        )
    for size in (layout.size, product(layout.dims)):  # of partial tiles, the second is larger
        check_int64(size, f"'{layout}'")


def offsets_at(layout: Layout, index: list[Ints], shape: tuple[int, ...]) -> Ints:
    """Return the offsets at arrays of indices, -1 where there is no element."""
    at = [np.broadcast_to(i, shape).ravel() for i in index]
    mask = np.broadcast_to(np.asarray(layout.mask(*at), bool), at[0].shape)
    found = np.full(at[0].shape, -1, np.int64)
    if mask.any():
        found[mask] = layout.apply(*(i[mask] for i in at))
    return found.reshape(shape)


def index_of(layout: Layout, coordinates: list[Ints]) -> list[Ints]:
    """Return the indices of elements whose coordinates a picture's labels have."""
    index: dict[int, Ints] = {}
    at = iter(coordinates)
    row_axis, column_axis = axes_of_layout(layout)
    if layout.rank == 1:
        return coordinates
    for axis in (row_axis, column_axis):
        start = 0
        for count in axis.coordinates:
            levels = slice(start, start + count)
            rest = next(at)
            pairs = list(zip(axis.positions[levels], axis.levels[levels], strict=True))
            for position, size in reversed(pairs):
                index[position], rest = rest % size, rest // size
            start += count
    return [index[k] for k in range(layout.rank)]


def coordinate_sizes(layout: Layout) -> tuple[int, ...]:
    """Return the sizes of the coordinates that the labels of a layout's picture have."""
    if layout.rank == 1:
        return (int(layout.dims[0]),)
    sizes: list[int] = []
    for axis in axes_of_layout(layout):
        start = 0
        for count in axis.coordinates:
            sizes.append(int(np.prod(axis.levels[start : start + count], dtype=object)))
            start += count
    return tuple(sizes)


def _index(layout: Layout, rows: Sampled, columns: Sampled, shape: tuple[int, int]) -> list[Ints]:
    """Return the index of each cell, an array for each dimension of the layout."""
    if layout.rank == 1:
        numbers = [np.array(s.numbers, np.int64) for s in (rows, columns)]
        return [numbers[0][:, None] * columns.axis.size + numbers[1][None, :]]
    index: dict[int, Any] = {}
    spread: tuple[Callable[[Any], Any], ...] = (lambda x: x[:, None], lambda x: x[None, :])
    for sampled, along in zip((rows, columns), spread, strict=True):
        digits = np.array(sampled.digits, np.int64).reshape(len(sampled.digits), -1)
        for k, position in enumerate(sampled.axis.positions):
            index[position] = np.broadcast_to(along(digits[:, k]), shape)
    return [index[k] for k in range(layout.rank)]


def _tiles(sampled: Sampled) -> tuple[int, ...]:
    """Return the number of the outermost tile that each position lies in."""
    axis: Axis = sampled.axis
    return tuple(digits[0] if axis.has_tiles else 0 for digits in sampled.digits)
