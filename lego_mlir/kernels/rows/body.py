"""The bodies of kernels on rows: whole rows in registers, and rows that are read in pieces.

In pieces, each thread keeps statistics of its own elements, and they are combined once, at the
end of the row: pieces need neither shuffles nor barriers. They stay in registers, where only what
`load` returns is held of all of them at once; or the row is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import inf, prod
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import ceildiv
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import maximum, minimum
from lego_mlir.kernels.rows import problem as words
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.philox import uniform
from lego_mlir.kernels.rows.problem import Combination, Function, RowsProblem, Stat, names_of

_REDUCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], float]] = {
    "sum": (lg.sum, lambda a, b: a + b, 0.0),
    "max": (lg.max, maximum, -inf),
    "min": (lg.min, minimum, inf),
}
"""Of each kind: the reduction, what combines two, and the identity."""

PARTIAL_ROWS, PARTIAL_COLUMNS = 256, 32
"""The tile of a CTA that adds up the sums of others."""

Values = dict[str, Any]


class Piece:
    """Some columns of the rows that a CTA works on, and the values that functions take of them.

    Args:
        problem: the kernel.
        shape: of the tiles that functions see: rows and columns; or one row's columns as
            (vector, thread, element).
        tensors: the arguments by name.
        row: the number of the tile along the rows.
        number: that along the columns.
        known: tiles of arguments that are loaded already.
    """

    def __init__(
        self,
        problem: RowsProblem,
        shape: tuple[int, ...],
        tensors: Mapping[str, Any],
        row: Any,
        number: Any,
        known: Mapping[str, Any] | None = None,
    ) -> None:
        self._problem, self._shape, self._tensors = problem, shape, tensors
        self._row, self._number = row, number
        self._rows, self._columns = shape if len(shape) == 2 else (1, prod(shape))
        self._known: Values = dict(known or {})
        self._is_loaded = False

    def call(self, function: Function, known: Mapping[str, Any] | None = None) -> Any:
        """Return what a function makes of the values that it names.

        Args:
            function: of the kernel.
            known: values beside the piece's own, such as statistics.
        """
        known = known or {}
        given = {n: known[n] if n in known else self.value(n) for n in names_of(function)}
        return function(**given)

    def store(self, outputs: Mapping[str, Any]) -> None:
        """Store outputs that have a number for each element."""
        for name, tile in outputs.items():
            tensor, shape = self._tensors[name], (self._rows, self._columns)
            if self._problem.arguments[name].per == words.GROUP:
                shape = self._rows, self._columns // words.GROUP_COLUMNS
            whole = _as(tile, tensor.dtype).reshape(*shape)
            tensor.tile(*shape)[self._row, self._number] = whole

    def store_results(self, outputs: Mapping[str, Any]) -> None:
        """Store outputs that have a number for each row."""
        for name, tile in outputs.items():
            tensor = self._tensors[name]
            tensor.tile(self._rows)[self._row] = _as(tile, tensor.dtype).reshape(self._rows)

    def value(self, name: str) -> Any:
        """Return a value that functions may name."""
        if name not in self._known:
            self._known[name] = self._made(name)
        return self._known[name]

    def _made(self, name: str) -> Any:
        rows, columns = self._rows, self._columns
        if name == words.COLUMN_INDEX:
            return self._shaped(lg.iota((1, columns), 1)) + self._number * columns
        if name == words.ROW_INDEX:
            return self._by_row(lg.arange(rows)) + self._row * rows
        if name == words.PICK:
            return self._pick
        if name == words.GROUPED:
            return lambda tile: tile.reshape(
                rows, columns // words.GROUP_COLUMNS, words.GROUP_COLUMNS
            )
        if name == words.UNIFORM:
            return lambda seed: uniform(seed, (rows, columns), self._row, self._number)
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
            case words.MATRIX:
                return tensor[0]
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
        return tile if len(self._shape) == 2 else tile.reshape(*self._shape)

    def _by_row(self, tile: Any) -> Any:
        return tile.reshape(self._rows, *[1] * (len(self._shape) - 1))

    def _pick(self, name: str, column: Any) -> Any:
        """Return the elements of an argument at a column of each row; those elsewhere are 0."""
        columns, rows = self._problem.columns, self._rows
        at = lg.restrict(column, (column >= 0) & (column < columns)).reshape(rows)
        line = lg.arange(rows) + self._row * rows
        tensor = self._tensors[name]
        found = tensor[lg.restrict(line, line < tensor.shape[0]), at]
        return self._by_row(lg.fill(found, 0))


def whole_rows(problem: RowsProblem, config: RowsConfig, tensors: Mapping[str, Any]) -> None:
    """Trace a CTA that holds whole rows in registers."""
    shape = config.rows, problem.columns
    _finish_whole(problem, Piece(problem, shape, tensors, lg.block_id(), 0))


def _finish_whole(problem: RowsProblem, piece: Piece) -> None:
    stats: Values = {}
    for name, stat in problem.stats.items():
        stats[name] = _reduced(stat, piece.call(stat.map, stats), axis=1)
    if problem.finish is not None:
        piece.store(piece.call(problem.finish, stats))
    if problem.results is not None:
        piece.store_results(piece.call(problem.results, stats))


def one_tile(problem: RowsProblem, config: RowsConfig, tensors: Mapping[str, Any]) -> None:
    """Trace a CTA that computes the elements of a tile, each by itself."""
    shape = config.rows, config.columns
    piece = Piece(problem, shape, tensors, lg.block_id("x"), lg.block_id("y"))
    assert problem.finish is not None
    piece.store(piece.call(problem.finish))


def sums_of_columns(
    problem: RowsProblem,
    config: RowsConfig,
    tensors: Mapping[str, Any],
    *,
    finishes: bool,
) -> None:
    """Trace a CTA that adds up columns, of every so many rows.

    Args:
        problem: the kernel.
        config: its tiles.
        tensors: the arguments by name; instead of sums of columns those of each CTA.
        finishes: whether it computes the other outputs, too. Then it holds whole rows.

    The loop carries the sums, and the rows that were loaded ahead.
    """
    first, number = lg.block_id("x"), 0 if finishes else lg.block_id("y")
    shape = config.rows, problem.columns if finishes else config.columns
    functions, turn_rows = problem.column_sums, config.rows * config.ctas
    rows = tensors[problem.loaded_elementwise[0]].shape[0]
    is_ragged = problem.rows is None or problem.rows % turn_rows > 0
    ahead = problem.loaded_by_row if config.ahead else ()

    def piece_of(turn: Any, known: Mapping[str, Any] | None = None) -> Piece:
        return Piece(problem, shape, tensors, turn * config.ctas + first, number, known)

    once = problem.loaded_by_column if config.ahead else ()
    fixed = {name: piece_of(0).value(name) for name in once}

    def fetch(turn: Any) -> tuple[Any, ...]:
        piece = piece_of(turn)
        return tuple(lg.fill(piece.value(name), 0) for name in ahead)

    def step(turn: Any, *before: Any) -> tuple[Any, ...]:
        following = fetch(turn + 1)
        known = dict(zip(ahead, before, strict=False))
        piece = piece_of(turn, {**fixed, **known})
        after = []
        for function, old in zip(functions.values(), before[len(ahead) :], strict=True):
            new = piece.call(function)
            if is_ragged:
                new = lg.restrict(new, piece.value(words.ROW_INDEX) < rows)
            after.append(old + lg.fill(new, 0.0))
        if finishes:
            _finish_whole(problem, piece)
        return (*following, *after)

    zeros: Any = lg.zeros(shape, "f32")
    start = (*fetch(0), *[lg.fill(zeros, 0.0)] * len(functions))
    found = lg.fold(ceildiv(rows, turn_rows), start)(step)
    for name, tile in zip(functions, found[len(ahead) :], strict=True):
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
        whole = _as(lg.sum(found, axis=0), tensors[total].dtype)
        tensors[total].tile(PARTIAL_COLUMNS)[column] = whole


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
        lanes = _identities(alone, threads)
        for piece in held:
            lanes = _added(alone, piece, lanes, stats)
        stats |= _across_threads(alone, lanes)
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
            return _flat(_added(chosen, at(number), _named(chosen, carried), stats).values())

        carried = _flat(_identities(chosen, config.threads).values())
        if whole:
            carried = lg.fold(whole, carried)(step)
        if rest:
            carried = step(whole, *carried)
        stats.update(_across_threads(chosen, _named(chosen, carried)))
    return stats


def _read(at: Callable[[Any], Piece], columns: int, width: int) -> Iterator[Piece]:
    """Yield the pieces of a row, in a loop of the kernel; then what is left."""
    whole, rest = divmod(columns, width)
    if whole:
        yield from map(at, lg.loop(whole))
    if rest:
        yield at(whole)


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
