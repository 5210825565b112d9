"""The bodies of kernels on rows: whole rows in registers, and rows that are read in pieces.

In pieces, each thread keeps statistics of its own elements, and they are combined once, at the
end of the row: the loop needs neither shuffles nor barriers. Then the row is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from math import inf
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import maximum, minimum
from lego_mlir.kernels.rows import problem as words
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.problem import Combination, Function, RowsProblem, Stat, names_of

_REDUCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], float]] = {
    "sum": (lg.sum, lambda a, b: a + b, 0.0),
    "max": (lg.max, maximum, -inf),
    "min": (lg.min, minimum, inf),
}
"""Of each kind: the reduction, what combines two, and the identity."""

Values = dict[str, Any]


class Piece:
    """Some columns of the rows that a CTA works on, and the values that functions take of them.

    Args:
        problem: the kernel.
        config: its tiles.
        tensors: the arguments by name.
        row: the number of the CTA's rows.
        number: of the piece, a number or an index; 0 where a CTA holds whole rows.
    """

    def __init__(
        self,
        problem: RowsProblem,
        config: RowsConfig,
        tensors: Mapping[str, Any],
        row: Any,
        number: Any,
    ) -> None:
        self._problem, self._config, self._tensors = problem, config, tensors
        self._row, self._number = row, number
        self._columns = config.columns or problem.columns
        self._held = (
            (config.piece, config.threads, config.vector)
            if config.piece
            else (config.rows, self._columns)
        )
        self._known: Values = {}
        self._is_loaded = False

    def call(self, function: Function, known: Mapping[str, Any] | None = None) -> Any:
        """Return what a function makes of the values that it names.

        Args:
            function: of the kernel.
            known: values beside the piece's own, such as statistics.
        """
        known = known or {}
        given = {n: known[n] if n in known else self._value(n) for n in names_of(function)}
        return function(**given)

    def store(self, outputs: Mapping[str, Any]) -> None:
        """Store outputs that have a number for each element."""
        for name, tile in outputs.items():
            tensor = self._tensors[name]
            whole = tile.reshape(self._config.rows, self._columns)
            tensor.tile(self._config.rows, self._columns)[self._row, self._number] = _as(
                whole, tensor.dtype
            )

    def store_results(self, outputs: Mapping[str, Any]) -> None:
        """Store outputs that have a number for each row."""
        rows = self._config.rows
        for name, tile in outputs.items():
            tensor = self._tensors[name]
            tensor.tile(rows)[self._row] = _as(tile.reshape(rows), tensor.dtype)

    def _value(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._made(name)
        return self._known[name]

    def _made(self, name: str) -> Any:
        rows, columns = self._config.rows, self._columns
        if name == words.COLUMN_INDEX:
            return self._shaped(lg.iota((1, columns), 1)) + self._number * columns
        if name == words.ROW_INDEX:
            return self._by_row(lg.arange(rows)) + self._row * rows
        if name == words.PICK:
            return self._pick
        argument = self._problem.arguments.get(name)
        if argument is None:
            return self._loaded(name)
        tensor = self._tensors[name]
        match argument.per:
            case words.ELEMENT:
                tile = tensor.tile(rows, columns)[self._row, self._number]
                return self._shaped(tile)
            case words.COLUMN:
                return self._shaped(tensor.tile(columns)[self._number][None, :])
            case words.ROW:
                return self._by_row(tensor.tile(rows)[self._row])
        return tensor

    def _loaded(self, name: str) -> Any:
        """Return one of the values that the kernel's `load` returns, which runs once."""
        if not self._is_loaded:
            self._is_loaded = True
            found = self.call(self._problem.load)
            self._known.update(found if isinstance(found, dict) else {"row": found})
        if name not in self._known:
            known = ", ".join([*self._problem.arguments, *self._known, *self._problem.stats])
            raise LegoError(
                f"{self._problem.name}: a function of the kernel takes '{name}', and there is none",
                hint=f"it may take {known}",
            )
        return self._known[name]

    def _shaped(self, tile: Any) -> Any:
        """Return a tile of columns in the shape that functions see."""
        return tile.reshape(*self._held) if self._config.piece else tile

    def _by_row(self, tile: Any) -> Any:
        return tile.reshape(self._config.rows, *[1] * (len(self._held) - 1))

    def _pick(self, name: str, column: Any) -> Any:
        """Return the elements of an argument at a column of each row; those elsewhere are 0."""
        columns, rows = self._problem.columns, self._config.rows
        at = lg.restrict(column, (column >= 0) & (column < columns)).reshape(rows)
        line = lg.arange(rows) + self._row * rows
        found = self._tensors[name][lg.restrict(line, line < self._problem.rows), at]
        return self._by_row(lg.fill(found, 0))


def whole_rows(problem: RowsProblem, config: RowsConfig, tensors: Mapping[str, Any]) -> None:
    """Trace a CTA that holds whole rows in registers."""
    piece = Piece(problem, config, tensors, lg.block_id(), 0)
    stats: Values = {}
    for name, stat in problem.stats.items():
        stats[name] = _reduced(stat, piece.call(stat.map, stats), axis=1)
    if problem.finish is not None:
        piece.store(piece.call(problem.finish, stats))
    if problem.results is not None:
        piece.store_results(piece.call(problem.results, stats))


def rows_in_pieces(problem: RowsProblem, config: RowsConfig, tensors: Mapping[str, Any]) -> None:
    """Trace a CTA that reads a row in pieces, once for each pass, and once to finish."""
    row = lg.block_id()
    whole, rest = divmod(problem.columns, config.columns)

    def at(number: Any) -> Piece:
        return Piece(problem, config, tensors, row, number)

    stats: Values = {}
    for together in problem.passes:
        chosen = {name: problem.stats[name] for name in together}
        lanes = _identities(chosen, config.threads)

        def step(
            number: Any, *carried: Any, chosen: Mapping[str, Stat] = chosen
        ) -> tuple[Any, ...]:
            return _flat(_added(chosen, at(number), _named(chosen, carried), stats).values())

        carried = _flat(lanes.values())
        if whole:
            carried = lg.fold(whole, carried)(step)
        if rest:
            carried = step(whole, *carried)
        stats.update(_across_threads(chosen, _named(chosen, carried)))
    if problem.finish is not None:
        finish = problem.finish
        for number in lg.loop(whole) if whole else ():
            piece = at(number)
            piece.store(piece.call(finish, stats))
        if rest:
            piece = at(whole)
            piece.store(piece.call(finish, stats))
    if problem.results is not None:
        piece = at(0)
        piece.store_results(piece.call(problem.results, stats))


def _reduced(stat: Stat, mapped: Any, axis: int | tuple[int, ...]) -> Any:
    """Return the statistic of what its function made of elements, whose dimensions stay."""
    if isinstance(stat.op, Combination):
        return lg.reduce(stat.op.function, mapped, axis, identity=stat.op.identity, keepdims=True)
    return _REDUCTIONS[stat.op][0](mapped, axis=axis, keepdims=True)


def _identities(stats: Mapping[str, Stat], threads: int) -> Values:
    """Return the statistics of no elements, for each thread."""
    shape = (1, threads, 1)
    return {
        name: _each(stat, lambda n: lg.full(shape, n, _type_of(n))) for name, stat in stats.items()
    }


def _type_of(number: Any) -> str:
    return "f32" if isinstance(number, float) else "i32"


def _each(stat: Stat, function: Callable[[Any], Any]) -> Any:
    """Return a function of the identity of a statistic, or of each of several."""
    if isinstance(stat.op, Combination):
        return tuple(map(function, stat.op.identity))
    return function(_REDUCTIONS[stat.op][2])


def _added(chosen: Mapping[str, Stat], piece: Piece, before: Values, known: Values) -> Values:
    """Return the statistics of each thread with those of its elements of a piece."""
    after: Values = {}
    for name, stat in chosen.items():
        mapped = piece.call(stat.map, {**known, **after})
        if isinstance(stat.op, Combination):
            several = zip(mapped, stat.op.identity, strict=True)
            filled = tuple(lg.fill(tile, number) for tile, number in several)
            after[name] = stat.op.function(before[name], _reduced(stat, filled, (0, 2)))
            continue
        _, combine, identity = _REDUCTIONS[stat.op]
        old = _rebased(chosen, name, before, after)
        after[name] = combine(old, _reduced(stat, lg.fill(mapped, identity), (0, 2)))
    return after


def _across_threads(chosen: Mapping[str, Stat], lanes: Values) -> Values:
    """Return the statistics of a row, of those of each thread."""
    found: Values = {}
    for name, stat in chosen.items():
        found[name] = _reduced(stat, _rebased(chosen, name, lanes, found), 1)
    return found


def _rebased(chosen: Mapping[str, Stat], name: str, before: Values, after: Values) -> Any:
    """Return a statistic as it is with later values of the one that it depends on."""
    stat = chosen[name]
    bases = [n for n in names_of(stat.map) if n in chosen]
    if stat.rebase is None or not bases:
        return before[name]
    (base,) = bases
    return stat.rebase(before[name], before[base], after[base])


def _flat(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return values in a row, those of combinations one by one."""
    return tuple(chain.from_iterable(v if isinstance(v, tuple) else (v,) for v in values))


def _named(stats: Mapping[str, Stat], flat: Sequence[Any]) -> Values:
    """Return flat values by the name of their statistic."""
    rest = iter(flat)
    return {name: _each(stat, lambda _: next(rest)) for name, stat in stats.items()}


def _as(tile: Any, dtype: str) -> Any:
    return tile if tile.dtype == dtype else tile.to(dtype)
