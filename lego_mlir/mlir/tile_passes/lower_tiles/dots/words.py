"""Operands of tensor cores in registers: words of 32 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir, vector

_WORD_BITS = 32


def to_words(parts: Sequence[Any], bits: int) -> list[Any]:
    """Return elements in parts as words, as vectors of elements are cast to them.

    Args:
        parts: what a thread holds of an operand; the elements of a word are always neighbours.
        bits: of an element.
    """
    per_word = _WORD_BITS // bits
    i32 = ir.IntegerType.get_signless(_WORD_BITS)
    word_type = ir.VectorType.get([1], i32)
    words: list[Any] = []
    for part in parts:
        kind = ir.VectorType(part.type)
        for start in range(0, kind.shape[0], per_word):
            piece = part
            if kind.shape[0] != per_word:
                narrow = ir.VectorType.get([per_word], kind.element_type)
                piece = vector.ExtractStridedSliceOp(narrow, part, [start], [per_word], [1]).result
            cast = vector.BitCastOp(word_type, piece).result
            words.append(vector.ExtractOp(cast, [], [0]).result)
    return words
