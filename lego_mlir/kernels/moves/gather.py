"""Rows of a table at given indices, such as embeddings of words."""

from __future__ import annotations

from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row, parse_layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import TensorType
from lego_mlir.frontend.dtypes import bytes_of
from lego_mlir.kernels.cache_hints import eviction_of, tensor_bytes
from lego_mlir.kernels.moves.windows import WARPS, Tiling, check
from lego_mlir.kernels.public import public

_INDICES = ("i32", "i64")

_SHORT = 1024
"""Rows of so many elements are gathered several at a time."""


_MOST_ROWS = (1 << 31) - 1
"""Rows that a table has at most, if only the launch knows how many."""


@public
def gather_rows(
    table: int | None, rows: int | None, columns: int, dtype: str = "f32", *, index: str = "i32"
) -> lg.Kernel:
    """Return a kernel `(x, at, y)`: row i of y is row at[i] of x.

    A row whose index is negative, or not below the rows of x, is 0.

    Args:
        table: rows of x; `None` if each launch has its own number.
        rows: of y, and indices; `None` if each launch has its own number.
        columns: of x and y.
        dtype: element type of x and y.
        index: element type of the indices, i32 or i64.

    Raises:
        LegoError: a size or a type is wrong.
    """
    check("gather_rows", (table,), dtype)
    check("gather_rows", (rows, columns))
    if index not in _INDICES:
        raise LegoError(f"gather_rows: indices are {' or '.join(_INDICES)}, not {index}")
    x, y = _matrix("N", table, columns, dtype), _matrix("M", rows, columns, dtype)
    at = TensorType(index, _layout("M", rows))
    tiling = Tiling.of((rows, columns), bytes_of(dtype))
    if columns > _SHORT:
        tiling = Tiling(tiling.sizes, (1, tiling.tile[1]))
    height, width = tiling.tile

    def gather_rows(x: Any, at: Any, y: Any) -> None:
        m, k = tiling.counts.inv(lg.block_id())
        most = x.shape[0] if table is not None else x.shape[0].to(index)
        if columns <= _SHORT:
            row = at.tile(height)[m]
            found = x[lg.restrict(row, (row >= 0) & (row < most)), :]
            y.tile(height, columns)[m, 0] = lg.fill(found, 0)
            return
        row = at[m]
        has = (row >= 0) & (row < most)
        piece = x.tile(width)[lg.where(has, row, 0).below(table or _MOST_ROWS), k]
        y.tile(width)[m, k] = lg.where(has, piece, lg.zeros_like(piece))

    return lg.kernel(
        grid=tiling.counts.size,
        warps=WARPS,
        parameters={"x": x, "at": at, "y": y},
        explanation=lambda: f"{height} rows by {width} columns a CTA",
        eviction=eviction_of(tensor_bytes([y, y])),
        pdl=True,
    )(gather_rows)


def _matrix(name: str, rows: int | None, columns: int, dtype: str) -> TensorType:
    return TensorType(dtype, _layout(name, rows, columns))


def _layout(name: str, rows: int | None, *others: int) -> Any:
    """Return a row-major layout, whose first size has this name if only the launch knows it."""
    if rows is not None:
        return OrderBy(Row(rows, *others))
    return parse_layout(f"OrderBy(Row({', '.join([name, *map(str, others)])}))")
