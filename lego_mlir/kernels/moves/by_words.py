"""The kernel of movements whose rows are pieces of other rows, by words of the outputs.

Concatenate, split, pad, crop, roll and flip are such kernels: only their `pieces` differ. A word
has 16 bytes, and all words of the outputs are stored whole, wherever rows begin:

- A thread makes one word. Its elements are in two words of an input, which it loads and shifts in
  registers. The second one is the first one of its neighbour, so it is in the L1 cache.
- Words where pieces meet are made by threads of their own, whose warps have nothing else to do.
  They go on with the next piece, and join the two in registers: so all that is stored is words.
- If most words are such, all are made so, or, of few elements, element by element.
- What needs a word that the end of an input cuts is loaded element by element; so is the last word
  of an output stored, if it is cut.

CTAs go over all outputs, and over the words where pieces meet, for a few rows before they go on to
the next rows: so sectors that they have in common are accessed at about the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature
from itertools import accumulate
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES
from lego_mlir.index.functions import maximum, minimum
from lego_mlir.kernels.cache_hints import eviction_of, tensor_bytes
from lego_mlir.kernels.moves.accesses import Arrays, of_piece, store
from lego_mlir.kernels.moves.choices import divided, number_of, range_of
from lego_mlir.kernels.moves.pieces import Movement
from lego_mlir.kernels.moves.words import REGISTER, joined

_THREADS = 256
"""Threads of a CTA, each of which makes one word: several words a thread took as long or longer."""

_GATHERED = 4
"""Elements of a word that are loaded one by one, where most words have several pieces."""

_CTAS = 8
"""CTAs that a multiprocessor has registers for."""


def word_bytes(element: int, alignment: int) -> int:
    """Return the bytes of words.

    Args:
        element: bytes of an element.
        alignment: bytes that divide all addresses, a power of two.
    """
    # Words that are no registers are not shifted: then elements are copied one at a time.
    return max(element, min(alignment, MAX_ACCESS_BYTES) if alignment >= REGISTER else 0)


def kernel_by_words(
    name: str,
    movement: Movement,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    how: str,
) -> lg.Kernel:
    """Return the kernel of a movement, whose arguments are inputs and then outputs.

    Args:
        name: of the kernel.
        movement: what is moved, between all tensors that are not empty.
        inputs: the types of the tensors that are read, by name.
        outputs: of those that are written.
        how: what `explain()` says of the movement.
    """
    m, kinds = movement, {**inputs, **outputs}
    runs = _runs(m)
    counts = [-(-m.rows_together * run.words // _THREADS) for run in runs]
    if not runs:
        counts = [-(-n // _THREADS) for n in m.together]
    begins = -(-(m.rows_together * m.meetings + 1) // _THREADS) if runs else 0
    total = sum(counts)

    def move(**tensors: Any) -> None:
        read, written = (
            [tensors[n] for n, kind in side.items() if isinstance(kind, lg.TensorType)]
            for side in (inputs, outputs)
        )
        group, block, thread = lg.block_id("y"), lg.block_id("x"), lg.thread_id()
        if not runs:
            which, at = range_of(block, counts)
            _make_words(m, read, written, which, group, at * _THREADS + thread)
            return
        for run, count, first in zip(runs, counts, accumulate(counts, initial=0), strict=False):

            @lg.if_((block >= first) & (block < first + count))
            def _(run: _Run = run, first: int = first) -> None:
                _make_run(m, read, written, run, group, (block - first) * _THREADS + thread)

        @lg.if_(block >= total)
        def _() -> None:
            which, at = range_of(block - total, [begins] * len(written))
            _make_meetings(m, read, written, which, group, at * _THREADS + thread)

    move.__name__ = name
    ordered = [Parameter(n, Parameter.KEYWORD_ONLY) for n in kinds]
    move.__signature__ = Signature(ordered)  # type: ignore[attr-defined]
    text = f"{how}, in words of {movement.word * movement.element} bytes"
    return lg.kernel(
        grid=(total + begins * len(m.outputs), m.groups),
        block=_THREADS,
        parameters=kinds,
        explanation=lambda: text,
        ctas_per_sm=_CTAS,
        eviction=eviction_of(tensor_bytes(kinds.values())),
        pdl=True,
    )(move)


@dataclass(frozen=True, slots=True)
class _Run:
    """The words that lie in a piece, whatever they begin with.

    Attributes:
        which: the number of the output.
        piece: that of the piece.
        start: where it begins in a row.
        words: in a row, at most.
    """

    which: int
    piece: int
    start: int
    words: int


def _runs(m: Movement) -> list[_Run]:
    """Return the runs of a movement; none if all words are made alike."""
    if m.is_fine or m.has_whole_words:
        return []
    found = [
        _Run(which, first + k, start, piece.length // m.word)
        for which, (first, out) in enumerate(zip(m.firsts, m.outputs, strict=True))
        for k, (piece, start) in enumerate(zip(out.pieces, out.starts, strict=True))
    ]
    return [run for run in found if run.words]


def _make_run(
    m: Movement, inputs: Arrays, outputs: Arrays, run: _Run, group: Any, inside: Any
) -> None:
    """Make a word that lies in a piece.

    Args:
        m: the movement.
        inputs: the tensors that are read.
        outputs: those that are written.
        run: the words.
        group: of the rows that CTAs go over together.
        inside: the word's number among those of the group; may be beyond the last one.
    """
    count, length = m.rows_together * run.words, m.outputs[run.which].length
    items = OrderBy(Row((m.groups * count + _THREADS) // run.words + 1, run.words))
    row, k = items.inv(group * count + inside)

    @lg.if_((inside < count) & (row < m.rows))
    def _() -> None:
        # The first word that begins in the piece, and how many elements its last one is before.
        last = row * length + (run.start + m.word - 1)
        first, before = OrderBy(Row(max(m.words) + 1, m.word)).inv(last)
        along = k * m.word + (m.word - 1) - before

        @lg.if_(along + m.word <= m.pieces[run.piece].length)
        def _() -> None:
            word = of_piece(m, inputs, row, run.piece, along)
            store(m, outputs, run.which, first + k, word, is_whole=True)


def _make_words(
    m: Movement, inputs: Arrays, outputs: Arrays, which: Any, group: Any, inside: Any
) -> None:
    """Make a word of an output, of one piece or more.

    Args:
        m: the movement.
        inputs: the tensors that are read.
        outputs: those that are written.
        which: output.
        group: of the rows that CTAs go over together.
        inside: the word's number among those of the group; may be beyond the last one.
    """
    together = number_of(which, m.together)
    number = group * together + inside

    @lg.if_((inside < together) & (number < number_of(which, m.words)))
    def _() -> None:
        if m.is_fine and m.word <= _GATHERED:
            # Those behind the end of the output are arbitrary.
            last = number_of(which, [m.rows * out.length - 1 for out in m.outputs])
            at = [minimum(number * m.word + k, last) for k in range(m.word)]
            elements = [of_piece(m, inputs, *_located(m, which, i), is_one=True) for i in at]
            store(m, outputs, which, number, lg.concatenate(elements))
        else:
            word = _word(m, inputs, *_located(m, which, number * m.word))
            store(m, outputs, which, number, word)


def _located(m: Movement, which: Any, begin: Any) -> tuple[Any, Any, Any]:
    """Return the row, the number of the piece, and the element of it that one of an output is."""
    lengths = [out.length for out in m.outputs]
    row, along = divided(which, begin, max(m.words) * m.word, lengths)
    if len(lengths) > 1:
        return row, which, along
    return row, *range_of(along, [p.length for p in m.pieces])


def _make_meetings(
    m: Movement, inputs: Arrays, outputs: Arrays, which: Any, group: Any, inside: Any
) -> None:
    """Make the word of an output in which a piece begins behind another one.

    Args:
        m: the movement.
        inputs: the tensors that are read.
        outputs: those that are written.
        which: output.
        group: of the rows that CTAs go over together.
        inside: the number of the piece among those of the group. The one behind all rows is that
            of the word that the end cuts.
    """
    count = m.rows_together * m.meetings
    pieces = OrderBy(Row((m.groups + 1) * m.rows_together + 1, m.meetings))
    row, k = pieces.inv(group * count + inside)
    is_end = (row == m.rows) & (k < 1)
    exists = ((inside < count) & (row < m.rows)) | ((inside <= count) & is_end)
    starts = [start for out in m.outputs for start in out.starts]
    befores = [out.pieces[k - 1].length for out in m.outputs for k in range(m.meetings)]
    piece = which if m.meetings == 1 else k
    begin = row * number_of(which, [out.length for out in m.outputs]) + number_of(piece, starts)
    most = max(m.words)
    number, phase = OrderBy(Row(most + 1, m.word)).inv(begin)
    before = number_of(piece, befores)

    # Of several pieces that begin in a word, the first one.
    @lg.if_(exists & (phase > 0) & (phase <= before))
    def _() -> None:
        is_first = k < 1
        last = piece if m.meetings == 1 else lg.where(is_first, m.meetings - 1, maximum(k, 1) - 1)
        above = lg.where(is_first, maximum(row, 1) - 1, row)
        word = _word(m, inputs, above, last, before - phase)
        store(m, outputs, which, number, word)


def _word(m: Movement, inputs: Arrays, row: Any, piece: Any, along: Any) -> Any:
    """Return the word that begins with an element of a piece, and goes on with the next pieces.

    Args:
        m: the movement.
        inputs: the tensors that are read.
        row: of the output.
        piece: its number.
        along: the element of the piece.
    """
    value = of_piece(m, inputs, row, piece, along)
    if m.has_whole_words:
        return value
    lengths = [p.length for p in m.pieces]

    def behind(row: Any, piece: Any) -> tuple[Any, Any]:
        if m.meetings == 1:
            return row + 1, piece + 0
        is_last = piece >= m.meetings - 1
        return lg.where(is_last, row + 1, row), lg.where(is_last, 0, piece + 1)

    done = number_of(piece, lengths) - along

    @lg.while_(
        lambda done, row, piece, value: (done < m.word) & (row < m.rows),
        (done, *behind(row, piece), value),
    )
    def result(done: Any, row: Any, piece: Any, value: Any) -> Any:
        count = minimum(done, m.word - 1)
        more = of_piece(m, inputs, row, piece, 0 - count)
        value = joined(value, more, (count * m.element).to("i32"), m.element)
        return done + number_of(piece, lengths), *behind(row, piece), value

    return result[-1]
