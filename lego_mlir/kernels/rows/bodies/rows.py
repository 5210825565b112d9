"""The bodies of kernels on rows: whole rows in registers, and rows that are read in pieces.

In pieces, each thread keeps statistics of its own elements, and they are combined once, at the
end of the row: pieces need neither shuffles nor barriers. They stay in registers, where only what
`load` returns is held of all of them at once; or the row is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lego_mlir import frontend as lg
from lego_mlir.hardware.limits import MAX_GRID_DIMS
from lego_mlir.kernels.rows.bodies.piece import Piece, Values, divided, row_length
from lego_mlir.kernels.rows.bodies.statistics import (
    across_halves,
    across_threads,
    across_together,
    added,
    flat,
    identities,
    named,
    rebased,
    reduced_together,
)
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.lengths import RowLengths
from lego_mlir.kernels.rows.problem import COLUMNS, RowsProblem, Stat, factor_of, terms_of


def whole_rows(problem: RowsProblem, config: RowsConfig, tensors: Mapping[str, Any]) -> None:
    """Trace a CTA that holds whole rows in registers."""
    shape = config.rows, problem.longest
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
            piece.store(piece.call(problem.finish, with_terms(problem, piece, known)))
        if problem.results is not None:
            piece.store_results(piece.call(problem.results, known))


def with_terms(problem: RowsProblem, piece: Piece, stats: Values) -> Values:
    """Return the statistics of a row, and the terms of them that `finish` takes."""
    terms = {
        terms_of(name): piece.call(problem.stats[name].map, stats) for name in problem.used_terms
    }
    return {**stats, **terms, **{factor_of(name): 1.0 for name in problem.used_terms}}


def is_row_by_row(problem: RowsProblem, config: RowsConfig) -> bool:
    """Return whether CTAs with consecutive ids have the tiles of a row, not those of a column.

    So what runs at once accesses fewer pages of DRAM. It is for sizes that are known, and as many
    rows as a grid may have along y.
    """
    if (
        not problem.is_elementwise
        or problem.rows is None
        or isinstance(problem.columns, RowLengths)
    ):
        return False
    has_several = problem.longest_in_words > config.columns
    return has_several and problem.rows <= MAX_GRID_DIMS[1] * config.rows


def one_tile(problem: RowsProblem, config: RowsConfig, tensors: Mapping[str, Any]) -> None:
    """Trace a CTA that computes the elements of a tile, each by itself."""
    shape, ids = (config.rows, config.columns), (lg.block_id("x"), lg.block_id("y"))
    row, number = reversed(ids) if is_row_by_row(problem, config) else ids
    piece = Piece(problem, shape, tensors, row, number)
    assert problem.finish is not None
    piece.store(piece.call(problem.finish))


def rows_in_pieces(problem: RowsProblem, config: RowsConfig, tensors: Mapping[str, Any]) -> None:
    """Trace a CTA that has a row in pieces: in registers, or read again for each pass over it."""
    row = lg.block_id()

    def at(number: Any, *, is_inside: bool = False) -> Piece:
        return Piece(problem, config.shape, tensors, row, number, is_inside=is_inside)

    reads = _Reads.of(problem, config, row_length(problem, tensors) + problem.words_extra)
    if config.held:
        held = [at(number) for number in range(config.count(problem.longest_in_words))]
        if config.cluster > 1:
            finish_pieces(problem, held, config)
            return
        stats = _of_held(problem, held, config)
    else:
        held = []
        stats = _of_read(problem, at, config, reads)
    if problem.finish is not None:
        finish = problem.finish
        for piece in held or reads.pieces(at):
            piece.store(piece.call(finish, with_terms(problem, piece, stats)))
    if problem.results is not None:
        piece = at(0)
        piece.store_results(piece.call(problem.results, stats))


def finish_pieces(
    problem: RowsProblem,
    pieces: Sequence[Piece],
    config: RowsConfig,
    also: Callable[[int, Piece], None] = lambda number, piece: None,
) -> None:
    """Compute and store the outputs of a row in pieces that stay where they are.

    Args:
        problem: the kernel.
        pieces: of the row.
        config: its tiles.
        also: what is done with each piece, and its number, when its outputs are stored.

    Each thread has statistics of its own elements, and of these all threads combine as many as
    possible in one trip. What is stored of an element may follow from what a statistic has of it,
    which is then not computed again.
    """
    stats: Values = {}
    terms: list[Values] = [{} for _ in pieces]
    elements = config.elements(problem.longest) if isinstance(problem.columns, int) else 0
    for together in problem.passes_of(equal=elements > 0):
        chosen = {name: problem.stats[name] for name in together}
        by_halves = elements > 0 and problem.is_of_halves(together)
        lanes: Values = {COLUMNS: elements} if by_halves else {}
        for name in together:
            alone = {name: Stat(chosen[name].map, chosen[name].op)}
            own = identities(alone, config.shape)
            for piece in pieces:
                own = added(alone, piece, own, {**stats, **lanes})
            lanes |= own
        if by_halves:
            found = across_halves(chosen, lanes, problem.longest)
        else:
            found = across_together(chosen, lanes)
        for name in set(together) & set(problem.used_terms):
            for piece, known in zip(pieces, terms, strict=True):
                term = piece.call(chosen[name].map, {**stats, **lanes})
                if name in problem.used_factors:
                    known[terms_of(name)] = term
                    one = lg.full(lanes[name].shape, 1.0, "f32")
                    known[factor_of(name)] = rebased(chosen, name, {**lanes, name: one}, found)
                else:
                    known[terms_of(name)] = rebased(chosen, name, {**lanes, name: term}, found)
        stats |= found
    # Ends are stored by element, in branches: behind these LLVM would move the sums of all pieces.
    ends = {0, len(pieces) - 1} if problem.is_in_words else set()
    numbers = sorted(range(len(pieces)), key=lambda k: k not in ends)
    if config.ring_bytes:
        numbers.reverse()  # stages of the last pieces are filled for the next row: these are first
    for number in numbers:
        piece, known = pieces[number], terms[number]
        if problem.finish is not None:
            piece.store(piece.call(problem.finish, {**stats, **known}))
        also(number, piece)
    if problem.results is not None:
        pieces[0].store_results(pieces[0].call(problem.results, stats))


def _of_held(problem: RowsProblem, held: Sequence[Piece], config: RowsConfig) -> Values:
    """Return the statistics of a row whose pieces stay in registers, one after the other."""
    stats: Values = {}
    for name, stat in problem.stats.items():
        alone = {name: Stat(stat.map, stat.op)}
        lanes = identities(alone, config.shape)
        for piece in held:
            lanes = added(alone, piece, lanes, stats)
        stats |= across_threads(alone, lanes)
    return stats


class _Reads(NamedTuple):
    """The pieces of a row in the order in which a pass reads them.

    Attributes:
        first: those before a loop of the kernel: of rows that begin anywhere in a vector the one
            that may have elements of another row before its own.
        trips: how many the loop has.
        last: those behind it, which may have elements past the row's end.
    """

    first: tuple[Any, ...]
    trips: Any
    last: tuple[Any, ...]

    @staticmethod
    def of(problem: RowsProblem, config: RowsConfig, length: Any) -> _Reads:
        """Return the pieces of a row of so many columns."""
        if problem.is_in_words:
            inside = max(1, problem.longest // config.columns)
            return _Reads((0,), inside - 1, tuple(range(inside, config.count(length))))
        whole, has_rest = divided(length, config.columns)
        return _Reads((), whole, (whole,) if has_rest else ())

    @property
    def has_loop(self) -> bool:
        """Whether there may be a loop."""
        return not isinstance(self.trips, int) or self.trips > 0

    def in_loop(self, at: Callable[..., Piece], number: Any) -> Piece:
        """Return the piece of an iteration of the loop, all of whose elements are the row's."""
        return at(number + len(self.first) if self.first else number, is_inside=True)

    def pieces(self, at: Callable[..., Piece]) -> Iterator[Piece]:
        """Yield the pieces, most of them in a loop of the kernel."""
        yield from map(at, self.first)
        if self.has_loop:
            for number in lg.loop(self.trips):
                yield self.in_loop(at, number)
        yield from map(at, self.last)


def _of_read(
    problem: RowsProblem, at: Callable[..., Piece], config: RowsConfig, reads: _Reads
) -> Values:
    """Return the statistics of a row that each pass reads."""
    stats: Values = {}
    for together in problem.passes:
        chosen = {name: problem.stats[name] for name in together}

        def add(
            piece: Piece, carried: tuple[Any, ...], chosen: Mapping[str, Stat] = chosen
        ) -> tuple[Any, ...]:
            return flat(added(chosen, piece, named(chosen, carried), stats).values())

        def step(number: Any, *carried: Any, add: Callable[..., Any] = add) -> Any:
            return add(reads.in_loop(at, number), carried)

        carried = flat(identities(chosen, config.shape).values())
        for number in reads.first:
            carried = add(at(number), carried)
        if reads.has_loop:
            carried = lg.fold(reads.trips, carried)(step)
        for number in reads.last:
            carried = add(at(number), carried)
        stats.update(across_threads(chosen, named(chosen, carried)))
    return stats
