"""Conditions under which threads have something to do in a tile of whole runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.by_words.traversal import Traversal


def end_of_row(
    number: Any, units: Any, to_word: Any, target: RowSide, word: int
) -> tuple[Any, Any]:
    """Return which unit of a row is end `number` of 2·(word - 1), and whether it is one.

    The first half are units before the row's first whole word, the others those behind its last.

    Args:
        number: of the end.
        units: of the row that are stored.
        to_word: how many of them precede the first whole word.
        target: the tile in the output.
        word: units of a word, 2 or more.
    """
    most = word - 1
    half, _ = OrderBy(Row(2, most)).inv(number)
    along = lg.select(half, [number, number + units - 2 * most])
    words = OrderBy(Row(target.touched + 2, word)).inv(units - to_word + word)[0] - 1
    behind = words * word + to_word
    is_head = (half < 1) & (along < to_word) & (along < units)
    return along, is_head | ((half >= 1) & (along >= behind) & (along >= to_word))


def both(first: Any, second: Any) -> Any:
    """Return whether both of two conditions hold, of which the first may be none."""
    return second if first is None else first & second


def holds(
    traversal: Traversal, conditions: Mapping[int, int], rows: Sequence[Any], column: Any
) -> Any:
    """Return whether steps exist for a thread; `None` if they do for all."""
    places, sizes = (*rows, column), (*traversal.extents, traversal.words)
    found: Any = None
    for k, distance in conditions.items():
        found = both(found, places[k] + distance < sizes[k])
    return found


def where(holds: Any, work: Callable[[], None]) -> None:
    """Do something where a condition holds; `None` holds everywhere."""
    if holds is None:
        work()
    else:
        lg.if_(holds)(work)
