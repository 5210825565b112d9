"""Gated activations, soft caps, and dropout: what is computed element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels.functions import taking
from lego_mlir.kernels.public import check_types, public
from lego_mlir.kernels.rows.builder import RowsKernel
from lego_mlir.kernels.rows.builder import rows as rows_kernel
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.problem import Argument


@public
def swiglu(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    config: RowsConfig | None = None,
    in_place: bool = False,
) -> RowsKernel:
    """Return a kernel `(gate, up, y)`: y = silu(gate) * up.

    Args:
        rows: of the matrices; `None` if each launch has its own number.
        columns: of the matrices; `None` as for rows.
        dtype: element type of all three.
        config: its tiles; by default the heuristic chooses.
        in_place: y may be gate or up.

    Raises:
        LegoError: a size or a type is wrong.
    """
    return _gated("swiglu", lg.silu, (rows, columns), dtype, config, in_place=in_place)


@public
def geglu(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    config: RowsConfig | None = None,
    in_place: bool = False,
) -> RowsKernel:
    """Return a kernel `(gate, up, y)`: y = gelu(gate) * up, in the tanh form of `lg.gelu`.

    Arguments are those of `swiglu`.
    """
    return _gated("geglu", lg.gelu, (rows, columns), dtype, config, in_place=in_place)


@public
def soft_cap(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    cap: float,
    config: RowsConfig | None = None,
    in_place: bool = False,
) -> RowsKernel:
    """Return a kernel `(x, y)`: y = cap * tanh(x / cap).

    Args:
        rows: of the matrices; `None` if each launch has its own number.
        columns: of the matrices; `None` as for rows.
        dtype: element type of both.
        cap: positive.
        config: its tiles; by default the heuristic chooses.
        in_place: y may be x.

    Raises:
        LegoError: a size, a type or the cap is wrong.
    """
    check_types("soft_cap", dtype=dtype)
    if not cap > 0:
        raise LegoError(f"soft_cap: the cap is positive, not {cap!r}")
    return rows_kernel(
        (rows, columns),
        name="soft_cap",
        arguments={"x": Argument(dtype), "y": Argument(dtype)},
        load=lambda x: x.to("f32"),
        finish=lambda row: {"y": cap * lg.tanh(row * (1 / cap))},
        config=config,
        in_place=in_place,
    )


@public
def dropout(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    p: float,
    bias: bool = False,
    residual: bool = False,
    config: RowsConfig | None = None,
    in_place: bool = False,
) -> RowsKernel:
    """Return a kernel `(x, seed, y)`: y is 0 with the probability p, else x / (1 - p).

    With `bias` and `residual` it is `(x, bias, residual, seed, y)`: y = dropout(x + bias) +
    residual. Which elements become 0 depends on the seed, the row and the column alone, so that
    the gradient is the kernel without both on dy, with the same seed.

    Args:
        rows: of the matrices; `None` if each launch has its own number.
        columns: of the matrices; `None` as for rows.
        dtype: element type of arrays.
        p: a probability, less than 1.
        bias: whether there is a bias, with a number for each column.
        residual: whether there is a residual, a matrix.
        config: its tiles; by default the heuristic chooses.
        in_place: y may be x or residual.

    Raises:
        LegoError: a size, a type or the probability is wrong.
    """
    check_types("dropout", dtype=dtype)
    if not 0 <= p < 1:
        raise LegoError(f"dropout: a probability is from 0 to 1, and less than 1, not {p!r}")
    optional = {"bias": Argument(dtype, "column")} if bias else {}
    optional |= {"residual": Argument(dtype)} if residual else {}

    def finish(v: dict[str, Any]) -> dict[str, Any]:
        x = v["row"] + v["bias"].to("f32") if bias else v["row"]
        y = lg.where(v["uniform"](v["seed"]) < p, 0.0, x * (1 / (1 - p)))
        return {"y": y + v["residual"].to("f32") if residual else y}

    return rows_kernel(
        (rows, columns),
        name="dropout",
        arguments={
            "x": Argument(dtype), **optional, "seed": Argument("u64", "launch"),
            "y": Argument(dtype),
        },
        load=lambda x: x.to("f32"),
        finish=taking(["row", "uniform", "seed", *optional], finish),
        config=config,
        in_place=in_place,
    )  # fmt: skip


def _gated(
    name: str,
    activation: Callable[[Any], Any],
    shape: tuple[int | None, int | None],
    dtype: str,
    config: RowsConfig | None,
    *,
    in_place: bool,
) -> RowsKernel:
    check_types(name, dtype=dtype)
    return rows_kernel(
        shape,
        name=name,
        arguments={n: Argument(dtype) for n in ("gate", "up", "y")},
        load=lambda gate, up: {"opened": activation(gate.to("f32")), "value": up.to("f32")},
        finish=lambda opened, value: {"y": opened * value},
        config=config,
        in_place=in_place,
    )
