"""Sample points: values for symbols that keep every fact, to refute a claim before proving it.

Most conditions that a rule asks for are plainly false somewhere, mostly at a corner of the index
space. A few evaluations tell, and the solver is kept for claims that nothing refutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from random import Random

from lego_mlir.index import structure
from lego_mlir.index.evaluate import evaluate
from lego_mlir.index.nodes import Int, Sym
from lego_mlir.index.work import charge

_RANDOM_POINTS = 6
_REACH = 7
"""How far from its bound a value without another bound is drawn, in multiples of its divisors."""

_FAR_REACHES = (100, 3_000, 1_000_000)
"""The same of points that only refute claims: past the sizes that claims name."""


def is_refuted(x: Int) -> bool:
    """Return whether `x` is negative at a sample point."""
    symbols = structure.symbols(x)
    sampled = points(symbols) + _far_points(symbols)
    charge(len(sampled))
    for point in sampled:
        try:
            if evaluate(x, point) < 0:
                return True
        except (ZeroDivisionError, ValueError):  # no value there
            continue
    return False


@lru_cache(maxsize=1 << 10)
def points(symbols: frozenset[Sym]) -> tuple[dict[str, int], ...]:
    """Return corners of the space of these symbols and some points within, always the same."""
    closed = _closure(symbols)
    charge(len(closed) ** 2)
    if len({s.name for s in closed}) < len(closed):  # values go by name
        return ()
    draws = _draws(len(closed))
    return tuple(p for draw in draws if (p := _point(closed, draw, _REACH)) is not None)


@lru_cache(maxsize=1 << 10)
def _far_points(symbols: frozenset[Sym]) -> tuple[dict[str, int], ...]:
    """Return more points, at which symbols without a bound are large; none if all have bounds."""
    closed = _closure(symbols)
    if all(s.lo is not None and s.hi is not None for s in closed) or not points(symbols):
        return ()
    draws = [*_draws(len(closed)), *_far_draws(len(closed))]
    far = ((draw, reach) for reach in _FAR_REACHES for draw in draws)
    return tuple(p for draw, reach in far if (p := _point(closed, draw, reach)) is not None)


def _closure(symbols: frozenset[Sym]) -> list[Sym]:
    """Return the symbols and those that their bounds and divisors name, the latter first."""
    found: dict[Sym, None] = {}

    def visit(s: Sym) -> None:
        if s in found:
            return
        for x in (*([] if s.hi is None else [s.hi]), *s.divisors):
            for inner in sorted(structure.symbols(x), key=structure.order):
                visit(inner)
        found[s] = None

    for s in sorted(symbols, key=structure.order):
        visit(s)
    return list(found)


def _draws(count: int) -> Iterator[list[float]]:
    """Return where in its range each symbol stands, 0 to 1: corners, then random points."""
    for low, high in ((0.0, 1.0), (1.0, 0.0)):
        yield [low] * count
        for k in range(count if count > 1 else 0):
            yield [high if j == k else low for j in range(count)]
    random = Random(count)
    for _ in range(_RANDOM_POINTS):
        yield [random.random() for _ in range(count)]


def _far_draws(count: int) -> Iterator[list[float]]:
    """Return more: in the middle, where a symbol without any bound is 0, all but one of them."""
    for end in (0.0, 1.0):
        for k in range(count):
            yield [end if j == k else 0.5 for j in range(count)]


def _point(symbols: list[Sym], draw: list[float], multiples: int) -> dict[str, int] | None:
    """Return a value for each symbol, by name; `None` if there is no multiple of its divisors.

    Args:
        symbols: those that bounds and divisors name before those that have them.
        draw: where in its range each stands, 0 to 1.
        multiples: the range of a symbol without a bound, in multiples of its divisors.
    """
    values: dict[str, int] = {}
    for s, at in zip(symbols, draw, strict=True):
        step = 1
        for d in s.divisors:
            step *= evaluate(d, values)
        top = None if s.hi is None else evaluate(s.hi, values)
        reach = multiples * max(abs(step), 1)
        lo = s.lo if s.lo is not None else (0 if top is None else top) - reach
        hi = top if top is not None else (s.lo or 0) + reach
        value = lo + round(at * (hi - lo))
        if step > 1:  # to a multiple: up at the lower end, else down
            value = -(-value // step) * step if value - lo < step else value // step * step
        if not lo <= value <= hi:
            return None
        values[s.name] = value
    return values
