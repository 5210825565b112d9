"""Cross-entropy of rows of logits, and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import ceildiv
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import (
    KernelChoice,
    KernelSequence,
    TensorType,
    Workspace,
    kernel,
    sequence,
)
from lego_mlir.kernels.functions import taking
from lego_mlir.kernels.public import check_types, public
from lego_mlir.kernels.rows.bodies.statistics import as_number
from lego_mlir.kernels.rows.builder import RowsKernel
from lego_mlir.kernels.rows.builder import rows as rows_kernel
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.problem import Argument, Stat, typed
from lego_mlir.kernels.rows.softmax import exponentials

REDUCTIONS = ("none", "sum", "mean")

_LABELS = 8192
"""Labels, or losses, that the CTA that adds them up has at once."""

_SUM_WARPS = 16
"""Its warps."""


@public
def cross_entropy(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    labels: str = "i32",
    reduction: str = "none",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float | None = None,
    save: bool = False,
    config: RowsConfig | None = None,
    strided: bool = False,
) -> RowsKernel:
    """Return a kernel `(logits, labels, loss)`: loss = log(sum(exp(logits))) - logits[label].

    The loss of a row whose label is `ignore_index` is 0. That of a row with another label outside
    of the classes is NaN, and nothing out of bounds is read.

    Args:
        rows: of the logits; `None` if each launch has its own number.
        columns: the number of classes; `None` as for rows.
        dtype: element type of the logits.
        labels: element type of the labels, i32 or i64.
        reduction: `none`: the loss of each row, of f32; `sum` or `mean`: one number. The mean is
            that of rows that are not ignored, NaN if all are.
        ignore_index: the label of rows that are ignored.
        label_smoothing: what part of the target is spread over all classes.
        z_loss: this times the square of log(sum(exp(logits))) is added to the loss.
        soft_cap: logits become soft_cap * tanh(logits / soft_cap) first.
        save: whether the last argument is lse, log(sum(exp(logits))) of each row, of f32.
        config: its tiles; by default the heuristic chooses.
        strided: the rows of the logits may begin further apart than there are classes.

    Raises:
        LegoError: a size, a type or an option is wrong.
    """
    check_types("cross_entropy", dtype=dtype)
    _check("cross_entropy", columns, labels, reduction, label_smoothing, soft_cap)

    def results(v: dict[str, Any]) -> dict[str, Any]:
        is_class, is_ignored = _kinds(v["labels"], v["columns"], ignore_index)
        lse = lg.log(v["total"]) + v["most"]
        chosen = _capped(v["pick"]("logits", v["labels"].to("i32")).to("f32"), soft_cap)
        loss = lse - (1.0 - label_smoothing) * chosen
        if label_smoothing:
            loss = loss - label_smoothing / as_number(v["columns"]) * v["logit_sum"]
        if z_loss:
            loss = loss + z_loss * lse * lse
        loss = lg.where(is_ignored, 0.0, lg.where(is_class, loss, nan))
        return {"loss": loss, **({"lse": lse} if save else {})}

    stats = exponentials()
    if label_smoothing:
        stats["logit_sum"] = Stat(lambda row: row)
    arguments = {
        "logits": Argument(dtype),
        "labels": Argument(labels, "row"),
        "loss": Argument("f32", "row"),
    }
    made = rows_kernel(
        (rows, columns),
        name="cross_entropy",
        arguments=arguments | ({"lse": Argument("f32", "row")} if save else {}),
        load=lambda logits: _capped(logits.to("f32"), soft_cap),
        stats=stats,
        results=taking(["labels", "columns", "pick", *stats], results),
        config=config,
        exact_math=dtype == "f32",
        strided=strided,
    )
    if reduction == "none":
        return made

    def add_up(losses: Any, labels: Any, loss: Any) -> None:
        total = _added_up(losses, lambda tile: tile)
        if reduction == "mean":
            total = total / _added_up(labels, lambda tile: _counted(tile, ignore_index))
        loss[0] = total

    given = made.parameters()
    losses, one = given["loss"], typed("f32", "1")
    assert isinstance(losses, TensorType)
    kinds = {"losses": losses, "labels": given["labels"], "loss": one}
    adding = kernel(grid=1, warps=_SUM_WARPS, parameters=kinds)(add_up)

    def followed(computing: Any) -> KernelSequence:
        return sequence(
            "cross_entropy",
            [computing.on(loss="losses"), adding.on()],
            parameters={**computing.parameters(), "loss": one},
            workspaces={"losses": Workspace("f32", losses.shape)},
        )

    if isinstance(made, KernelChoice):
        return made.around({**given, "loss": one}, followed)
    return followed(made)


@public
def cross_entropy_backward(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    labels: str = "i32",
    reduction: str = "none",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float | None = None,
    config: RowsConfig | None = None,
    in_place: bool = False,
    strided: bool = False,
) -> RowsKernel:
    """Return a kernel `(logits, labels, lse, dloss, dlogits)`, the gradient of `cross_entropy`.

    Rows that are ignored have the gradient 0, rows with another label outside of the classes NaN.

    Args:
        rows: of the logits; `None` if each launch has its own number.
        columns: the number of classes; `None` as for rows.
        dtype: element type of logits and dlogits.
        labels: element type of the labels.
        reduction: as the loss has it: dloss has a number for each row, or one.
        ignore_index: the label of rows that are ignored.
        label_smoothing: as the loss has it.
        z_loss: as the loss has it.
        soft_cap: as the loss has it; logits are those before it is applied.
        config: its tiles; by default the heuristic chooses.
        in_place: dlogits may be logits.
        strided: the rows of a matrix may begin further apart than it has columns.

    Raises:
        LegoError: a size, a type or an option is wrong.
    """
    check_types("cross_entropy_backward", dtype=dtype)
    _check("cross_entropy_backward", columns, labels, reduction, label_smoothing, soft_cap)

    def finish(
        row: Any, column_index: Any, columns: Any, labels: Any, lse: Any, dloss: Any
    ) -> dict[str, Any]:
        is_class, is_ignored = _kinds(labels, columns, ignore_index)
        scale = lg.where(is_ignored, 0.0, lg.where(is_class, dloss, nan))
        more = scale * (1.0 + 2.0 * z_loss * lse) if z_loss else scale
        slope = lg.exp(row - lse) * more
        if label_smoothing:
            slope = slope - scale * (label_smoothing / as_number(columns))
        hit = column_index == labels.to("i32")
        slope = lg.where(hit, slope - (1.0 - label_smoothing) * scale, slope)
        if soft_cap is not None:
            slope = slope * (1.0 - row * row * (1.0 / soft_cap**2))
        return {"dlogits": slope}

    arguments = {
        "logits": Argument(dtype),
        "labels": Argument(labels, "row"),
        "lse": Argument("f32", "row"),
        "dloss": Argument("f32", "row" if reduction == "none" else "matrix"),
        "dlogits": Argument(dtype),
    }
    made = rows_kernel(
        (rows, columns),
        name="cross_entropy_backward",
        arguments=arguments,
        load=lambda logits: _capped(logits.to("f32"), soft_cap),
        finish=finish,
        config=config,
        exact_math=dtype == "f32",
        in_place=in_place,
        strided=strided,
    )
    if reduction != "mean":
        return made

    def divide(labels: Any, dloss: Any, scale: Any) -> None:
        count = _added_up(labels, lambda tile: _counted(tile, ignore_index))
        scale[0] = dloss[0] / count

    given, one = made.parameters(), typed("f32", "1")
    kinds = {"labels": given["labels"], "dloss": one, "scale": one}
    dividing = kernel(grid=1, warps=_SUM_WARPS, parameters=kinds)(divide)

    def preceded(computing: Any) -> KernelSequence:
        return sequence(
            "cross_entropy_backward",
            [dividing.on(), computing.on(dloss="scale")],
            parameters=computing.parameters(),
            workspaces={"scale": Workspace("f32", (1,))},
            in_place=in_place,
        )

    return made.around(given, preceded) if isinstance(made, KernelChoice) else preceded(made)


def _check(
    name: str,
    columns: int | None,
    labels: str,
    reduction: str,
    label_smoothing: float,
    soft_cap: float | None,
) -> None:
    """Raise LegoError unless the options are those of a cross-entropy."""
    if reduction not in REDUCTIONS:
        known = ", ".join(REDUCTIONS)
        raise LegoError(f"{name}: there is no reduction {reduction!r}", hint=f"known: {known}")
    if labels not in ("i32", "i64"):
        raise LegoError(f"{name}: labels are of i32 or i64, not {labels!r}")
    if not 0 <= label_smoothing <= 1:
        raise LegoError(f"{name}: label_smoothing is from 0 to 1, not {label_smoothing!r}")
    if soft_cap is not None and not soft_cap > 0:
        raise LegoError(f"{name}: soft_cap is positive, not {soft_cap!r}")
    if type(columns) is int and columns >= 1 << 31:
        raise LegoError(f"{name}: there are at most 2**31 - 1 classes, not {columns}")


def _kinds(labels: Any, columns: Any, ignore_index: int) -> tuple[Any, Any]:
    """Return whether labels are those of classes, and whether they are those of ignored rows."""
    is_ignored = labels == ignore_index
    return (labels >= 0) & (labels < columns) & ~is_ignored, is_ignored


def _counted(labels: Any, ignore_index: int) -> Any:
    return (labels != ignore_index).to("f32")


def _capped(x: Any, soft_cap: float | None) -> Any:
    return x if soft_cap is None else soft_cap * lg.tanh(x * (1.0 / soft_cap))


def _added_up(tensor: Any, function: Callable[[Any], Any]) -> Any:
    """Return the sum of a function of a vector's elements, which one CTA computes."""

    @lg.fold(ceildiv(tensor.shape[0], _LABELS), lg.zeros((_LABELS,), "f32"))
    def sums(k: Any, before: Any) -> Any:
        return before + lg.fill(function(tensor.tile(_LABELS)[k]), 0.0)

    return lg.sum(sums)
