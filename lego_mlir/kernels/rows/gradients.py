"""Gradients of softmax and of norms along rows."""

from __future__ import annotations

from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.frontend.dtypes import bytes_of
from lego_mlir.kernels.functions import Function, names_of, taking
from lego_mlir.kernels.public import check_types, public
from lego_mlir.kernels.rows.bodies.statistics import mean
from lego_mlir.kernels.rows.builder import RowsKernel
from lego_mlir.kernels.rows.builder import rows as rows_kernel
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.problem import Argument, Combination, Stat

_FUSED_COLUMNS = 49152
"""Longer rows of 2-byte elements wait for instructions: one makes an element normal, by the product
of the mean, which is rounded as the mean is (bench/results/rows_shifted.jsonl)."""


@public
def softmax_backward(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    config: RowsConfig | None = None,
    in_place: bool = False,
    strided: bool = False,
) -> RowsKernel:
    """Return a kernel `(y, dy, dx)`: dx = y * (dy - sum(dy * y)) of each row.

    Args:
        rows: of the matrices; `None` if each launch has its own number.
        columns: of the matrices; `None` as for rows.
        dtype: element type of all three.
        config: its tiles; by default the heuristic chooses.
        in_place: dx may be dy or y.
        strided: the rows of a matrix may begin further apart than it has columns.

    Raises:
        LegoError: a size or a type is wrong.
    """
    check_types("softmax_backward", dtype=dtype)
    return rows_kernel(
        (rows, columns),
        name="softmax_backward",
        arguments={name: Argument(dtype) for name in ("y", "dy", "dx")},
        load=lambda y, dy: {"row": y.to("f32"), "slope": dy.to("f32")},
        stats={"dot": Stat(lambda row, slope: row * slope)},
        finish=lambda row, slope, dot: {"dx": row * (slope - dot)},
        config=config,
        in_place=in_place,
        strided=strided,
    )


@public
def log_softmax_backward(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    config: RowsConfig | None = None,
    in_place: bool = False,
    strided: bool = False,
) -> RowsKernel:
    """Return a kernel `(y, dy, dx)`: dx = dy - exp(y) * sum(dy); see `softmax_backward`."""
    check_types("log_softmax_backward", dtype=dtype)
    return rows_kernel(
        (rows, columns),
        name="log_softmax_backward",
        arguments={name: Argument(dtype) for name in ("y", "dy", "dx")},
        load=lambda y, dy: {"row": y.to("f32"), "slope": dy.to("f32")},
        stats={"total": Stat(lambda slope: slope)},
        finish=lambda row, slope, total: {"dx": slope - lg.exp(row) * total},
        config=config,
        in_place=in_place,
        strided=strided,
    )


@public
def rmsnorm_backward(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    weight: str | None = None,
    residual: str | None = None,
    offset: float = 0.0,
    config: RowsConfig | None = None,
    in_place: bool = False,
    strided: bool = False,
) -> RowsKernel:
    """Return kernels `(x, w, dy, rstd, dx, dw)`, the gradients of `rmsnorm`.

    Sums along columns are added up in a fixed order: the same arrays give the same bits.

    Args:
        rows: of the matrices; `None` if each launch has its own number.
        columns: of the matrices, and elements of w; `None` as for rows.
        dtype: element type of x, dy and dx. With a residual, x is prenorm.
        weight: element type of w and dw; by default that of x.
        residual: element type of dprenorm, the last argument, which is added to dx, if there is
            one; dx then is the gradient of both x and residual.
        offset: what the weights were added to.
        config: its tiles; by default the heuristic chooses.
        in_place: dx may be dy or x.
        strided: the rows of a matrix may begin further apart than it has columns.

    Raises:
        LegoError: a size or a type is wrong.
    """
    check_types("rmsnorm_backward", dtype=dtype, weight=weight, residual=residual)

    def scaled(w: Any) -> Any:
        return w.to("f32") + offset if offset else w.to("f32")

    def gradient(normal: Any, slope: Any, w: Any, rstd: Any, columns: Any, dot: Any) -> Any:
        return rstd * (slope * scaled(w) - normal * mean(dot, columns))

    arguments = _norm_arguments(dtype, weight or dtype, ["rstd"], ["dw"], residual)
    return rows_kernel(
        (rows, columns),
        name="rmsnorm_backward",
        arguments=arguments,
        load=lambda x, dy, rstd: {"normal": x.to("f32") * rstd, "slope": dy.to("f32")},
        stats={"dot": Stat(lambda normal, slope, w: slope * scaled(w) * normal)},
        finish=_with_residual(gradient, residual),
        columns={"dw": lambda normal, slope: slope * normal},
        config=config,
        in_place=in_place,
        strided=strided,
    )


@public
def layernorm_backward(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    weight: str | None = None,
    residual: str | None = None,
    config: RowsConfig | None = None,
    in_place: bool = False,
    strided: bool = False,
) -> RowsKernel:
    """Return kernels `(x, w, dy, mean, rstd, dx, dw, db)`, the gradients of `layernorm`.

    Otherwise as `rmsnorm_backward`.
    """
    check_types("layernorm_backward", dtype=dtype, weight=weight, residual=residual)

    def normalized(x: Any, mean: Any, rstd: Any) -> Any:
        is_fused = columns is not None and columns > _FUSED_COLUMNS and bytes_of(dtype) == 2
        return x * rstd - mean * rstd if is_fused else (x - mean) * rstd

    def gradient(normal: Any, slope: Any, w: Any, rstd: Any, columns: Any, sums: Any) -> Any:
        dot, total = sums
        means = normal * mean(dot, columns) + mean(total, columns)
        return rstd * (slope * w.to("f32") - means)

    arguments = _norm_arguments(dtype, weight or dtype, ["mean", "rstd"], ["dw", "db"], residual)
    return rows_kernel(
        (rows, columns),
        name="layernorm_backward",
        arguments=arguments,
        load=lambda x, dy, mean, rstd: {
            "normal": normalized(x.to("f32"), mean, rstd),
            "slope": dy.to("f32"),
        },
        stats={
            # Both sums in one round trip.
            "sums": Stat(
                lambda normal, slope, w: (slope * w.to("f32") * normal, slope * w.to("f32")),
                Combination(lambda a, b: (a[0] + b[0], a[1] + b[1]), (0.0, 0.0)),
            )
        },
        finish=_with_residual(gradient, residual),
        columns={"dw": lambda normal, slope: slope * normal, "db": lambda slope: slope},
        config=config,
        in_place=in_place,
        strided=strided,
        contract=True,
    )


def _norm_arguments(
    dtype: str, weight: str, saved: list[str], sums: list[str], residual: str | None
) -> dict[str, Argument]:
    """Return the arguments of a norm's gradient, in order."""
    found = {"x": Argument(dtype), "w": Argument(weight, "column"), "dy": Argument(dtype)}
    found |= {name: Argument("f32", "row") for name in saved}
    found["dx"] = Argument(dtype)
    found |= {name: Argument(weight, "column") for name in sums}
    return found if residual is None else found | {"dprenorm": Argument(residual)}


def _with_residual(gradient: Function, residual: str | None) -> Function:
    """Return the function of the outputs, of that of x's gradient."""
    if residual is None:
        return taking(names_of(gradient), lambda values: {"dx": gradient(**values)})

    def finish(values: dict[str, Any]) -> dict[str, Any]:
        added = values.pop("dprenorm").to("f32")
        return {"dx": gradient(**values) + added}

    return taking([*names_of(gradient), "dprenorm"], finish)
