"""The kernel of tensors that are parts of one: it joins them, or splits the whole into them.

Along the dimension where parts meet, every tensor is a matrix: a row of the whole has a row of each
part, one after another. Rows begin anywhere in words of 16 bytes, at different phases in input
and output. The kernel loads and stores words nevertheless:

- A thread makes a word of the output from the two words of the input that its bytes are in, by
  shifts in registers. The second of them is the first one of its neighbour, so it is in the L1
  cache.
- Words at the ends of a row, of which it has a part only, are stored element by element, of the
  same registers.
- What needs a word that the end of the input cuts is copied element by element.

Each CTA has words of one part, and CTAs go over all parts of a few rows before they go on to the
next rows: so sectors that two parts have in common are read and written at about the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, Signature
from itertools import accumulate, pairwise
from math import gcd, prod
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES
from lego_mlir.index.functions import maximum, minimum
from lego_mlir.kernels.moves.windows import bytes_of, tensor

_THREADS = 256
"""Threads of a CTA, each of which makes one word: several words a thread took as long or longer."""

_TOGETHER = 1 << 22
"""Bytes of the whole whose parts CTAs go over before the next ones: these stay in the L2 cache."""

_REGISTER = 4
"""Bytes of a register, which are shifted together."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Where the rows of a part are in a tensor, in elements.

    Attributes:
        pitch: from row to row.
        first: where the first row begins.
        total: of the tensor.
    """

    pitch: int
    first: int
    total: int


@dataclass(frozen=True, slots=True)
class Part:
    """One part's rows, in input and output.

    Attributes:
        source: in the input.
        target: in the output.
        rows: their number.
        length: elements of a row.
        word: elements of a word.
        element: bytes of an element.
    """

    source: Rows
    target: Rows
    rows: int
    length: int
    word: int
    element: int

    @property
    def grain(self) -> int:
        """What divides where all rows begin and end, at most a word."""
        both = (self.source, self.target)
        return gcd(self.word, self.length, *(n for side in both for n in (side.pitch, side.first)))

    @property
    def touched(self) -> int:
        """The most words of the output that a row touches."""
        return -(-(self.length + self.word - self.grain) // self.word)

    def copy(self, x: Any, y: Any, row: Any, number: Any) -> None:
        """Make a word of the output, or what the row has of it.

        Args:
            x: the input.
            y: the output.
            row: of the part; may be beyond the last one.
            number: of the word, of those that the row touches.
        """
        word, source, target = self.word, self.source, self.target
        start = minimum(row, self.rows - 1) * target.pitch + target.first
        first, phase = _words(target.total, word).inv(start)
        along = number * word - phase
        # One word later, so that it is not negative.
        begin = minimum(row, self.rows - 1) * source.pitch + source.first + along + word
        exists = (row < self.rows) & (along < self.length)
        is_whole = (along >= 0) & (along + word <= self.length)
        count = _words(source.total + 4 * word, word)
        near, shift = count.inv(begin)
        far, _ = count.inv(begin + (word - 1))
        last = source.total // word

        def one_by_one() -> None:
            taken, put = x.view(OrderBy(Row(source.total))), y.view(OrderBy(Row(target.total)))
            end = minimum(self.length - along, word)
            for k in lg.loop(end, start=maximum(-along, 0)):
                value = taken[(begin + k - word).below(source.total)]
                put[((first + number) * word + k).below(target.total)] = value

        if not last:
            lg.if_(exists)(one_by_one)
            return
        input_words = x.view(OrderBy(Row(source.total)).TileBy([-(-source.total // word)], [word]))
        output_words = y.view(OrderBy(Row(target.total)).TileBy([-(-target.total // word)], [word]))
        lines = [
            input_words[(minimum(maximum(w, 1), last) - 1).below(last), :]
            for w in ((near,) if self.grain == word else (near, far))
        ]
        value = lines[0]
        if len(lines) > 1:
            before = shift.to("i32") * self.element
            value = _shifted(lines[0], lines[-1], before, self.grain * self.element)

        def whole() -> None:
            output_words[(first + number).below(target.total // word), :] = value

        def ends() -> None:
            put = y.view(OrderBy(Row(target.total)))
            for k in range(word):

                @lg.if_((along + k >= 0) & (along + k < self.length))
                def _(k: int = k) -> None:
                    put[((first + number) * word + k).below(target.total)] = value[k]

        if self.grain == word:
            lg.if_(exists)(whole)
            return
        is_near = far <= last
        lg.if_(exists & is_near & is_whole)(whole)
        lg.if_(exists & is_near & ~is_whole)(ends)
        lg.if_(exists & ~is_near)(one_by_one)


def kernel_of_parts(
    name: str,
    whole: Sequence[int],
    axis: int,
    sizes: Sequence[int],
    dtype: str,
    alignment: int,
    *,
    joins: bool,
) -> lg.Kernel:
    """Return the kernel that joins tensors to one, or splits one into tensors.

    Args:
        name: of the kernel.
        whole: sizes of the tensor that has all parts.
        axis: the dimension that the parts divide.
        sizes: of the parts along it, which add up to that of the whole; some may be 0.
        dtype: element type of all.
        alignment: bytes that divide all addresses, a power of two; at most 16 make a difference.
        joins: whether the parts are read: `(x0, x1, …, y)`; else `(x, y0, y1, …)`.
    """
    letter, other = ("x", "y") if joins else ("y", "x")

    def aligned(shape: Sequence[int]) -> lg.TensorType:
        return replace(tensor(dtype, shape), alignment=alignment)

    kinds: dict[str, Any] = {}
    for k, size in enumerate(sizes):
        shape = (*whole[:axis], size, *whole[axis + 1 :])
        kinds[f"{letter}{k}"] = aligned(shape) if size else lg.EmptyType(dtype, shape)
    rest = {other: aligned(whole)}
    parameters = {**kinds, **rest} if joins else {**rest, **kinds}
    element = bytes_of(dtype)
    # Words that are no registers are not shifted: then elements are copied one at a time.
    wide = max(element, min(alignment, MAX_ACCESS_BYTES) if alignment >= _REGISTER else 0)
    rows, inner, total = prod(whole[:axis]), prod(whole[axis + 1 :]), prod(whole)
    together = min(rows, max(1, _TOGETHER * rows // (total * element)))
    parts: dict[str, Part] = {}
    for k, (size, before) in enumerate(zip(sizes, accumulate(sizes, initial=0), strict=False)):
        length = size * inner
        if length:
            sides = Rows(length, 0, rows * length), Rows(total // rows, before * inner, total)
            source, target = sides if joins else sides[::-1]
            parts[f"{letter}{k}"] = Part(source, target, rows, length, wide // element, element)
    counts = [-(-together * part.touched // _THREADS) for part in parts.values()]
    blocks = OrderBy(Row(-(-rows // together), sum(counts)))

    def move(**tensors: Any) -> None:
        group, block = blocks.inv(lg.block_id())
        thread, first = lg.thread_id(), 0
        for count, (label, part) in zip(counts, parts.items(), strict=True):
            x, y = (tensors[label], tensors[other])[:: 1 if joins else -1]

            @lg.if_((block >= first) & (block < first + count))
            def _(
                part: Part = part, count: int = count, first: int = first, x: Any = x, y: Any = y
            ) -> None:
                items = OrderBy(Row(-(-count * _THREADS // part.touched), part.touched))
                row, number = items.inv((block - first) * _THREADS + thread)
                row = lg.where(row < together, row + group * together, rows)
                part.copy(x, y, row, number)

            first += count

    move.__name__ = name
    ordered = [Parameter(n, Parameter.KEYWORD_ONLY) for n in parameters]
    move.__signature__ = Signature(ordered)  # type: ignore[attr-defined]
    text = f"{len(sizes)} parts by words of {wide} bytes, {together} rows at a time"
    return lg.kernel(
        grid=blocks.size, block=_THREADS, parameters=parameters, explanation=lambda: text
    )(move)


def _words(total: int, word: int) -> Any:
    """Return the layout whose inverse is the word of an element, and where in the word it is."""
    return OrderBy(Row(-(-total // word), word))


def _shifted(near: Any, far: Any, before: Any, grain: int) -> Any:
    """Return the word that begins inside of the first of two words.

    Args:
        near: a word.
        far: the one behind it.
        before: bytes of the first word that precede the result, i32.
        grain: bytes that divide those.
    """
    words = [w.bitcast("u32") for w in (near, far)]
    count = words[0].shape[0]
    registers = [w[k] for w in words for k in range(count)]
    step = count // 2
    while step:
        if step * _REGISTER >= grain:
            is_moved = (before & (step * _REGISTER)) != 0
            pairs = zip(registers, registers[step:], strict=False)
            registers = [lg.where(is_moved, b, a) for a, b in pairs]
        step //= 2
    if grain < _REGISTER:
        bits = ((before & (_REGISTER - 1)) * 8).bitcast("u32")
        # Two shifts, as one by 32 bits has no result.
        registers = [(a >> bits) | ((b << 1) << (31 - bits)) for a, b in pairwise(registers)]
    return lg.concatenate(registers[:count]).bitcast(near.dtype)
