"""Softmax and its logarithm along rows, and their gradients."""

from __future__ import annotations

from math import inf
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.kernels.public import check_types, public
from lego_mlir.kernels.rows.builder import RowsKernel
from lego_mlir.kernels.rows.builder import rows as rows_kernel
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.problem import Argument, Stat


@public
def softmax(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    out: str | None = None,
    config: RowsConfig | None = None,
    in_place: bool = False,
    strided: bool = False,
) -> RowsKernel:
    """Return a kernel `(x, y)`: y = exp(x - max(x)) / sum(exp(x - max(x))) of each row.

    A row with NaN or +inf, or with -inf alone, becomes NaN, as in PyTorch.

    Args:
        rows: of the matrices; `None` if each launch has its own number.
        columns: of the matrices; `None` as for rows.
        dtype: element type of x.
        out: element type of y; by default that of x.
        config: its tiles; by default the heuristic chooses.
        in_place: y may be x.
        strided: the rows of a matrix may begin further apart than it has columns.

    Raises:
        LegoError: a size or a type is wrong.
    """
    check_types("softmax", dtype=dtype, out=out)
    return rows_kernel(
        (rows, columns),
        name="softmax",
        arguments={"x": Argument(dtype), "y": Argument(out or dtype)},
        load=lambda x: x.to("f32"),
        stats=exponentials(),
        finish=lambda total, total_terms, total_factor: {"y": total_terms * (total_factor / total)},
        config=config,
        exact_math=dtype == "f32",
        in_place=in_place,
        strided=strided,
    )


@public
def log_softmax(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    out: str | None = None,
    config: RowsConfig | None = None,
    in_place: bool = False,
    strided: bool = False,
) -> RowsKernel:
    """Return a kernel `(x, y)`: y = x - max(x) - log(sum(exp(x - max(x)))) of each row.

    Arguments as those of `softmax`.
    """
    check_types("log_softmax", dtype=dtype, out=out)
    return rows_kernel(
        (rows, columns),
        name="log_softmax",
        arguments={"x": Argument(dtype), "y": Argument(out or dtype)},
        load=lambda x: x.to("f32"),
        stats=exponentials(),
        finish=lambda row, most, total: {"y": row - most - lg.log(total)},
        config=config,
        exact_math=dtype == "f32",
        in_place=in_place,
        strided=strided,
    )


def exponentials() -> dict[str, Stat]:
    """Return the statistics `most`, the maximum of `row`, and `total`, of the exponentials."""
    return {
        "most": Stat(lambda row: row, "max"),
        "total": Stat(lambda row, most: lg.exp(row - finite(most)), "sum", rescaled),
    }


def finite(most: Any) -> Any:
    """Return a maximum from which -inf may be subtracted."""
    return lg.where(most == -inf, 0.0, most)


def rescaled(total: Any, old: Any, new: Any) -> Any:
    """Return a sum of exponentials, less one maximum, as that less another."""
    return total * lg.exp(old - finite(new))
