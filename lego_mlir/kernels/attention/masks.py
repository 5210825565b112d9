"""Masks of attention, and what is proven of whole tiles of them.

A mask is a Python function of the batch, the head, the query i and the key j. The kernel calls it
on tiles of indices, and gets truth values. Before, it is called on indices that record what is
computed of them: where that is `and` and `or` of comparisons of linear functions of i and j, the
keys that a tile of queries sees lie in intervals, whose ends are functions of the tile's first and
last query:

    j <= i + 3        some query of i0 .. i1 sees keys up to i1 + 3, all see those up to i0 + 3

So tiles beyond the first interval are never loaded, and tiles inside of the second one are not
masked. Of anything else nothing is proven: every tile is masked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, TypeAlias

from lego_mlir.algebra.sizes import size_symbol
from lego_mlir.index import bounds, maximum, minimum

Mask: TypeAlias = Callable[..., Any]
"""A function that names what it takes of `batch`, `head`, `i`, `j` and the kernel's arguments."""

Number: TypeAlias = Any
"""A number, or a kernel's index."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Keys from `first` to `last`, inclusive; an end that is None is open.

    Attributes:
        first: the first key.
        last: the last key.
    """

    first: Number | None = None
    last: Number | None = None

    def meet(self, other: Interval) -> Interval:
        """Return what is in both."""
        return Interval(
            _joined(self.first, other.first, maximum), _joined(self.last, other.last, minimum)
        )

    def moved(self, by: Number) -> Interval:
        """Return the interval at keys that begin later."""
        if isinstance(by, int) and by == 0:
            return self
        return Interval(
            None if self.first is None else self.first + by,
            None if self.last is None else self.last + by,
        )

    def hull(self, other: Interval) -> Interval:
        """Return the least interval that has both."""

        def end(a: Number | None, b: Number | None, of: Callable[..., Any]) -> Number | None:
            return None if a is None or b is None else of(a, b)

        return Interval(end(self.first, other.first, minimum), end(self.last, other.last, maximum))


NO_KEYS = Interval(0, -1)


@dataclass(frozen=True, slots=True)
class Seen:
    """The keys that queries of a tile see.

    Attributes:
        some: there is no key outside of it that any query sees.
        all: every query sees every key in it.
    """

    some: Interval
    all: Interval


def keys_seen(mask: Mask, first: Number, last: Number, known: Mapping[str, Number]) -> Seen:
    """Return what is proven of the keys that queries see.

    Args:
        mask: says of a query and a key whether they meet.
        first: the first query.
        last: the last query.
        known: further values that the mask may name, the same for all queries and keys.
    """
    known = {**known, "i": Linear(1, 0, 0), "j": Linear(0, 1, 0)}
    given = {name: known.get(name, Opaque()) for name in signature(mask).parameters}
    try:
        found = mask(**given)
    except Exception:  # what the function does with indices is its own affair
        found = None
    if not isinstance(found, Condition):
        return Seen(Interval(), NO_KEYS)
    return found.seen(first, last)


def hides_what_is_behind(mask: Mask) -> bool:
    """Return whether it is proven that no query sees keys behind the last one of its sequence."""
    queries, keys = size_symbol("queries"), size_symbol("keys")
    known = {"queries": queries, "keys": keys}
    last = keys_seen(mask, 0, queries - 1, known).some.last
    least = None if last is None else bounds(keys - 1 - last)[0]
    return least is not None and least >= 0


class Condition:
    """A condition on i and j, as a mask computes it."""

    def seen(self, first: Number, last: Number) -> Seen:
        """Return the keys that queries from `first` to `last` see; nothing is known of these."""
        return Seen(Interval(), NO_KEYS)

    def __and__(self, other: Any) -> Condition:
        return Both(self, _condition(other))

    __rand__ = __and__

    def __or__(self, other: Any) -> Condition:
        return Either(self, _condition(other))

    __ror__ = __or__

    def __invert__(self) -> Condition:
        return Condition()

    def __bool__(self) -> bool:
        raise TypeError("a mask is computed of tiles; `and` and `or` are `&` and `|`")


@dataclass(frozen=True, slots=True)
class AtLeastZero(Condition):
    """Whether a linear function of i and j is not negative.

    Attributes:
        value: the function.
    """

    value: Linear

    def seen(self, first: Number, last: Number) -> Seen:
        """Return the keys that queries from `first` to `last` see."""
        i, j, constant = self.value.i, self.value.j, self.value.constant
        most, least = (last, first) if i > 0 else (first, last)
        if j == 0:
            return Seen(Interval(), NO_KEYS)
        return Seen(
            *(
                Interval(first=-((i * at + constant) // j))
                if j > 0
                else Interval(last=(i * at + constant) // -j)
                for at in (most, least)
            )
        )

    def __invert__(self) -> Condition:
        return AtLeastZero(-self.value - 1)


@dataclass(frozen=True, slots=True)
class Both(Condition):
    """Whether two conditions hold."""

    a: Condition
    b: Condition

    def seen(self, first: Number, last: Number) -> Seen:
        """Return the keys that queries from `first` to `last` see."""
        a, b = self.a.seen(first, last), self.b.seen(first, last)
        return Seen(a.some.meet(b.some), a.all.meet(b.all))

    def __invert__(self) -> Condition:
        return Either(~self.a, ~self.b)


@dataclass(frozen=True, slots=True)
class Either(Condition):
    """Whether one of two conditions holds."""

    a: Condition
    b: Condition

    def seen(self, first: Number, last: Number) -> Seen:
        """Return the keys that queries from `first` to `last` see."""
        a, b = self.a.seen(first, last), self.b.seen(first, last)
        together = a.all.hull(b.all)
        # Two intervals that are open at the same end have nothing between them.
        is_whole = (a.all.first is None and b.all.first is None) or (
            a.all.last is None and b.all.last is None
        )
        either = b.all if a.all is NO_KEYS else a.all
        return Seen(a.some.hull(b.some), together if is_whole else either)

    def __invert__(self) -> Condition:
        return Both(~self.a, ~self.b)


class Opaque:
    """A value that nothing is known of, and neither of what is computed of it."""

    def _unknown(self, *_: Any) -> Opaque:
        return Opaque()

    def _condition(self, *_: Any) -> Condition:
        return Condition()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = _unknown
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __getitem__ = _unknown
    __lt__ = __le__ = __gt__ = __ge__ = _condition
    __eq__ = __ne__ = _condition  # type: ignore[assignment]
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A linear function of the query i and the key j, as a mask computes it.

    Attributes:
        i: the factor of i.
        j: the factor of j.
        constant: what is added, a number or a kernel's index.
    """

    i: int
    j: int
    constant: Number

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Linear):
            return Linear(self.i + other.i, self.j + other.j, self.constant + other.constant)
        if isinstance(other, Opaque):
            return other
        return Linear(self.i, self.j, self.constant + other)

    __radd__ = __add__

    def __neg__(self) -> Linear:
        return Linear(-self.i, -self.j, -self.constant)

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if type(other) is int:
            return Linear(self.i * other, self.j * other, self.constant * other)
        return Opaque()

    __rmul__ = __mul__

    def _unknown(self, *_: Any) -> Opaque:
        return Opaque()

    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _unknown

    def __le__(self, other: Any) -> Condition:
        return _at_least_zero(other - self)

    def __ge__(self, other: Any) -> Condition:
        return _at_least_zero(self - other)

    def __lt__(self, other: Any) -> Condition:
        return _at_least_zero(other - self - 1)

    def __gt__(self, other: Any) -> Condition:
        return _at_least_zero(self - other - 1)

    def __eq__(self, other: Any) -> Condition:  # type: ignore[override]
        return Both(self <= other, self >= other)

    def __ne__(self, other: Any) -> Condition:  # type: ignore[override]
        return Either(self < other, self > other)

    __hash__ = object.__hash__


def _at_least_zero(value: Any) -> Condition:
    return AtLeastZero(value) if isinstance(value, Linear) else Condition()


def _condition(value: Any) -> Condition:
    """Return a condition; one of which nothing is known for what is none."""
    return value if isinstance(value, Condition) else Condition()


def _joined(a: Number | None, b: Number | None, of: Callable[..., Any]) -> Number | None:
    if a is None or b is None:
        return b if a is None else a
    return of(a, b)
