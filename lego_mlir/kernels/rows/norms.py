"""RMSNorm and LayerNorm along rows, with what is fused with them: residuals, saved statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.kernels.public import check_types, public
from lego_mlir.kernels.rows.bodies.statistics import mean
from lego_mlir.kernels.rows.builder import RowsKernel
from lego_mlir.kernels.rows.builder import rows as rows_kernel
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.problem import Argument, Stat


@public
def rmsnorm(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    weight: str | None = None,
    out: str | None = None,
    residual: str | None = None,
    save: bool = False,
    epsilon: float = 1e-6,
    offset: float = 0.0,
    config: RowsConfig | None = None,
    in_place: bool = False,
    strided: bool = False,
) -> RowsKernel:
    """Return a kernel `(x, w, y)`: y = x / sqrt(mean(x²) + epsilon) * (w + offset) of each row.

    With `residual` it is `(x, residual, w, y, prenorm)`: prenorm = x + residual is stored, and
    normalized before it is rounded. With `save`, its last argument is rstd, the factor of each row,
    which the gradient takes.

    Args:
        rows: of the matrices; `None` if each launch has its own number.
        columns: of the matrices, and elements of w; `None` as for rows.
        dtype: element type of x.
        weight: element type of w; by default that of x.
        out: element type of y; by default that of x.
        residual: element type of residual and prenorm, if there are any.
        save: whether rstd is an output, of f32.
        epsilon: added to the mean.
        offset: added to the weights.
        config: its tiles; by default the heuristic chooses.
        in_place: y may be x, and prenorm may be residual.
        strided: the rows of a matrix may begin further apart than it has columns.

    Raises:
        LegoError: a size or a type is wrong.
    """
    check_types("rmsnorm", dtype=dtype, weight=weight, out=out, residual=residual)
    arguments = _matrices(dtype, out, residual, {"w": weight or dtype}, ["rstd"] if save else [])

    def factor(squares: Any, columns: Any) -> Any:
        return lg.rsqrt(mean(squares, columns) + epsilon)

    def finish(row: Any, w: Any, columns: Any, squares: Any) -> dict[str, Any]:
        scaled = row * factor(squares, columns)
        weights = w.to("f32") + offset if offset else w.to("f32")
        return {"y": scaled * weights, **_prenorm(row, residual)}

    return rows_kernel(
        (rows, columns),
        name="rmsnorm",
        arguments=arguments,
        load=loaded(residual),
        stats={"squares": Stat(lambda row: row * row)},
        finish=finish,
        results=(lambda columns, squares: {"rstd": factor(squares, columns)}) if save else None,
        config=config,
        in_place=in_place,
        strided=strided,
        contract=True,
    )


@public
def layernorm(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    weight: str | None = None,
    out: str | None = None,
    residual: str | None = None,
    save: bool = False,
    epsilon: float = 1e-5,
    config: RowsConfig | None = None,
    in_place: bool = False,
    strided: bool = False,
) -> RowsKernel:
    """Return a kernel `(x, w, b, y)`: y = (x - mean) / sqrt(variance + epsilon) * w + b.

    With `residual` it is `(x, residual, w, b, y, prenorm)`, with `save` its last arguments are mean
    and rstd; see `rmsnorm`, whose arguments these are.
    """
    check_types("layernorm", dtype=dtype, weight=weight, out=out, residual=residual)
    columnwise = {"w": weight or dtype, "b": weight or dtype}
    arguments = _matrices(dtype, out, residual, columnwise, ["mean", "rstd"] if save else [])

    def factor(squares: Any, columns: Any) -> Any:
        return lg.rsqrt(mean(squares, columns) + epsilon)

    def centered(row: Any, columns: Any, total: Any) -> Any:
        return row - mean(total, columns)

    def squared(row: Any, columns: Any, total: Any) -> Any:
        return centered(row, columns, total) * centered(row, columns, total)

    def of_halves(a: Any, b: Any) -> Any:
        half = (a["total"] - b["total"]) * 0.5  # between the mean of either and that of both
        return (a["squares"] + b["squares"]) * 0.5 + half * half

    # Of rows of 4-byte elements two round trips are as fast or faster.
    joined = of_halves if ELEMENT_BYTES.get(dtype, 4) < 4 else None

    def results(columns: Any, total: Any, squares: Any) -> dict[str, Any]:
        return {"mean": mean(total, columns), "rstd": factor(squares, columns)}

    def finish(row: Any, w: Any, b: Any, columns: Any, total: Any, squares: Any) -> dict[str, Any]:
        scaled = centered(row, columns, total) * factor(squares, columns)
        return {"y": scaled * w.to("f32") + b.to("f32"), **_prenorm(row, residual)}

    return rows_kernel(
        (rows, columns),
        name="layernorm",
        arguments=arguments,
        load=loaded(residual),
        stats={"total": Stat(lambda row: row), "squares": Stat(squared, of_halves=joined)},
        finish=finish,
        results=results if save else None,
        config=config,
        in_place=in_place,
        strided=strided,
        contract=True,
    )


def _matrices(
    dtype: str,
    out: str | None,
    residual: str | None,
    columnwise: dict[str, str],
    saved: list[str],
) -> dict[str, Argument]:
    """Return the arguments of a norm, in order."""
    found = {"x": Argument(dtype)}
    if residual is not None:
        found["residual"] = Argument(residual)
    found |= {name: Argument(kind, per="column") for name, kind in columnwise.items()}
    found["y"] = Argument(out or dtype)
    if residual is not None:
        found["prenorm"] = Argument(residual)
    return found | {name: Argument("f32", per="row") for name in saved}


def loaded(residual: str | None) -> Callable[..., Any]:
    """Return the function that loads a row: of x, or of x and a residual."""
    if residual is None:
        return lambda x: x.to("f32")
    return lambda x, residual: x.to("f32") + residual.to("f32")


def _prenorm(row: Any, residual: str | None) -> dict[str, Any]:
    return {} if residual is None else {"prenorm": row}
