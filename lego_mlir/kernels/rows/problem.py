"""What a kernel on rows computes: its arguments, the statistics of a row, and functions of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from math import gcd
from typing import Any, Literal, NamedTuple, TypeAlias

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import ScalarType, TensorType
from lego_mlir.frontend.dtypes import check_dtype
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES

Function: TypeAlias = Callable[..., Any]
"""A function of tiles, which it names: arguments, what is loaded, statistics, indices."""

ELEMENT, COLUMN, ROW, LAUNCH = "element", "column", "row", "launch"

COLUMN_INDEX, ROW_INDEX, PICK = "column_index", "row_index", "pick"
"""What every function may name beside the values of its kernel."""

_INDICES = (COLUMN_INDEX, ROW_INDEX, PICK)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a kernel on rows.

    Attributes:
        dtype: MLIR's name of the element type.
        per: what it has one number for: each element of the matrix, each column, each row, or the
            launch.
    """

    dtype: str
    per: Literal["element", "column", "row", "launch"] = "element"

    @property
    def bytes(self) -> int:
        """The bytes of a number."""
        return ELEMENT_BYTES[self.dtype]


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
            the sum with another: `rebase(sum, old, new)`. With it, both are computed in one pass
            over a row that is read in pieces; without it, each has a pass of its own.
    """

    map: Function
    op: str | Combination = "sum"
    rebase: Callable[[Any, Any, Any], Any] | None = None


@dataclass(frozen=True)
class RowsProblem:
    """A kernel on rows.

    Attributes:
        name: of the kernel.
        rows: of the matrix.
        columns: of the matrix.
        arguments: by name, in order.
        load: returns the row's values by name, of what the arguments have; computed in f32.
        stats: by name, in the order in which they are computed.
        finish: returns the outputs that have a number for each element, by name.
        results: returns the outputs that have a number for each row, by name.
    """

    name: str
    rows: int
    columns: int
    arguments: Mapping[str, Argument]
    load: Function
    stats: Mapping[str, Stat] = field(default_factory=dict)
    finish: Function | None = None
    results: Function | None = None

    def __post_init__(self) -> None:
        for what, n in (("rows", self.rows), ("columns", self.columns)):
            if type(n) is not int or n < 1:
                raise LegoError(f"{self.name}: {what} is a positive integer, not {n!r}")
        for argument in self.arguments.values():
            check_dtype(argument.dtype)

    def tensor(self, name: str) -> TensorType | ScalarType:
        """Return the type of an argument."""
        argument = self.arguments[name]
        shape = {ELEMENT: (self.rows, self.columns), COLUMN: (self.columns,), ROW: (self.rows,)}
        if argument.per == LAUNCH:
            return ScalarType(argument.dtype)
        return TensorType(argument.dtype, OrderBy(Row(*shape[argument.per])), MAX_ACCESS_BYTES)

    @cached_property
    def elementwise(self) -> tuple[Argument, ...]:
        """The arguments that have a number for each element."""
        return tuple(a for a in self.arguments.values() if a.per == ELEMENT)

    @cached_property
    def vector(self) -> int:
        """The most elements of a row that one access of every such argument may take."""
        widest = MAX_ACCESS_BYTES // max(a.bytes for a in self.elementwise)
        return gcd(widest, self.columns)

    @cached_property
    def passes(self) -> tuple[tuple[str, ...], ...]:
        """The statistics that one pass over the pieces of a row computes, pass by pass."""
        found: list[list[str]] = []
        for name, stat in self.stats.items():
            together = found[-1] if found else []
            needed = [n for n in names_of(stat.map) if n in together]
            if not found or (needed and stat.rebase is None):
                found.append([])
            found[-1].append(name)
        return tuple(map(tuple, found))


def names_of(function: Function) -> tuple[str, ...]:
    """Return the names of the values that a function takes."""
    return tuple(signature(function).parameters)
