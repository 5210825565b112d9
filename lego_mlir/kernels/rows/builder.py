"""`rows`: a kernel on the rows of matrices, of functions of a row's elements and statistics.

    rows(
        (1024, 4096),
        name="rmsnorm",
        arguments={"x": Argument("bf16"), "w": Argument("bf16", "column"), "y": Argument("bf16")},
        load=lambda x: x.to("f32"),
        stats={"squares": (lambda row: row * row, "sum")},
        finish=lambda row, w, squares: {"y": row * lg.rsqrt(squares / 4096 + 1e-6) * w.to("f32")},
    )

A function names the values that it takes: arguments, what `load` returns (`row`, or the names of a
dict), statistics, and `column_index`, `row_index` and `pick(argument, column)`. All of these are
tiles that broadcast together, so that a function reads as if it were of one element.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, Signature
from typing import Any

from lego_mlir.frontend import Kernel, kernel
from lego_mlir.kernels.rows.body import rows_in_pieces, whole_rows
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.heuristic import choose
from lego_mlir.kernels.rows.problem import Argument, Function, RowsProblem, Stat


def rows(
    shape: tuple[int, int],
    *,
    name: str,
    arguments: Mapping[str, Argument],
    load: Function,
    stats: Mapping[str, Stat | tuple[Any, ...]] | None = None,
    finish: Function | None = None,
    results: Function | None = None,
    config: RowsConfig | None = None,
    exact_math: bool = False,
    in_place: bool = False,
) -> Kernel:
    """Return a kernel on the rows of matrices.

    Args:
        shape: the sizes of the matrices, rows and columns.
        name: of the kernel.
        arguments: of the kernel by name, in order, outputs among them.
        load: returns the values of a row in f32, of the arguments: a tile, named `row`, or a dict.
        stats: statistics of a row by name, each `(map, op)` or `(map, op, rebase)`; see `Stat`.
        finish: returns the outputs that have a number for each element, by name.
        results: returns the outputs that have a number for each row, by name; of statistics and
            arguments that have one, too.
        config: its tiles; by default the heuristic chooses.
        exact_math: as `lg.kernel` has it.
        in_place: an output may be one of the inputs, exactly.

    Raises:
        LegoError: a size or a type is wrong.
    """
    found = {k: Stat(*stat) for k, stat in (stats or {}).items()}
    problem = RowsProblem(name, *shape, dict(arguments), load, found, finish, results)
    chosen = config or choose(problem)

    def body(**tensors: Any) -> None:
        (rows_in_pieces if chosen.piece else whole_rows)(problem, chosen, tensors)

    body.__name__ = name
    parameters = [Parameter(n, Parameter.KEYWORD_ONLY) for n in arguments]
    body.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return kernel(
        grid=-(-problem.rows // chosen.rows),
        warps=chosen.warps,
        parameters={n: problem.tensor(n) for n in arguments},
        explanation=lambda: chosen.describe(problem.columns),
        exact_math=exact_math,
        in_place=in_place,
    )(body)
