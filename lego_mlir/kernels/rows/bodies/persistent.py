"""The bodies of persistent CTAs on rows, and of CTAs that add up columns."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import ceildiv
from lego_mlir.kernels.rows import problem as words
from lego_mlir.kernels.rows.bodies.piece import Piece, as_dtype
from lego_mlir.kernels.rows.bodies.rows import finish_whole
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.problem import Function, RowsProblem

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
    shape = config.rows, problem.columns if finishes else config.columns
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
        new = piece.call(function)
        if is_ragged:
            new = lg.restrict(new, piece.value(words.ROW_INDEX) < rows)
        return before + lg.fill(new, 0.0)

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


def add_partial_sums(tensors: Mapping[str, Any], sums: Mapping[str, str]) -> None:
    """Trace a CTA that adds up the sums of all CTAs, of some columns.

    Args:
        tensors: the arguments by name.
        sums: the argument with the sums of CTAs, by that of the sums of columns.
    """
    column, shape = lg.block_id(), (PARTIAL_ROWS, PARTIAL_COLUMNS)
    for total, partial in sums.items():
        parts = tensors[partial].tile(*shape)

        def add(k: Any, before: Any, parts: Any = parts) -> Any:
            return before + lg.fill(parts[k, column], 0.0)

        found = lg.fold(parts.shape[0], lg.zeros(shape, "f32"))(add)
        whole = as_dtype(lg.sum(found, axis=0), tensors[total].dtype)
        tensors[total].tile(PARTIAL_COLUMNS)[column] = whole
