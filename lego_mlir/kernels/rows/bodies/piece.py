"""Some columns of the rows that a CTA works on, and the values that functions take of them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, TypeAlias

from lego_mlir import frontend as lg
from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels.functions import Function, names_of
from lego_mlir.kernels.rows import problem as words
from lego_mlir.kernels.rows.bodies.philox import uniform
from lego_mlir.kernels.rows.problem import RowsProblem

Values: TypeAlias = dict[str, Any]
"""Tiles, or tuples of them, by name."""


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
        is_inside: whether all its elements are the row's, wherever that begins in a vector.
    """

    def __init__(
        self,
        problem: RowsProblem,
        shape: tuple[int, ...],
        tensors: Mapping[str, Any],
        row: Any,
        number: Any,
        known: Mapping[str, Any] | None = None,
        *,
        is_inside: bool = False,
    ) -> None:
        self._problem, self._shape, self._tensors = problem, shape, tensors
        self._is_inside = is_inside
        self._row, self._number = row, number
        self._rows, self._columns = shape if len(shape) == 2 else (1, prod(shape))
        self._known: Values = dict(known or {})
        self._given, self._loads = dict(self._known), Values()
        self._is_loaded = False
        self._is_in_words = (
            problem.is_in_words and self._rows == 1 and self._columns % problem.vector == 0
        )

    def call(self, function: Function, known: Mapping[str, Any] | None = None) -> Any:
        """Return what a function makes of the values that it names.

        Args:
            function: of the kernel.
            known: values beside the piece's own, such as statistics.
        """
        known = known or {}
        given = {n: known[n] if n in known else self.value(n) for n in names_of(function)}
        return function(**given)

    def with_others(self) -> Piece:
        """Return the piece whose elements of other rows are valid, too, as if they were the row's.

        It is for sums of columns, of which those outside of the row are not stored.
        """
        if not self._is_in_words:
            return self
        known = {**self._given, **self._loads}
        return Piece(self._problem, self._shape, self._tensors, self._row, self._number, known)

    def store(self, outputs: Mapping[str, Any]) -> None:
        """Store outputs that have a number for each element."""
        for name, tile in outputs.items():
            tensor, shape = self._tensors[name], (self._rows, self._columns)
            if self._problem.arguments[name].per == words.GROUP:
                shape = self._rows, self._columns // words.GROUP_COLUMNS
            whole = as_dtype(tile, tensor.dtype).reshape(*shape)
            if self._is_in_words:
                tiles, at = self._words(tensor)
                tiles[at] = whole.reshape(self._columns)  # those of other rows are dropped
                continue
            tensor.tile(*shape)[self._row, self._number] = whole

    def store_sums(self, sums: Mapping[str, Any]) -> None:
        """Store sums of columns, of which each CTA, whose number is the row's, has a row."""
        for name, tile in sums.items():
            tensor, whole = self._tensors[name], tile.reshape(1, self._columns)
            if self._is_in_words:
                tiles, at = self._words(tensor)
                tiles[at] = self._of_row(tile).reshape(self._columns)
                continue
            tensor.tile(1, self._columns)[self._row, self._number] = whole

    def store_shifted_sums(self, sums: Mapping[str, Any], number: Any, layout: Layout) -> None:
        """Store sums of columns in a row of any number, which begins anywhere in a vector.

        Args:
            sums: of the piece's columns.
            number: of the row, in which a vector is before the sums.
            layout: of what is stored, element by element.
        """
        for name, tile in sums.items():
            tensor, columns = self._tensors[name], self._columns
            rows, length = tensor.dims
            tiles = tensor.reshape(rows * length).exclusive().tile(columns, step=1)
            before = self._problem.vector - self._start + self._number * columns
            whole = lg.convert(self._of_row(tile), layout)
            tiles[number * length + before] = whole.reshape(columns)

    def store_results(self, outputs: Mapping[str, Any]) -> None:
        """Store outputs that have a number for each row."""
        for name, tile in outputs.items():
            tensor = self._tensors[name]
            tensor.tile(self._rows)[self._row] = as_dtype(tile, tensor.dtype).reshape(self._rows)

    def value(self, name: str) -> Any:
        """Return a value that functions may name."""
        if name not in self._known:
            self._known[name] = self._made(name)
        return self._known[name]

    def _made(self, name: str) -> Any:
        rows, columns = self._rows, self._columns
        if name == words.COLUMN_INDEX:
            first = self._number * columns
            if self._is_in_words:
                first = first - self._start
            return self._shaped(lg.iota((1, columns), 1)) + first
        if name == words.ROW_INDEX:
            return self._by_row(lg.arange(rows)) + self._row * rows
        if name == words.COLUMNS:
            return row_length(self._problem, self._tensors)
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
            case words.ELEMENT if self._is_in_words:
                tiles, at = self._words(tensor)
                tile = tiles[at]
                if self._problem.column_sums:  # only the row's end says what is valid
                    tile = lg.fill(tile, 0)
                self._loads[name] = self._shaped(tile.reshape(1, columns))
                return self._of_row(self._loads[name])
            case words.ELEMENT:
                tile = tensor.tile(rows, columns)[self._row, self._number]
                return self._shaped(tile)
            case words.COLUMN if self._problem.is_in_words:
                copy = self._start if self._is_in_words else 0
                return self._shaped(tensor.tile(1, columns)[copy, self._number])
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

    @property
    def _start(self) -> Any:
        """Where the row begins in its first vector."""
        return self._row * self._problem.longest % self._problem.vector

    def _words(self, tensor: Any) -> tuple[Any, Any]:
        """Return the tiles of a matrix that begin with any of its vectors, and the piece's index.

        The first piece begins with the vector in which the row does.
        """
        vector, columns = self._problem.vector, self._columns
        rows, length = tensor.dims
        flat = tensor.reshape(rows * length).exclusive()
        first = self._row * length // vector + self._number * (columns // vector)
        return flat.tile(columns, step=vector), first

    def _of_row(self, tile: Any) -> Any:
        """Return a tile whose elements of other rows are invalid."""
        if self._is_inside:
            return tile
        n, columns, number = self._problem.longest, self._columns, self._number
        if not isinstance(number, int) or number == 0:
            tile = lg.restrict(tile, self.value(words.COLUMN_INDEX) >= 0)
        if not isinstance(number, int) or (number + 1) * columns > n:
            tile = lg.restrict(tile, self.value(words.COLUMN_INDEX) < n)
        return tile

    def _shaped(self, tile: Any) -> Any:
        """Return a tile of columns in the shape that functions see."""
        return tile if len(self._shape) == 2 else tile.reshape(*self._shape)

    def _by_row(self, tile: Any) -> Any:
        return tile.reshape(self._rows, *[1] * (len(self._shape) - 1))

    def _pick(self, name: str, column: Any) -> Any:
        """Return the elements of an argument at a column of each row; those elsewhere are 0."""
        columns, rows = row_length(self._problem, self._tensors), self._rows
        at = lg.restrict(column, (column >= 0) & (column < columns)).reshape(rows)
        line = lg.arange(rows) + self._row * rows
        tensor = self._tensors[name]
        found = tensor[lg.restrict(line, line < tensor.shape[0]), at]
        return self._by_row(lg.fill(found, 0))


def row_length(problem: RowsProblem, tensors: Mapping[str, Any]) -> Any:
    """Return the number of columns: a number, or an index where only the launch knows it."""
    first = next(n for n, a in problem.arguments.items() if a.per == words.ELEMENT)
    return tensors[first].shape[1]


def divided(columns: Any, width: int) -> tuple[Any, bool]:
    """Return how many whole pieces a row has, and whether there is one of what is left.

    There is one of a row whose length only the launch knows, maybe without columns.
    """
    if isinstance(columns, int):
        return columns // width, columns % width > 0
    return columns // width, True


def as_dtype(tile: Any, dtype: str) -> Any:
    """Return a tile with elements of a type."""
    return tile if tile.dtype == dtype else tile.to(dtype)
