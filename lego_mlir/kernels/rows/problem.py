"""What a kernel on rows computes: its arguments, the statistics of a row, and functions of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import gcd
from typing import Any, Literal, NamedTuple

from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import ScalarType, Tensor, TensorType
from lego_mlir.frontend.dtypes import bytes_of, check_dtype
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES
from lego_mlir.index import Int
from lego_mlir.kernels.functions import Function, names_of, taking
from lego_mlir.kernels.rows.lengths import RowLengths

ELEMENT, COLUMN, ROW = "element", "column", "row"
GROUP, MATRIX, LAUNCH = "group", "matrix", "launch"

GROUP_COLUMNS = 128
"""Columns of a group, of those that are quantized together."""

_ROWS, _MANY = "M", 1 << 20
"""The name of a number of rows that the launch knows, and what it is taken for."""

COLUMN_INDEX, ROW_INDEX, COLUMNS, PICK, GROUPED, UNIFORM = (
    "column_index", "row_index", "columns", "pick", "grouped", "uniform",
)  # fmt: skip
"""What every function may name beside the values of its kernel."""

_TERMS, _FACTOR = "_terms", "_factor"

_WIDE_BYTES, _SHORT_BYTES, _READ_BYTES = 4, 8192, {False: 20480, True: 131072}
"""Bytes of an element that rows are reduced of as fast alone as in a vector; and of a row, up to
which a CTA has several rows, which begin at any element; the same of rows that are only read."""

_SHORT_COPIED, _COPIED_BYTES = {False: 4096, True: 32768}, 1 << 23
_LONG_BYTES = {False: 1 << 19, True: 1 << 21}
"""The same of shifted copies by columns, by whether elements have 4 bytes, twice that for pairs;
the bytes of a matrix that are worth them; and of all inputs' rows, by whether columns have sums."""


def terms_of(stat: str) -> str:
    """Return the name by which `finish` takes what each element contributes to a statistic."""
    return stat + _TERMS


def factor_of(stat: str) -> str:
    """Return the name by which `finish` takes what the terms of a statistic are multiplied by.

    Where it takes that, the terms are those of a thread's own statistics, not multiplied yet.
    """
    return stat + _FACTOR


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a kernel on rows.

    Attributes:
        dtype: MLIR's name of the element type.
        per: what it has one number for: each element of the matrix, each column, each row, each
            group of 128 columns of a row, the matrix (an array of one), or the launch (a number
            that the call passes).
    """

    dtype: str
    per: Literal["element", "column", "row", "group", "matrix", "launch"] = "element"

    @property
    def bytes(self) -> int:
        """The bytes of a number."""
        return bytes_of(self.dtype)


class Combination(NamedTuple):
    """A reduction of several values together, as `lg.reduce` has it.

    Attributes:
        function: takes two tuples of values and returns one; associative and commutative.
        identity: a tuple of numbers.
    """

    function: Callable[[Any, Any], Any]
    identity: tuple[Any, ...]


class Stat(NamedTuple):
    """A statistic of a row: the combination of a function of its elements.

    Attributes:
        map: a function of an element. It may name statistics that come before this one.
        op: how its values are combined: `sum`, `max`, `min`, or a `Combination`, for which `map`
            returns a tuple.
        rebase: where `map` names an earlier statistic, what makes of a sum with one value of that
            the sum with another: `rebase(sum, old, new)`, the sum times a factor. With it, both are
            computed in one pass over a row that is read in pieces; without it, each has a pass of
            its own.
        of_halves: of a sum whose `map` names earlier ones, the mean of its terms in a row, of the
            means of all sums in the row's halves by name: `of_halves(first, second)`. With it, both
            are computed in one pass where threads have equally many elements, each first of its
            own: `columns` is then the number of those.
    """

    map: Function
    op: str | Combination = "sum"
    rebase: Callable[[Any, Any, Any], Any] | None = None
    of_halves: Callable[[Mapping[str, Any], Mapping[str, Any]], Any] | None = None


@dataclass(frozen=True)
class RowsProblem:
    """A kernel on rows.

    Attributes:
        name: of the kernel.
        rows: of the matrix; `None` if each launch has its own number.
        columns: of the matrix; or those that launches of this kernel may have.
        arguments: by name, in order.
        load: returns the row's values by name, of what the arguments have; computed in f32.
        stats: by name, in the order in which they are computed.
        finish: returns the outputs that have a number for each element, by name.
        results: returns the outputs that have a number for each row, by name.
        column_sums: functions of an element by the output that is their sum along a column.
        strided: whether the rows of each matrix begin as far apart as each launch says.
        in_place: whether an output may be one of the inputs.
    """

    name: str
    rows: int | None
    columns: int | RowLengths
    arguments: Mapping[str, Argument]
    load: Function
    stats: Mapping[str, Stat] = field(default_factory=dict)
    finish: Function | None = None
    results: Function | None = None
    column_sums: Mapping[str, Function] = field(default_factory=dict)
    strided: bool = False
    in_place: bool = False

    def __post_init__(self) -> None:
        for what, n in (("rows", self.rows), ("columns", self.columns)):
            is_open = n is None if what == "rows" else isinstance(n, RowLengths)
            if not is_open and (type(n) is not int or n < 1):
                raise LegoError(
                    f"{self.name}: {what} is a positive integer, not {n!r}",
                    hint="None makes a kernel for any number, which each launch knows",
                )
        for argument in self.arguments.values():
            check_dtype(argument.dtype)
            if argument.per == GROUP and self.divisor % GROUP_COLUMNS:
                raise LegoError(
                    f"{self.name}: {self.columns} columns are no multiple of {GROUP_COLUMNS}, the "
                    "columns of a group"
                )
        for name, function in self.column_sums.items():
            statistics = [n for n in names_of(function) if n in self.stats]
            if statistics:
                raise LegoError(
                    f"{self.name}: the sums of columns {name} take the statistic '{statistics[0]}'",
                    hint="a kernel that ran before stores it, and it becomes an argument",
                )

    def tensor(self, name: str) -> TensorType | ScalarType:
        """Return the type of an argument."""
        argument = self.arguments[name]
        if argument.per == LAUNCH:
            return ScalarType(argument.dtype)
        rows, columns = self.rows_text, self.columns_text()
        texts = {
            ELEMENT: f"{rows}, {columns}" + f" : {name}_stride, 1" * self.strided,
            COLUMN: f"{columns}",
            ROW: rows,
            GROUP: f"{rows}, {self.columns_text(GROUP_COLUMNS)}",
            MATRIX: "1",
        }
        return typed(argument.dtype, texts[argument.per])

    @property
    def rows_text(self) -> str:
        """The number of rows in types of tensors."""
        return _ROWS if self.rows is None else str(self.rows)

    def columns_text(self, divisor: int = 1) -> str:
        """Return the number of columns, divided by one of its divisors, in types of tensors."""
        if isinstance(self.columns, RowLengths):
            return self.columns.text(divisor)
        return str(self.columns // divisor)

    @property
    def size(self) -> Int:
        """The number of columns as a size of tensors."""
        return self.columns.size if isinstance(self.columns, RowLengths) else self.columns

    @property
    def longest(self) -> int:
        """The number of columns, or the greatest that the kernel is made for."""
        return self.columns.longest if isinstance(self.columns, RowLengths) else self.columns

    @property
    def divisor(self) -> int:
        """What is known to divide the number of columns."""
        return self.columns.multiple if isinstance(self.columns, RowLengths) else self.columns

    @property
    def many_rows(self) -> int:
        """The number of rows, or one that keeps the GPU busy."""
        return _MANY if self.rows is None else self.rows

    def grid(self, size: Callable[[Any, Any], Any]) -> Any:
        """Return a grid.

        Args:
            size: returns it, of the numbers of rows and columns.
        """
        first = next(n for n, a in self.arguments.items() if a.per == ELEMENT)
        return taking([first], lambda types: size(*types[first].shape))

    @cached_property
    def elementwise(self) -> tuple[Argument, ...]:
        """The arguments that have a number for each element."""
        return tuple(a for a in self.arguments.values() if a.per == ELEMENT)

    @cached_property
    def element_bytes(self) -> int:
        """The bytes of the widest elements."""
        return max(a.bytes for a in self.elementwise)

    @property
    def has_masks(self) -> bool:
        """Whether rows are of a class of lengths: their masks need registers, too.

        One register too many lets a multiprocessor have fewer CTAs at once than were measured.
        """
        return isinstance(self.columns, RowLengths)

    @property
    def has_groups(self) -> bool:
        """Whether an argument has a number for each group of columns."""
        return any(a.per == GROUP for a in self.arguments.values())

    @property
    def is_elementwise(self) -> bool:
        """Whether each element is computed by itself."""
        return not (self.stats or self.results or self.column_sums)

    @property
    def loaded_by_row(self) -> tuple[str, ...]:
        """The arguments that `load` takes which differ from row to row."""
        names = names_of(self.load)
        return tuple(n for n in names if self.arguments[n].per in (ELEMENT, ROW))

    @property
    def loaded_elementwise(self) -> tuple[str, ...]:
        """The arguments that `load` takes which have a number for each element."""
        return tuple(n for n in self.loaded_by_row if self.arguments[n].per == ELEMENT)

    @property
    def loaded_by_column(self) -> tuple[str, ...]:
        """The inputs that have a number for each column."""
        given = (n for n, a in self.arguments.items() if a.per == COLUMN)
        return tuple(n for n in given if n not in self.column_sums)

    @cached_property
    def used_terms(self) -> tuple[str, ...]:
        """The statistics of whose terms `finish` makes outputs."""
        taken = names_of(self.finish) if self.finish is not None else ()
        return tuple(name for name in self.stats if terms_of(name) in taken)

    @cached_property
    def used_factors(self) -> tuple[str, ...]:
        """The statistics whose terms `finish` multiplies by their factor itself."""
        taken = names_of(self.finish) if self.finish is not None else ()
        return tuple(name for name in self.stats if factor_of(name) in taken)

    @cached_property
    def vector(self) -> int:
        """The most elements of a row that one access of every such argument may take."""
        return self._widest if self.is_in_words else gcd(self._widest, self.divisor)

    @property
    def _widest(self) -> int:
        """The elements of a vector, if those of the widest type are aligned."""
        return MAX_ACCESS_BYTES // self.element_bytes

    @cached_property
    def is_in_words(self) -> bool:
        """Whether pieces begin with the aligned vector in which their row does.

        A row's pieces that begin with it have aligned vectors only. Elements of other rows, at the
        ends, are invalid, and stored one by one. Of what belongs to columns there are shifted
        copies then, which many rows are worth. Rows whose stride the launch says are not aligned;
        and what is updated in place must not be read for another row. Rows of 4-byte elements
        without such inputs are reduced as fast one by one; where each element is computed by
        itself, or a long row is only read, vectors are faster.
        """
        kinds = {a.per for a in self.arguments.values()}
        functions = [self.load, *(stat.map for stat in self.stats.values())]
        functions += [self.finish] if self.finish is not None else []
        return (
            isinstance(self.columns, int)
            and self.columns % self._widest > 0
            and (self._is_worth_copies if COLUMN in kinds else self._is_worth_words)
            and not (self.strided or self.in_place or GROUP in kinds)
            and not any(UNIFORM in names_of(function) for function in functions)
        )

    @property
    def _is_worth_words(self) -> bool:
        """Whether rows that nothing by columns goes with are faster by aligned vectors."""
        row, is_wide = self.longest * self.element_bytes, self.element_bytes >= _WIDE_BYTES
        if self.finish is None:
            return row > _READ_BYTES[is_wide]
        return row > _SHORT_BYTES and (self.is_elementwise or not is_wide)

    @property
    def _is_worth_copies(self) -> bool:
        """Whether rows are so many that copies of what belongs to columns cost little."""
        row, is_wide = self.longest * self.element_bytes, self.element_bytes >= _WIDE_BYTES
        in_pairs = not is_wide and self.longest % 2 == 0 and not self.column_sums
        most = _LONG_BYTES[bool(self.column_sums)] // max(1, len(self.loaded_elementwise))
        is_fit = _SHORT_COPIED[is_wide] << in_pairs < row <= most and self.finish is not None
        return is_fit and row * self.many_rows > _COPIED_BYTES and not self.is_elementwise

    @property
    def starts(self) -> int:
        """At how many places in a vector rows begin; that of every so many is the same."""
        return self.vector // gcd(self.vector, self.longest)

    @property
    def words_extra(self) -> int:
        """The most elements of other rows that are before a row in its first vector."""
        return self._widest - 1 if self.is_in_words else 0

    @property
    def longest_in_words(self) -> int:
        """The most columns of pieces that begin with a row's first vector."""
        return self.longest + self.words_extra

    @cached_property
    def passes(self) -> tuple[tuple[str, ...], ...]:
        """The statistics that one pass over the pieces of a row computes, pass by pass."""
        return self.passes_of(equal=False)

    def passes_of(self, *, equal: bool) -> tuple[tuple[str, ...], ...]:
        """Return the statistics that one pass over the pieces of a row computes, pass by pass.

        Args:
            equal: whether all threads have equally many elements of it.
        """
        found: list[list[str]] = []
        for name, stat in self.stats.items():
            together = found[-1] if found else []
            needed = [n for n in names_of(stat.map) if n in together]
            is_joined = stat.rebase is not None or (equal and self.is_of_halves([*together, name]))
            if not found or (needed and not is_joined):
                found.append([])
            found[-1].append(name)
        return tuple(map(tuple, found))

    def is_of_halves(self, together: Sequence[str]) -> bool:
        """Return whether statistics of one pass follow from those of two halves of a row.

        All are sums then, the last of which names another one.
        """
        stats = [self.stats[name] for name in together]
        needed = set(names_of(stats[-1].map)) & set(together)
        are_sums = all(stat.op == "sum" and stat.rebase is None for stat in stats)
        return bool(needed) and are_sums and stats[-1].of_halves is not None


def typed(dtype: str, sizes: str) -> TensorType:
    """Return the type of a tensor of these sizes, which vectors may access."""
    return Tensor.__class_getitem__((dtype, sizes, MAX_ACCESS_BYTES))
