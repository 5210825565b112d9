"""Statistics of rows: reductions of tiles, and of what each thread has of pieces of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from math import inf
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.index import maximum, minimum
from lego_mlir.kernels.functions import names_of
from lego_mlir.kernels.rows.bodies.piece import Piece, Values
from lego_mlir.kernels.rows.problem import COLUMNS, Combination, Stat

_REDUCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], float]] = {
    "sum": (lg.sum, lambda a, b: a + b, 0.0),
    "max": (lg.max, maximum, -inf),
    "min": (lg.min, minimum, inf),
}
"""Of each kind: the reduction, what combines two, and the identity."""

_TOGETHER = 4
"""Tiles that `lg.reduce` takes."""


def reduced(stat: Stat, mapped: Any, axis: int | tuple[int, ...]) -> Any:
    """Return the statistic of what its function made of elements, whose dimensions stay."""
    if isinstance(stat.op, Combination):
        return lg.reduce(stat.op.function, mapped, axis, identity=stat.op.identity, keepdims=True)
    return _REDUCTIONS[stat.op][0](mapped, axis=axis, keepdims=True)


def reduced_together(stat: Stat, several: Sequence[Any]) -> list[Any]:
    """Return the statistic of the rows of each tile, of as many as possible in one reduction."""
    most = _TOGETHER // (len(stat.op.identity) if isinstance(stat.op, Combination) else 1)
    if len(several) > most:
        first, rest = several[:most], several[most:]
        return [*reduced_together(stat, first), *reduced_together(stat, rest)]
    if len(several) == 1:
        return [reduced(stat, several[0], axis=1)]
    if isinstance(stat.op, Combination):
        together, alone = stat.op, len(stat.op.identity)
    else:
        _, combine, identity = _REDUCTIONS[stat.op]
        together = Combination(lambda a, b: (combine(a[0], b[0]),), (identity,))
        several, alone = [(tile,) for tile in several], 1
    starts = range(0, alone * len(several), alone)

    def function(a: Any, b: Any) -> Any:
        return flat(together.function(a[k : k + alone], b[k : k + alone]) for k in starts)

    found = lg.reduce(
        function, flat(several), 1, identity=together.identity * len(several), keepdims=True
    )
    if isinstance(stat.op, Combination):
        return [found[k : k + alone] for k in starts]
    return list(found)


LOCAL, ACROSS = (-3, -1), (-4, -2)
"""The dimensions of a piece along which one thread has its elements, and along which threads have
theirs; without clusters the first of the latter is left out."""


def identities(stats: Mapping[str, Stat], piece: Sequence[int]) -> Values:
    """Return the statistics of no elements, for each thread that has some of a piece."""
    *ctas, _, threads, _ = piece
    shape = (*ctas, 1, threads, 1)
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


def added(chosen: Mapping[str, Stat], piece: Piece, before: Values, known: Values) -> Values:
    """Return the statistics of each thread with those of its elements of a piece."""
    after: Values = {}
    for name, stat in chosen.items():
        mapped = piece.call(stat.map, {**known, **after})
        if isinstance(stat.op, Combination):
            several = zip(mapped, stat.op.identity, strict=True)
            filled = tuple(lg.fill(tile, number) for tile, number in several)
            after[name] = stat.op.function(before[name], _of_lanes(stat, filled))
            continue
        _, combine, identity = _REDUCTIONS[stat.op]
        old = rebased(chosen, name, before, after)
        after[name] = combine(old, _of_lanes(stat, lg.fill(mapped, identity)))
    return after


def _of_lanes(stat: Stat, mapped: Any) -> Any:
    """Return the statistic of each thread's elements.

    Extremes are first those of vectors, element by element: two of 2 bytes by an instruction.
    """
    if stat.op in ("max", "min"):
        return reduced(stat, reduced(stat, mapped, LOCAL[0]), LOCAL[1])
    return reduced(stat, mapped, LOCAL)


def across_threads(chosen: Mapping[str, Stat], lanes: Values) -> Values:
    """Return the statistics of a row, of those of each thread, one after the other."""
    found: Values = {}
    for name, stat in chosen.items():
        found[name] = reduced(stat, rebased(chosen, name, lanes, found), _across(lanes.values()))
    return found


def across_together(chosen: Mapping[str, Stat], lanes: Values) -> Values:
    """Return the statistics of a row, of those of each thread, as many as possible in one trip.

    Where one depends on another, each thread's is less its own value of that, so that two are
    combined when both are less the combined value.
    """
    values = flat(lanes.values())
    if len(chosen) == 1 or len(values) > _TOGETHER:
        return across_threads(chosen, lanes)

    def function(a: Any, b: Any) -> Any:
        first, second, found = named(chosen, a), named(chosen, b), Values()
        for name, stat in chosen.items():
            pair = (rebased(chosen, name, x, found) for x in (first, second))
            if isinstance(stat.op, Combination):
                found[name] = stat.op.function(*pair)
            else:
                found[name] = _REDUCTIONS[stat.op][1](*pair)
        return flat(found.values())

    identity = flat(_each(stat, lambda number: number) for stat in chosen.values())
    found = lg.reduce(function, values, _across(lanes.values()), identity=identity, keepdims=True)
    return named(chosen, found)


def across_halves(chosen: Mapping[str, Stat], lanes: Values, columns: int) -> Values:
    """Return sums of a row, of those of each thread, of equally many elements, in one trip.

    Means are combined, so that each follows from those of two halves, which are equally large.

    Args:
        chosen: the sums.
        lanes: those of each thread, and the number of its elements.
        columns: the number of all.
    """

    def function(a: Any, b: Any) -> Any:
        first, second = named(chosen, a), named(chosen, b)
        return tuple(
            stat.of_halves(first, second) if stat.of_halves else (first[name] + second[name]) * 0.5
            for name, stat in chosen.items()
        )

    own = tuple(mean(lanes[name], lanes[COLUMNS]) for name in chosen)
    found = lg.reduce(function, own, _across(own), keepdims=True)
    return {name: tile * columns for name, tile in named(chosen, found).items()}


def _across(lanes: Iterable[Any]) -> tuple[int, ...]:
    """Return the dimensions along which threads have statistics of their own."""
    tile = next(iter(flat(lanes)))
    return ACROSS if len(tile.shape) == len(LOCAL) + len(ACROSS) else ACROSS[1:]


def mean(total: Any, columns: Any) -> Any:
    """Return the mean of a row, of its sum and the number of columns: a number, or an index."""
    return total * (1 / as_number(columns))


def as_number(columns: Any) -> Any:
    """Return the number of columns as one that fractions are made of."""
    return columns if isinstance(columns, int) else columns.to("f32")


def rebased(chosen: Mapping[str, Stat], name: str, before: Values, after: Values) -> Any:
    """Return a statistic as it is with later values of the one that it depends on."""
    stat = chosen[name]
    bases = [n for n in names_of(stat.map) if n in chosen]
    if stat.rebase is None or not bases:
        return before[name]
    (base,) = bases
    return stat.rebase(before[name], before[base], after[base])


def flat(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return values in a row, those of combinations one by one."""
    return tuple(chain.from_iterable(v if isinstance(v, tuple) else (v,) for v in values))


def named(stats: Mapping[str, Stat], flat: Sequence[Any]) -> Values:
    """Return flat values by the name of their statistic."""
    rest = iter(flat)
    return {name: _each(stat, lambda _: next(rest)) for name, stat in stats.items()}
