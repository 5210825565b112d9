"""Words of registers: the one inside of two neighbours, in reverse, of one element, of two words.

A word is a vector of elements, at most 16 bytes. All of this is arithmetic on its registers.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from lego_mlir import frontend as lg

REGISTER = 4
"""Bytes of a register, which are moved together."""


def shifted(near: Any, far: Any, before: Any, grain: int) -> Any:
    """Return the word that begins inside of the first of two words.

    Args:
        near: a word.
        far: the one behind it.
        before: bytes of the first word that precede the result, i32.
        grain: bytes that divide those.
    """
    registers = [*_registers(near), *_registers(far)]
    count = len(registers) // 2
    step = count // 2
    while step:
        if step * REGISTER >= grain:
            is_moved = (before & (step * REGISTER)) != 0
            pairs = zip(registers, registers[step:], strict=False)
            registers = [lg.where(is_moved, b, a) for a, b in pairs]
        step //= 2
    if grain < REGISTER:
        bits = ((before & (REGISTER - 1)) * 8).bitcast("u32")
        # Two shifts, as one by 32 bits has no result.
        registers = [(a >> bits) | ((b << 1) << (31 - bits)) for a, b in pairwise(registers)]
    return _word(registers[:count], near)


def reversed_word(word: Any, element: int) -> Any:
    """Return a word whose elements, of so many bytes, are in reverse."""
    registers = _registers(word)[::-1]
    if element > REGISTER:
        pairs = zip(registers[::2], registers[1::2], strict=True)
        registers = [r for a, b in pairs for r in (b, a)]
    if element <= 2:
        registers = [(r >> 16) | (r << 16) for r in registers]
    if element == 1:
        registers = [((r >> 8) & 0x00FF00FF) | ((r & 0x00FF00FF) << 8) for r in registers]
    return _word(registers, word)


def filled(word: Any, element: int) -> Any:
    """Return a word of nothing but the first element, of so many bytes, of another."""
    registers = _registers(word)
    if element > REGISTER:
        return _word(registers[:2] * (len(registers) // 2), word)
    first = registers[0]
    if element < REGISTER:
        first = (first & ((1 << 8 * element) - 1)) * (0x01010101 if element == 1 else 0x00010001)
    return _word([first] * len(registers), word)


def joined(one: Any, other: Any, at: Any, grain: int) -> Any:
    """Return a word that begins as one word and ends as another.

    Args:
        one: a word.
        other: another one.
        at: bytes of the first one that the result begins with, i32.
        grain: bytes that divide those.
    """
    found = []
    for k, (a, b) in enumerate(zip(_registers(one), _registers(other), strict=True)):
        here = at - k * REGISTER
        kept = lg.where(here > 0, a, b)
        if grain < REGISTER:
            low = ((here & (REGISTER - 1)) * 8).bitcast("u32")
            mask = (low & 0) + 1
            mask = (mask << low) - 1
            kept = lg.where((here > 0) & (here < REGISTER), (a & mask) | (b & ~mask), kept)
        found.append(kept)
    return _word(found, one)


def _registers(word: Any) -> list[Any]:
    words = word.bitcast("u32")
    return [words[k] for k in range(words.shape[0])]


def _word(registers: list[Any], like: Any) -> Any:
    return lg.concatenate(registers).bitcast(like.dtype)
