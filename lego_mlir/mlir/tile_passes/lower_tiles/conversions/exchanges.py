"""Conversions inside of warps: each thread chooses what it sends, and where it puts what it gets.

In each round of the plan (`analysis.distributed.conversions.exchange`) a thread sends words and
receives words of the lane that it chooses. Both choices are by digits of its own number, so they
become selects:

    %bit = arith.cmpi eq, %digit, %c1
    %sent = arith.select %bit, %x1, %x0
    %got, %ok = gpu.shuffle xor %sent, %c1, %c32
    %y0 = arith.select %bit, %got, %kept
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.analysis.distributed.conversions.atoms import Digit
from lego_mlir.analysis.distributed.conversions.exchange import Choice, Exchange, Round
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.shuffles import (
    from_words,
    shuffle_word,
    to_words,
)
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import Fragment, of_elements
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads

Words = list[Any]
Values = tuple[int, ...]


def exchange(
    tile: Fragment, layout: DistributedLayout, plan: Exchange, threads: Threads
) -> Fragment:
    """Build a tile in another layout of the same warps.

    Args:
        tile: the tile.
        layout: of the result.
        plan: the rounds.
        threads: those of the kernel.
    """
    elements, element = tile.elements(), tile.element
    packed: dict[tuple[int, ...], Words] = {}

    def words_of(registers: tuple[int, ...]) -> Words:
        if registers not in packed:
            packed[registers] = to_words(build.from_elements([elements[r] for r in registers]))
        return packed[registers]

    # For the registers that a word goes to: by the values of the digits that choose them, the word.
    found: dict[tuple[int, ...], dict[Values, Words]] = {}
    digits = _digits(c for r in plan.rounds for w in r.words for e in w.received for c in e)
    for shuffles in plan.rounds:
        for word in shuffles.words:
            sent = _chosen(word.sent, words_of, threads)
            words = _received(shuffles, sent, threads)
            for copy in zip(*word.received, strict=True):
                for values in _values(digits):
                    registers = _registers(copy, dict(zip(digits, values, strict=True)))
                    found.setdefault(registers, {})[values] = words
    held: list[Any] = [None] * layout.registers
    for registers, by_values in found.items():
        words = _select(digits, by_values, threads)
        count = len(registers)
        value = from_words(words, build.vector_type(count, element))
        for r, x in zip(registers, build.to_elements(value), strict=True):
            held[r] = x
    return of_elements(layout, held)


def _received(shuffles: Round, words: Words, threads: Threads) -> Words:
    """Build the words that a thread gets in a round, each lane sending these."""
    if shuffles.is_local:
        return words
    if shuffles.is_butterfly:
        mask = sum(weight for weight, _, flip in shuffles.lane.terms if flip)
        lane = build.constant(build.i32(), mask)
        return [shuffle_word("xor", word, lane) for word in words]
    lane = threads.number(shuffles.lane)
    return [shuffle_word("idx", word, lane) for word in words]


def _chosen(
    choices: Sequence[Choice], words_of: Callable[[tuple[int, ...]], Words], threads: Threads
) -> Words:
    """Build the words of the registers that a thread chooses, which share a word."""
    digits = _digits(choices)
    by_values = {
        values: words_of(_registers(choices, dict(zip(digits, values, strict=True))))
        for values in _values(digits)
    }
    return _select(digits, by_values, threads)


def _digits(choices: Iterable[Choice]) -> tuple[Digit, ...]:
    """Return the digits that choices depend on, in order of first use."""
    return tuple(dict.fromkeys(digit for choice in choices for _, digit, _ in choice.terms))


def _values(digits: Sequence[Digit]) -> list[Values]:
    return list(product(*(range(d.size) for d in digits)))


def _registers(choices: Sequence[Choice], values: Mapping[Digit, int]) -> tuple[int, ...]:
    """Return the registers that a thread with these digits chooses."""
    return tuple(c.base + sum(w * (values[d] ^ flip) for w, d, flip in c.terms) for c in choices)


def _select(digits: Sequence[Digit], by_values: Mapping[Values, Words], threads: Threads) -> Words:
    """Build the words that belong to the thread's values of the digits, the first one first."""
    if not digits:
        return by_values[()]
    first, rest = digits[0], digits[1:]
    options = [
        _select(rest, {v[1:]: w for v, w in by_values.items() if v[0] == k}, threads)
        for k in range(first.size)
    ]
    found = options[0]
    for k in range(1, first.size):
        if options[k] == found:
            continue
        is_k = threads.is_digit(first, k)
        found = [build.select(is_k, a, b) for a, b in zip(options[k], found, strict=True)]
    return found
