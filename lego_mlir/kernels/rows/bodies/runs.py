"""Runs of rows that begin at the same place of a vector, in a fixed order, for any number of CTAs.

    rows 0 8 16 24 | 1 9 17 25 | 2 10 18 26 | ...      ordered by where they begin, 8 places here
    CTA  0 0 0  0    0 0 1  1    1 1  1  1

Each CTA has as many of this order, but for one. Where it goes on with rows that begin elsewhere, it
has another run: with other copies of what belongs to columns, and with sums of its own. So CTAs
and places together, less one, are as many as there are runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from lego_mlir import frontend as lg
from lego_mlir.algebra import ceildiv
from lego_mlir.index import Int, maximum, minimum
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.problem import RowsProblem

_MOST = 1 << 31
"""The most rows of a matrix whose number only the launch knows."""


class Run(NamedTuple):
    """Rows that a CTA works on, one after the other, in a loop.

    Attributes:
        first: the first of them.
        step: from one to the next.
        trips: returns how many there are; it computes that where the loop begins.
        number: that of its sums of columns among those of all runs.
    """

    first: Any
    step: int
    trips: Callable[[], Any]
    number: Any


def sums_of_runs(problem: RowsProblem, config: RowsConfig) -> tuple[tuple[int, Int], int]:
    """Return the shape of the sums of columns of each CTA, and how many columns are before them.

    Those of runs have a vector before them, since sums begin anywhere in one.
    """
    if not config.has_runs(problem):
        return (config.ctas, problem.size), 0
    return (config.ctas + problem.starts - 1, problem.size + problem.vector), problem.vector


def runs_of_cta(cta: Any, rows: Any, starts: int, ctas: int) -> Iterator[Run]:
    """Yield the runs of a CTA, in a loop of the kernel.

    Args:
        cta: its number.
        rows: of the matrix.
        starts: at how many places of a vector they begin; that of every so many is the same.
        ctas: how many share them.

    The order has the same number of rows for each place, the last of which there may not be.
    """
    each = ceildiv(rows, starts)
    share, more = each * starts // ctas, each * starts % ctas
    begin = cta * share + minimum(cta, more)
    end = begin + share + minimum(maximum(more - cta, 0), 1)
    last = minimum(end // each, starts - 1)
    for place in lg.loop(last + 1, start=minimum(begin // each, starts - 1)):
        before = maximum(begin - place * each, 0)
        behind = minimum(end - place * each, ceildiv(rows - place, starts))
        first, trips = (_computed(n, each + 1) for n in (before, maximum(behind - before, 0)))
        yield Run(first * starts + place, starts, partial(_same, trips), cta + place)


def _same(value: Any) -> Any:
    return value


def _computed(index: Any, limit: Any) -> Any:
    """Return an index below a limit as a value that expressions of indices are not derived from.

    Those of the elements of each row would have all of the order.
    """
    return index.to("u32").below(limit if isinstance(limit, int) else _MOST)
