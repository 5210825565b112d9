"""The bodies of kernels on rows: whole rows in registers, and rows that are read in pieces.

In pieces, each thread keeps statistics of its own elements, and they are combined once, at the
end of the row: pieces need neither shuffles nor barriers. They stay in registers, where only what
`load` returns is held of all of them at once; or the row is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.kernels.rows.bodies.piece import Piece, Values
from lego_mlir.kernels.rows.bodies.statistics import (
    across_threads,
    added,
    flat,
    identities,
    named,
    reduced_together,
)
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.problem import RowsProblem, Stat


def whole_rows(problem: RowsProblem, config: RowsConfig, tensors: Mapping[str, Any]) -> None:
    """Trace a CTA that holds whole rows in registers."""
    shape = config.rows, problem.columns
    piece = Piece(problem, shape, tensors, lg.block_id(), 0)
    for name in problem.loaded_by_column if config.ahead else ():
        piece.value(name)
    finish_whole(problem, [piece])


def finish_whole(problem: RowsProblem, pieces: Sequence[Piece]) -> None:
    """Compute and store the outputs of whole rows, with the statistics of all in one round trip."""
    stats: list[Values] = [{} for _ in pieces]
    for name, stat in problem.stats.items():
        mapped = [p.call(stat.map, known) for p, known in zip(pieces, stats, strict=True)]
        for known, value in zip(stats, reduced_together(stat, mapped), strict=True):
            known[name] = value
    for piece, known in zip(pieces, stats, strict=True):
        if problem.finish is not None:
            piece.store(piece.call(problem.finish, known))
        if problem.results is not None:
            piece.store_results(piece.call(problem.results, known))


def one_tile(problem: RowsProblem, config: RowsConfig, tensors: Mapping[str, Any]) -> None:
    """Trace a CTA that computes the elements of a tile, each by itself."""
    shape = config.rows, config.columns
    piece = Piece(problem, shape, tensors, lg.block_id("x"), lg.block_id("y"))
    assert problem.finish is not None
    piece.store(piece.call(problem.finish))


def rows_in_pieces(problem: RowsProblem, config: RowsConfig, tensors: Mapping[str, Any]) -> None:
    """Trace a CTA that has a row in pieces: in registers, or read again for each pass over it."""
    row, shape = lg.block_id(), (config.piece, config.threads, config.vector)

    def at(number: Any) -> Piece:
        return Piece(problem, shape, tensors, row, number)

    if config.held:
        held = [at(number) for number in range(-(-problem.columns // config.columns))]
        stats = _of_held(problem, held, config.threads)
    else:
        held = []
        stats = _of_read(problem, at, config)
    if problem.finish is not None:
        finish = problem.finish
        for piece in held or _read(at, problem.columns, config.columns):
            piece.store(piece.call(finish, stats))
    if problem.results is not None:
        piece = at(0)
        piece.store_results(piece.call(problem.results, stats))


def _of_held(problem: RowsProblem, held: Sequence[Piece], threads: int) -> Values:
    """Return the statistics of a row whose pieces stay in registers, one after the other."""
    stats: Values = {}
    for name, stat in problem.stats.items():
        alone = {name: Stat(stat.map, stat.op)}
        lanes = identities(alone, threads)
        for piece in held:
            lanes = added(alone, piece, lanes, stats)
        stats |= across_threads(alone, lanes)
    return stats


def _of_read(problem: RowsProblem, at: Callable[[Any], Piece], config: RowsConfig) -> Values:
    """Return the statistics of a row that each pass reads."""
    stats: Values = {}
    whole, rest = divmod(problem.columns, config.columns)
    for together in problem.passes:
        chosen = {name: problem.stats[name] for name in together}

        def step(
            number: Any, *carried: Any, chosen: Mapping[str, Stat] = chosen
        ) -> tuple[Any, ...]:
            return flat(added(chosen, at(number), named(chosen, carried), stats).values())

        carried = flat(identities(chosen, config.threads).values())
        if whole:
            carried = lg.fold(whole, carried)(step)
        if rest:
            carried = step(whole, *carried)
        stats.update(across_threads(chosen, named(chosen, carried)))
    return stats


def _read(at: Callable[[Any], Piece], columns: int, width: int) -> Iterator[Piece]:
    """Yield the pieces of a row, in a loop of the kernel; then what is left."""
    whole, rest = divmod(columns, width)
    if whole:
        yield from map(at, lg.loop(whole))
    if rest:
        yield at(whole)
