"""Loads of words of pieces, wherever they begin, and stores of words of outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.index.functions import maximum, minimum
from lego_mlir.kernels.moves.axes import Axis
from lego_mlir.kernels.moves.choices import call_of, holds, number_of
from lego_mlir.kernels.moves.pieces import Movement
from lego_mlir.kernels.moves.words import filled, reversed_word, shifted

Arrays = Sequence[Any]
"""Tensors of a kernel."""


def of_piece(
    m: Movement, inputs: Arrays, row: Any, piece: Any, along: Any, *, is_one: bool = False
) -> Any:
    """Return the word whose first element is one of a piece; what lies behind it is arbitrary.

    Args:
        m: the movement.
        inputs: the tensors.
        row: of the output.
        piece: its number.
        along: the element of the piece. If it is negative, so many elements of the word are
            arbitrary.
        is_one: whether to return a single element instead.
    """
    pieces, word = m.pieces, 1 if is_one else m.word
    steps = [p.step for p in pieces]
    sources = [p.source or 0 for p in pieces]

    def load() -> Any:
        pitch = number_of(piece, [m.sources[s].pitch for s in sources])
        # In reverse, the word's last element is the first one in memory. Two words later, so that
        # it is not negative.
        begins = [p.begin + (word + 1 if p.step < 0 else 2 * word) for p in pieces]
        start = source_row * pitch + number_of(piece, begins) + along * number_of(piece, steps)
        source = number_of(piece, sources)
        if is_one:
            flat = lg.pick(source, inputs, OrderBy(Row(max(s.total for s in m.sources))))
            return flat[start - 2]
        ends = number_of(piece, [m.sources[s].total // word for s in sources])
        found = _loaded(m, inputs, source, start, ends)
        if word == 1:
            return found
        for step, turn in ((-1, reversed_word), (0, filled)):
            is_so = holds(piece, [s == step for s in steps])
            if is_so is not False:
                turned = turn(found, m.element)
                found = turned if is_so is True else lg.where(is_so, turned, found)
        return found

    source_row, exists = _source_row(m.outer, row)
    exists.append(holds(piece, [p.source is not None for p in pieces]))
    conditions = [e for e in exists if e is not True]
    if not conditions:
        return load()
    if any(e is False for e in conditions):
        return lg.zeros([word], inputs[0].dtype)
    zeros = lg.zeros([word], inputs[0].dtype)
    return lg.cond(reduce(and_, conditions), load, lambda: zeros[0] if is_one else zeros)


def _source_row(outer: Sequence[Axis], row: Any) -> tuple[Any, list[Any]]:
    """Return the input's row that an output's row is from, and what holds if it exists."""
    if all(axis.is_kept for axis in outer):
        return row, []
    exists: list[Any] = []
    found: list[Any] = []
    indices = OrderBy(Row(*(axis.written for axis in outer))).inv(row)
    for axis, i in zip(outer, indices, strict=True):
        n = axis.read
        assert n is not None
        at: Any = axis.index(i)
        if axis.is_kept or axis.boundary == "inside":
            found.append(at)
        elif axis.boundary == "wrap":
            after = lg.where(i + axis.offset < 0, i + (axis.offset + n), i + axis.offset)
            found.append(lg.where(after < n, after, after - n))
        else:
            found.append(minimum(maximum(at, 0), n - 1))
            if axis.boundary == "zero":
                exists += [at >= 0, at < n]
    source = OrderBy(Row(*(axis.read for axis in outer))).apply(*found)
    return source, exists


def _loaded(m: Movement, inputs: Arrays, source: Any, start: Any, ends: Any) -> Any:
    """Return a word of an input from any element on; those that it does not have are arbitrary.

    Args:
        m: the movement.
        inputs: the tensors.
        source: the number of the input.
        start: its element, plus two words.
        ends: the number of whole words of the input.
    """
    word = m.word
    most = max(s.total for s in m.sources)
    places = OrderBy(Row(-(-most // word) + 4, word))
    near, shift = places.inv(start)
    far, _ = places.inv(start + (word - 1))

    def words_of(x: Any, total: int) -> Callable[[], Any]:
        words = x.view(_in_words(total, word))

        def at(n: Any) -> Any:
            return words[(maximum(n, 2) - 2).below(max(1, total // word)), :]

        return lambda: at(near) if m.grain == word else (at(near), at(far))

    def elements() -> Any:
        flat = lg.pick(source, inputs, OrderBy(Row(most)))
        last = number_of(source, [s.total - 1 for s in m.sources])
        places = [minimum(maximum(start + k, 2 * word) - 2 * word, last) for k in range(word)]
        return lg.concatenate([flat[i] for i in places])

    def whole() -> Any:
        pairs = zip(inputs, m.sources, strict=True)
        lines = call_of(source, [words_of(x, s.total) for x, s in pairs])
        if m.grain == word:
            return lines
        near_word, far_word = lines
        return shifted(near_word, far_word, shift.to("i32") * m.element, m.grain * m.element)

    return whole() if word == 1 else lg.cond(far < ends + 2, whole, elements)


def store(
    m: Movement, outputs: Arrays, which: Any, number: Any, value: Any, *, is_whole: bool = False
) -> None:
    """Store a word of an output, which the end may cut if it is not known to be whole."""
    word = m.word

    def to(y: Any, total: int) -> Callable[[], None]:
        count, rest = divmod(total, word)

        def whole() -> None:
            words = y.view(_in_words(total, word))
            words[minimum(number, max(count, 1) - 1).below(max(count, 1)), :] = value

        def cut() -> None:
            flat = y.view(OrderBy(Row(total)))
            for i in range(rest):
                flat[count * word + i] = value[i]

        def either() -> None:
            lg.if_(number < count)(whole)
            lg.if_(number >= count)(cut)

        return either if rest and not is_whole else whole

    pairs = zip(outputs, m.outputs, strict=True)
    call_of(which, [to(y, m.rows * out.length) for y, out in pairs])


def _in_words(total: int, word: int) -> Layout:
    """Return the layout of words, of which the last one may be cut."""
    return OrderBy(Row(total)).TileBy([-(-total // word)], [word])
