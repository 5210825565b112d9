"""The bodies of persistent CTAs on rows, and of CTAs that add up columns."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import ceildiv
from lego_mlir.index import minimum
from lego_mlir.kernels.functions import Function
from lego_mlir.kernels.rows import problem as words
from lego_mlir.kernels.rows.bodies.piece import Piece, as_dtype
from lego_mlir.kernels.rows.bodies.rows import finish_pieces, finish_whole
from lego_mlir.kernels.rows.bodies.runs import Run, runs_of_cta
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.problem import RowsProblem

PARTIAL_ROWS, PARTIAL_COLUMNS = 256, 32
"""The tile of a CTA that adds up the sums of others."""


def persistent_rows(
    problem: RowsProblem,
    config: RowsConfig,
    tensors: Mapping[str, Any],
    *,
    finishes: bool = True,
) -> None:
    """Trace a persistent CTA, or cluster, on rows, which adds up their columns, too.

    Args:
        problem: the kernel.
        config: its tiles.
        tensors: the arguments by name; instead of sums of columns those of each CTA.
        finishes: whether it computes the other outputs, too. Then it holds whole rows.

    The loop carries the sums, and the rows of the next `config.ahead` iterations, which are loaded
    already. It is unrolled as often, so that no row is moved from register to register, which would
    wait for its load. `config.together` iterations have statistics in one round trip.
    """
    first, number = lg.block_id("x"), 0 if finishes else lg.block_id("y")
    shape = config.rows, problem.longest if finishes else config.columns
    functions, all_rows = problem.column_sums, config.rows * config.ctas
    rows = tensors[problem.loaded_elementwise[0]].shape[0]
    unrolled = max(1, config.ahead)
    is_ragged = problem.rows is None or problem.rows % (all_rows * unrolled) > 0
    ahead = problem.loaded_by_row if config.ahead else ()

    def piece_of(iteration: Any, known: Mapping[str, Any] | None = None) -> Piece:
        return Piece(problem, shape, tensors, iteration * config.ctas + first, number, known)

    once = problem.loaded_by_column if config.ahead else ()
    fixed = {name: piece_of(0).value(name) for name in once}

    def fetch(iteration: Any) -> tuple[Any, ...]:
        piece = piece_of(iteration)
        return tuple(lg.fill(piece.value(name), 0) for name in ahead)

    def step(several: Any, *before: Any) -> tuple[Any, ...]:
        pieces: list[Piece] = []
        following: list[Any] = []
        sums = before[unrolled * len(ahead) :]
        for k in range(unrolled):
            iteration = several * unrolled + k
            known = dict(zip(ahead, before[k * len(ahead) :], strict=False))
            pieces.append(piece_of(iteration, {**fixed, **known}))
            following += fetch(iteration + unrolled)
            sums = tuple(map(functools.partial(add, pieces[-1]), functions.values(), sums))
            if finishes and (len(pieces) == config.together or k == unrolled - 1):
                finish_whole(problem, pieces)
                pieces = []
        return (*following, *sums)

    def add(piece: Piece, function: Function, before: Any) -> Any:
        return _added_to(before, piece, function, rows if is_ragged else None)

    count = ceildiv(rows, all_rows * unrolled)
    zero: Any = lg.zeros(shape, "f32")
    start = [tile for k in range(unrolled) for tile in fetch(k)]
    start += [lg.fill(zero, 0.0)] * len(functions)
    if not start:
        for several in lg.loop(count):
            step(several)
        return
    found = lg.fold(count, tuple(start))(step)
    for name, tile in zip(functions, found[unrolled * len(ahead) :], strict=True):
        total = lg.sum(tile, axis=0, keepdims=True)
        tensors[name].tile(1, total.shape[1])[first, number] = total


def streamed_rows(
    problem: RowsProblem,
    config: RowsConfig,
    tensors: Mapping[str, Any],
    *,
    finishes: bool = True,
) -> None:
    """Trace a persistent CTA, or cluster, whose rows come through stages in shared memory.

    Arguments as those of `persistent_rows`; it finishes always. A row is in pieces, so that what is
    computed of it needs few registers at a time. The loop carries the sums of columns, and what
    belongs to the next row, which are numbers in registers.

    With `config.masked` all CTAs have the same number of iterations, and rows past the last are
    masked. Otherwise each CTA has the iterations of its own rows, which need no masks.

    What belongs to columns stays in registers, if all rows of a CTA begin at the same place of a
    vector. Where columns are added up, they do; if need be, a CTA has several runs of such rows.
    """
    first, rows = lg.block_id("x"), tensors[problem.loaded_elementwise[0]].shape[0]
    if config.has_runs(problem):
        for run in runs_of_cta(first, rows, problem.starts, config.ctas):
            _stream(problem, config, tensors, run)
        return
    some = rows if config.masked else rows - first
    run = Run(first, config.ctas, lambda: ceildiv(some, config.ctas), first)
    _stream(problem, config, tensors, run)


def _stream(problem: RowsProblem, config: RowsConfig, tensors: Mapping[str, Any], run: Run) -> None:
    """Trace the loop of a CTA, or cluster, over a run of rows, and store their sums."""
    rows = tensors[problem.loaded_elementwise[0]].shape[0]
    functions, count = problem.column_sums, config.count(problem.longest_in_words)
    ahead = [n for n in problem.loaded_by_row if problem.arguments[n].per == words.ROW]
    is_ragged = config.masked and (problem.rows is None or problem.rows % config.ctas > 0)

    def row_of(iteration: Any) -> Any:
        return iteration * run.step + run.first

    def there(row: Any) -> Any:
        """Return a row of the loop, which there is; a number of rows at run time masks it, too."""
        return row if config.masked or problem.rows is None else row.below(problem.rows)

    def pieces_of(row: Any, known: Mapping[str, Any]) -> list[Piece]:
        return [
            Piece(problem, config.shape, tensors, row, k, {**known, **fixed[k]})
            for k in range(count)
        ]

    has_runs = config.has_runs(problem)
    fixed: list[dict[str, Any]] = [{} for _ in range(count)]
    if has_runs or config.has_fixed_starts(problem.rows, problem.starts):
        for piece, own in zip(pieces_of(run.first, {}), fixed, strict=True):
            own.update((name, piece.value(name)) for name in problem.loaded_by_column)

    def fetch(iteration: Any) -> tuple[Any, ...]:
        row = row_of(iteration)
        piece, *_ = pieces_of(there(row if config.masked else minimum(row, rows - 1)), {})
        return tuple(lg.fill(piece.value(name), 0) for name in ahead)

    def step(iteration: Any, *before: Any) -> tuple[Any, ...]:
        pieces = pieces_of(there(row_of(iteration)), dict(zip(ahead, before, strict=False)))
        for piece in pieces:
            for name in problem.loaded_elementwise:
                piece.value(name)
        following, sums = fetch(iteration + 1), list(before[len(ahead) :])

        def add(number: int, piece: Piece) -> None:
            for k, function in enumerate(functions.values(), number * len(functions)):
                new = _added_to(sums[k], piece, function, rows if is_ragged else None)
                # Threads that read what they have copied themselves wait for no others.
                sums[k] = lg.convert(new, config.layout) if config.ring_bytes else new

        finish_pieces(problem, pieces, config, add)
        return (*following, *sums)

    # The layout is that of rows' vectors: stores of f32 after the loop would want shorter ones.
    zero: Any = lg.zeros(config.shape, "f32")
    zero = lg.convert(lg.fill(zero, 0.0), config.layout)
    start = [*fetch(0), *[zero] * (count * len(functions))]
    if not start:
        for iteration in lg.loop(run.trips()):
            step(iteration)
        return
    totals = iter(lg.fold(run.trips(), tuple(start))(step)[len(ahead) :])
    for piece in pieces_of(run.first, {}):
        sums: dict[str, Any] = {name: lg.fill(next(totals), 0.0) for name in functions}
        if has_runs:
            piece.store_shifted_sums(sums, run.number, config.layout_by_element)
            continue
        if problem.is_in_words:  # else the compiler chooses, between rounds of loads and stores
            sums = {name: lg.convert(tile, config.layout) for name, tile in sums.items()}
        piece.store_sums(sums)


def _added_to(before: Any, piece: Piece, function: Function, rows: Any | None) -> Any:
    """Return sums with a function of a piece, of which rows from `rows` on do not count."""
    new = piece.with_others().call(function)
    if rows is not None:
        new = lg.restrict(new, piece.value(words.ROW_INDEX) < rows)
    return before + lg.fill(new, 0.0)


def add_partial_sums(
    tensors: Mapping[str, Any], sums: Mapping[str, str], which: Any = 0, before: int = 0
) -> None:
    """Trace a CTA that adds up the sums of all CTAs, of some columns of one output.

    Args:
        tensors: the arguments by name.
        sums: the argument with the sums of CTAs, by that of the sums of columns.
        which: the number of the output among these.
        before: columns before the first one in the sums of CTAs, which divide those of a tile.
    """
    column, shape = lg.block_id("x"), (PARTIAL_ROWS, PARTIAL_COLUMNS)
    steps = (PARTIAL_ROWS, before or PARTIAL_COLUMNS)
    parts = [tensors[partial].tile(*shape, step=steps) for partial in sums.values()]
    place = column * (PARTIAL_COLUMNS // before) + 1 if before else column

    def load(k: Any, first: int = 0) -> Any:
        """Return a tile of the sums of an output, one of those from `first` on."""
        if first == len(parts) - 1:
            return lg.fill(parts[first][k, place], 0.0)
        return lg.cond(
            which == first,
            lambda: lg.fill(parts[first][k, place], 0.0),
            lambda: load(k, first + 1),
        )

    zero: Any = lg.zeros(shape, "f32")
    found = lg.fold(parts[0].shape[0], zero)(lambda k, before: before + load(k))
    whole = lg.sum(found, axis=0)
    for number, total in enumerate(sums):

        def store(tensor: Any = tensors[total]) -> None:
            tensor.tile(PARTIAL_COLUMNS)[column] = as_dtype(whole, tensor.dtype)

        if len(parts) > 1:
            lg.if_(which == number)(store)
        else:
            store()
