"""Operands of tensor cores in registers: words of 32 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.emit.operations import as_word, vector_slice

_WORD_BITS = 32


def to_words(parts: Sequence[Any], bits: int) -> list[Any]:
    """Return elements in parts as words, as vectors of elements are cast to them.

    Args:
        parts: what a thread holds of an operand; the elements of a word are always neighbours.
        bits: of an element.
    """
    per_word = _WORD_BITS // bits
    words: list[Any] = []
    for part in parts:
        kind = ir.VectorType(part.type)
        narrow = ir.VectorType.get([per_word], kind.element_type)
        for start in range(0, kind.shape[0], per_word):
            piece = part if kind.shape[0] == per_word else vector_slice(narrow, part, start)
            words.append(as_word(piece))
    return words
