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
tiles that broadcast together, so that a function reads as if it were of one element. `finish` may
take `<statistic>_terms`, too: what the element contributes to a statistic; and, beside that,
`<statistic>_factor`, by which it then multiplies them, together with what else it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, Signature
from typing import Any, Literal, NamedTuple, TypeAlias

from lego_mlir.algebra import OrderBy, Row, ceildiv
from lego_mlir.frontend import (
    Kernel,
    KernelChoice,
    KernelSequence,
    TensorType,
    Workspace,
    block_id,
    kernel,
    sequence,
)
from lego_mlir.hardware.limits import HOPPER_SMS
from lego_mlir.kernels.functions import Function, taking
from lego_mlir.kernels.public import public
from lego_mlir.kernels.rows.bodies.persistent import (
    PARTIAL_COLUMNS,
    add_partial_sums,
    persistent_rows,
    streamed_rows,
)
from lego_mlir.kernels.rows.bodies.rows import (
    is_row_by_row,
    one_tile,
    rows_in_pieces,
    whole_rows,
)
from lego_mlir.kernels.rows.bodies.runs import sums_of_runs
from lego_mlir.kernels.rows.bodies.shifted import WARPS as SHIFT_WARPS
from lego_mlir.kernels.rows.bodies.shifted import (
    copies_of,
    grid_of_copies,
    make_copies,
    shifted_inputs,
    type_of_copies,
)
from lego_mlir.kernels.rows.config import RowsConfig, check_config
from lego_mlir.kernels.rows.heuristics.choice import choose, dependent_ctas
from lego_mlir.kernels.rows.heuristics.column_sums import choose_for_columns, count_ctas
from lego_mlir.kernels.rows.lengths import RowLengths, bounds_of, multiples_of, of_any_length
from lego_mlir.kernels.rows.problem import GROUP_COLUMNS, Argument, RowsProblem, Stat

RowsKernel: TypeAlias = Kernel | KernelSequence | KernelChoice
"""A kernel; several, one after the other, where columns are added up; or one for each class of
lengths that only the launch knows."""


class _Options(NamedTuple):
    exact_math: bool
    in_place: bool
    contract: bool
    cluster: int = 1
    pdl: bool = True
    pdl_ctas: int = 0
    stages: int = 0
    ring_bytes: int = 0
    short: bool = False
    ctas_per_sm: int = 1
    eviction: Literal["last"] | None = None


_SUM_WARPS = 8
"""Warps of a CTA that adds up the sums of others."""


@public
def rows(
    shape: tuple[int | None, int | RowLengths | None],
    *,
    name: str,
    arguments: Mapping[str, Argument],
    load: Function,
    stats: Mapping[str, Stat | tuple[Any, ...]] | None = None,
    finish: Function | None = None,
    results: Function | None = None,
    columns: Mapping[str, Function] | None = None,
    config: RowsConfig | None = None,
    exact_math: bool = False,
    in_place: bool = False,
    strided: bool = False,
    contract: bool = False,
) -> RowsKernel:
    """Return a kernel on the rows of matrices; with sums of columns several, one after the other.

    Args:
        shape: the sizes of the matrices, rows and columns; `None` where only a launch knows one.
            The kernel of any number of columns is one for each class of lengths (`lengths`).
        name: of the kernel.
        arguments: of the kernel by name, in order, outputs among them.
        load: returns the values of a row in f32, of the arguments: a tile, named `row`, or a dict.
        stats: statistics of a row by name, each `(map, op)` or `(map, op, rebase)`; see `Stat`.
        finish: returns the outputs that have a number for each element, by name.
        results: returns the outputs that have a number for each row, by name; of statistics and
            arguments that have one, too.
        columns: functions of an element by the output that is their sum along a column; they take
            no statistics. CTAs add up rows, and another kernel adds these sums up, in a fixed
            order.
        config: its tiles; by default the heuristic chooses.
        exact_math: as `lg.kernel` has it.
        in_place: an output may be one of the inputs, exactly.
        strided: the rows of a matrix may begin further apart than its columns are many.
        contract: as `lg.kernel` has it: for kernels that wait for arithmetic, not for memory.

    Raises:
        LegoError: a size or a type is wrong.
    """
    found = {k: Stat(*stat) for k, stat in (stats or {}).items()}
    options = _Options(exact_math, in_place, contract)

    def problem_of(columns: int | RowLengths) -> RowsProblem:
        return RowsProblem(
            name, shape[0], columns, dict(arguments), load, found, finish, results, sums, strided,
            in_place,
        )  # fmt: skip

    def made(columns: int | RowLengths) -> Kernel | KernelSequence:
        problem = problem_of(columns)
        made = _with_config(problem, config or choose(problem), options)
        if config is None:
            made.alternatives = lambda: [
                _with_config(problem, choose(problem, clusters=False), options)
            ]
        return made

    sums = columns or {}
    if shape[1] is not None:
        return made(shape[1])
    return _for_any_length(problem_of, made)


def _for_any_length(
    problem_of: Callable[[RowLengths], RowsProblem],
    made: Callable[[RowLengths], Kernel | KernelSequence],
) -> KernelChoice:
    """Return the kernel of rows whose length only the launch knows.

    Args:
        problem_of: returns what the kernel of a class of lengths computes.
        made: returns that kernel.

    Raises:
        LegoError: a size or a type is wrong.
    """
    problem = problem_of(RowLengths(multiple=GROUP_COLUMNS))
    multiples: tuple[int, ...] = (GROUP_COLUMNS,)
    if not problem.has_groups:
        problem = problem_of(RowLengths())
        multiples = multiples_of(max(a.bytes for a in problem.elementwise))
    parameters = {n: problem.tensor(n) for n in problem.arguments}
    bounds = bounds_of(has_statistics=not problem.is_elementwise)
    return of_any_length(problem.name, parameters, made, bounds, multiples)


def _with_config(
    problem: RowsProblem, chosen: RowsConfig, options: _Options
) -> Kernel | KernelSequence:
    """Return the kernel with a config."""
    check_config(problem, chosen)
    is_whole = not chosen.piece and chosen.cluster == 1
    if problem.column_sums and is_whole and not chosen.ctas:
        chosen = replace(chosen, ctas=count_ctas(problem, chosen.rows))
    if problem.column_sums:
        return _with_column_sums(problem, chosen, options)
    if shifted_inputs(problem):
        of_rows = _row_kernel(problem, chosen, f"{problem.name}_rows", options)
        return _in_sequence(problem, [of_rows], options)
    return _row_kernel(problem, chosen, problem.name, options)


def _in_sequence(
    problem: RowsProblem,
    kernels: list[Kernel],
    options: _Options,
    sums: Mapping[str, Workspace] | None = None,
    last: Sequence[Kernel] = (),
) -> KernelSequence:
    """Return kernels one after the other, behind the one that shifts what belongs to columns.

    Args:
        problem: what they compute.
        kernels: those that take such copies, and make the sums of each CTA.
        options: of the kernel that shifts.
        sums: the workspaces of the sums of each CTA by output.
        last: the kernels that add these up.
    """
    shifted, sums = shifted_inputs(problem), sums or {}
    names = shifted | {n: _partial(n) for n in sums}
    calls = [k.on(**{n: names[n] for n in k.parameters() if n in names}) for k in kernels]
    if shifted:

        def shift(**tensors: Any) -> None:
            make_copies(problem, tensors)

        kinds = {n: problem.tensor(n) for n in shifted}
        kinds |= {copies: type_of_copies(problem, n) for n, copies in shifted.items()}
        how = "copies of what belongs to columns, one for each place where a row begins in a vector"
        name = f"{problem.name}_shift"
        grid = taking([], lambda _: grid_of_copies(problem))
        calls.insert(0, _made(shift, name, grid, SHIFT_WARPS, kinds, how, options).on())
    workspaces = {copies: copies_of(problem, n) for n, copies in shifted.items()}
    return sequence(
        problem.name,
        [*calls, *last],
        parameters={n: problem.tensor(n) for n in problem.arguments},
        workspaces=workspaces | {names[n]: space for n, space in sums.items()},
    )


def _row_kernel(problem: RowsProblem, config: RowsConfig, name: str, options: _Options) -> Kernel:
    """Return the kernel of a problem without its sums of columns."""
    trace = _trace_of(problem, config)

    def body(**tensors: Any) -> None:
        trace(problem, config, tensors)

    arguments = _arguments(problem, dict.fromkeys(problem.column_sums))
    is_persistent = trace in (persistent_rows, streamed_rows)

    def ctas(rows: Any, columns: Any) -> tuple[Any, Any]:
        if is_persistent:
            return config.ctas, 1
        down, across = ceildiv(rows, config.rows), 1
        if problem.is_elementwise:
            across = ceildiv(columns + problem.words_extra, config.columns)
        return (across, down) if is_row_by_row(problem, config) else (down, across)

    longest = problem.longest_in_words if config.piece else problem.longest
    how = config.describe(longest, is_elementwise=problem.is_elementwise)
    most = dependent_ctas(problem, config)
    options = _of_config(options, config)._replace(
        pdl=most is not None,
        pdl_ctas=most or 0,
        eviction=None if problem.finish is None else "last",
    )
    return _made(body, name, problem.grid(ctas), config.warps, arguments, how, options)


def _trace_of(problem: RowsProblem, config: RowsConfig) -> Callable[..., None]:
    """Return the function that traces the body."""
    if problem.is_elementwise:
        return one_tile
    if config.stages:
        return streamed_rows
    if config.piece:
        return rows_in_pieces
    return persistent_rows if config.ctas else whole_rows


def _with_column_sums(
    problem: RowsProblem, config: RowsConfig, options: _Options
) -> KernelSequence:
    """Return the kernels of a problem with sums of columns.

    If a CTA holds whole rows, it adds up its columns beside; otherwise that is a kernel of its own.
    """
    sums = problem.column_sums
    is_together = config.ctas > 0
    adding = config if is_together else choose_for_columns(problem)

    def body(**tensors: Any) -> None:
        trace = streamed_rows if adding.stages else persistent_rows
        trace(problem, adding, tensors, finishes=is_together)

    partial, before = sums_of_runs(problem, adding)
    arguments = _arguments(problem, dict.fromkeys(sums, TensorType("f32", OrderBy(Row(*partial)))))
    grid = problem.grid(
        lambda _, columns: (adding.ctas, 1 if is_together else ceildiv(columns, adding.columns))
    )
    how = f"a CTA adds up {adding.columns} columns; {adding.warps} warps"
    how = config.describe(problem.longest) if is_together else how
    # Loads by inline PTX, which rows in registers would have, keep the order of the program.
    is_copied = adding.stages > 0 and adding.elements(problem.longest) > 0
    shared = _of_config(options, adding)._replace(
        eviction="last" if is_copied else None,
        contract=options.contract or problem.is_in_words,  # which waits for arithmetic
    )
    kernels = [_made(body, f"{problem.name}_sums", grid, adding.warps, arguments, how, shared)]
    if not is_together:  # last, for its output may be an input of the sums
        kernels.append(_row_kernel(problem, config, f"{problem.name}_rows", options))
    totals = {n: _partial(n) for n in sums}

    # Where each CTA can have a multiprocessor to itself, it adds up one output.
    across = ceildiv(problem.longest, PARTIAL_COLUMNS)
    each = len(sums) if across * len(sums) <= HOPPER_SMS else 1

    def total(**tensors: Any) -> None:
        for some in [totals] if each > 1 else [{n: sums} for n, sums in totals.items()]:
            add_partial_sums(tensors, some, block_id("y") if each > 1 else 0, before)

    kinds = {n: problem.tensor(n) for n in sums} | {totals[n]: arguments[n] for n in sums}
    how = f"a CTA adds up {PARTIAL_COLUMNS} columns of the sums of others; {_SUM_WARPS} warps"
    first = next(iter(sums))
    at = taking([first], lambda types: (ceildiv(types[first].shape[0], PARTIAL_COLUMNS), each))
    last = _made(total, f"{problem.name}_total", at, _SUM_WARPS, kinds, how, options)
    spaces = dict.fromkeys(sums, Workspace("f32", partial))
    return _in_sequence(problem, kernels, options, spaces, [last])


def _arguments(problem: RowsProblem, others: Mapping[str, TensorType | None]) -> dict[str, Any]:
    """Return the types of the arguments of a kernel on rows.

    Args:
        problem: what it computes.
        others: the types of arguments that have other ones; without those that are `None`.
    """
    kinds: dict[str, Any] = {n: problem.tensor(n) for n in problem.arguments}
    kinds |= {n: type_of_copies(problem, n) for n in shifted_inputs(problem)} | dict(others)
    return {n: kind for n, kind in kinds.items() if kind is not None}


def _of_config(options: _Options, config: RowsConfig) -> _Options:
    """Return options with what a config says of the launch."""
    return options._replace(
        cluster=config.cluster,
        stages=config.stages,
        ring_bytes=config.ring_bytes,
        short=config.short,
        ctas_per_sm=config.ctas_per_sm,
    )


def _partial(name: str) -> str:
    """Return the name of the workspace with the sums of each CTA."""
    return f"{name}_of_ctas"


def _made(
    body: Any,
    name: str,
    grid: Any,
    warps: int,
    arguments: Mapping[str, Any],
    how: str,
    options: _Options,
) -> Kernel:
    """Return the kernel of a body that takes arguments by name."""
    body.__name__ = name
    parameters = [Parameter(n, Parameter.KEYWORD_ONLY) for n in arguments]
    body.__signature__ = Signature(parameters)
    return kernel(
        grid=grid,
        warps=warps,
        parameters=dict(arguments),
        explanation=lambda: how,
        exact_math=options.exact_math,
        in_place=options.in_place,
        cluster=options.cluster,
        ctas_per_sm=options.ctas_per_sm,
        contract=options.contract,
        pdl=options.pdl,
        pdl_ctas=options.pdl_ctas,
        eviction=options.eviction,
        schedule=_schedule(options),
        params=_parameters(options),
    )(body)


def _schedule(options: _Options) -> str | None:
    """Return the schedule of a kernel; `None` for the default."""
    if options.ring_bytes:
        return "refilled"
    return "streamed" if options.stages else None


def _parameters(options: _Options) -> dict[str, int] | None:
    """Return the parameters of the schedule."""
    if not options.stages:
        return None
    found = {"stages": options.stages, "extend_late": int(options.short)}
    return {**found, "shared_bytes": options.ring_bytes} if options.ring_bytes else found
