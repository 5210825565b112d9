"""RMSNorm whose result is quantized to 8 bits, with a scale for each row or group of columns."""

from __future__ import annotations

from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import maximum
from lego_mlir.kernels.functions import taking
from lego_mlir.kernels.public import check_types, public
from lego_mlir.kernels.rows.bodies.statistics import mean
from lego_mlir.kernels.rows.builder import RowsKernel
from lego_mlir.kernels.rows.builder import rows as rows_kernel
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.norms import loaded
from lego_mlir.kernels.rows.problem import Argument, Stat

LARGEST = {"f8E4M3FN": 448.0, "f8E5M2": 57344.0, "i8": 127.0}
"""The largest number of each type."""

_SMALLEST = 2.0**-100
"""What stands for the largest number of a row of zeros."""


@public
def rmsnorm_quantized(
    rows: int | None,
    columns: int | None,
    dtype: str = "bf16",
    *,
    out: str = "f8E4M3FN",
    per: str = "row",
    weight: str | None = None,
    residual: str | None = None,
    epsilon: float = 1e-6,
    config: RowsConfig | None = None,
) -> RowsKernel:
    """Return a kernel `(x, w, y, scale)`: RMSNorm, where y * scale is the normalized row.

    The largest number of a row, or of a group of 128 columns, becomes the largest of y's type. With
    `residual` the kernel is `(x, residual, w, y, scale, prenorm)`: see `rmsnorm`.

    Args:
        rows: of the matrices; `None` if each launch has its own number.
        columns: of the matrices, and elements of w; `None` as for rows.
        dtype: element type of x.
        out: element type of y: f8E4M3FN, f8E5M2, or i8, which is rounded to the nearest.
        per: what has a scale, of f32: a `row`, or a `group` of 128 columns of a row.
        weight: element type of w; by default that of x.
        residual: element type of residual and prenorm, if there are any.
        epsilon: added to the mean.
        config: its tiles; by default the heuristic chooses.

    Raises:
        LegoError: a size, a type or an option is wrong.
    """
    check_types("rmsnorm_quantized", dtype=dtype, weight=weight, residual=residual)
    if out not in tuple(LARGEST):
        raise LegoError(
            f"rmsnorm_quantized: y is of {', '.join(LARGEST)}, not {out!r}",
            hint="rmsnorm(..., out=...) makes other types",
        )
    if per not in ("row", "group"):
        raise LegoError(f"rmsnorm_quantized: a 'row' or a 'group' has a scale, not {per!r}")

    def normalized(v: dict[str, Any]) -> Any:
        return v["row"] * lg.rsqrt(mean(v["squares"], v["columns"]) + epsilon) * v["w"].to("f32")

    def finish(v: dict[str, Any]) -> dict[str, Any]:
        values = normalized(v)
        found = {} if residual is None else {"prenorm": v["row"]}
        if per == "row":
            return found | {"y": _rounded(values * (LARGEST[out] / _positive(v["most"])), out)}
        groups = v["grouped"](values)
        sizes: Any = lg.abs(groups)
        most = _positive(lg.max(sizes, axis=2, keepdims=True))
        y = _rounded(groups * (LARGEST[out] / most), out)
        return found | {"y": y, "scale": most * (1 / LARGEST[out])}

    names = ["row", "w", "columns", "squares"]
    stats = {"squares": Stat(lambda row: row * row)}
    if per == "row":
        stats["most"] = Stat(taking(names, lambda v: lg.abs(normalized(v))), "max")
    arguments = {"x": Argument(dtype)}
    arguments |= {} if residual is None else {"residual": Argument(residual)}
    arguments |= {"w": Argument(weight or dtype, "column"), "y": Argument(out)}
    arguments["scale"] = Argument("f32", "row" if per == "row" else "group")
    arguments |= {} if residual is None else {"prenorm": Argument(residual)}
    return rows_kernel(
        (rows, columns),
        name="rmsnorm_quantized",
        arguments=arguments,
        load=loaded(residual),
        stats=stats,
        finish=taking([*names, "most" if per == "row" else "grouped"], finish),
        results=(lambda most: {"scale": _positive(most) * (1 / LARGEST[out])})
        if per == "row"
        else None,
        config=config,
    )


def _positive(most: Any) -> Any:
    return maximum(most, _SMALLEST)


def _rounded(x: Any, dtype: str) -> Any:
    return (lg.round(x) if dtype == "i8" else x).to(dtype)
