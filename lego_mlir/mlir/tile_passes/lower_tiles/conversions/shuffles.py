"""Shuffles of values of any type: they become words of 32 bits, and words become values again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.tile_passes.lower_tiles import build

WORD_BITS = 32


def shuffle_xor(value: Any, mask: int) -> Any:
    """Build a value, or each element of a vector, of the lane whose number differs by a mask."""
    other = build.constant(build.i32(), mask)
    return from_words([shuffle_word("xor", word, other) for word in to_words(value)], value.type)


def shuffle_word(mode: str, word: Any, lane: Any) -> Any:
    """Build a word of another lane (PTX ISA 9.7.9.6, "shfl.sync").

    Args:
        mode: `idx`, or `xor` for a mask of the lane's own number.
        word: an i32.
        lane: the lane or the mask, an i32.
    """
    width = build.constant(build.i32(), WARP_THREADS)
    return ir.Operation.create(
        "gpu.shuffle",
        results=[build.i32(), ir.IntegerType.get_signless(1)],
        operands=[word, lane, width],
        attributes={"mode": ir.Attribute.parse(f"#gpu<shuffle_mode {mode}>")},
    ).results[0]


def to_words(value: Any) -> list[Any]:
    """Build the words, i32, that hold a vector or a single element; the last one may be part."""
    value = build.bool_to_byte(value)
    element = build.element_type(value)
    if isinstance(element, ir.IndexType):
        element = ir.IntegerType.get_signless(64)
        value = build.make("arith.index_cast", build.with_element(value.type, element), value)
    count, bits = build.count_of(value), element.width
    if count == 1 and bits <= WORD_BITS:
        return [_widened(_as_integer(value, bits))]
    kind = ir.VectorType.get([count], element)
    if count == 1:
        value = build.make("vector.broadcast", kind, value)
    total = count * bits
    if total % WORD_BITS:
        whole = ir.VectorType.get([1], ir.IntegerType.get_signless(total))
        return [_widened(*build.to_elements(build.make("vector.bitcast", whole, value)))]
    words = ir.VectorType.get([total // WORD_BITS], build.i32())
    return build.to_elements(value if kind == words else build.make("vector.bitcast", words, value))


def from_words(words: Sequence[Any], kind: Any) -> Any:
    """Build the value of type `kind` that `to_words` made words of."""
    element = ir.VectorType(kind).element_type if isinstance(kind, ir.VectorType) else kind
    i1 = ir.IntegerType.get_signless(1)
    if element == i1:
        byte = build.with_element(kind, ir.IntegerType.get_signless(8))
        return build.byte_to_bool(from_words(words, byte))
    if isinstance(element, ir.IndexType):
        wide = build.with_element(kind, ir.IntegerType.get_signless(64))
        return build.make("arith.index_cast", kind, from_words(words, wide))
    count = ir.VectorType(kind).shape[0] if isinstance(kind, ir.VectorType) else 1
    total = count * element.width
    if count == 1 and total <= WORD_BITS:
        integer = _narrowed(words[0], total)
        return integer if kind == integer.type else build.make("arith.bitcast", kind, integer)
    if total % WORD_BITS:
        value = _narrowed(words[0], total)
        value = build.make("vector.broadcast", ir.VectorType.get([1], value.type), value)
    else:
        whole = ir.VectorType.get([len(words)], build.i32())
        value = build.make("vector.from_elements", whole, *words)
    vector = ir.VectorType.get([count], element)
    value = value if value.type == vector else build.make("vector.bitcast", vector, value)
    return value if count > 1 else build.to_elements(value)[0]


def _as_integer(value: Any, bits: int) -> Any:
    integer = ir.IntegerType.get_signless(bits)
    return value if value.type == integer else build.make("arith.bitcast", integer, value)


def _widened(value: Any) -> Any:
    return value if value.type == build.i32() else build.make("arith.extui", build.i32(), value)


def _narrowed(word: Any, bits: int) -> Any:
    if bits == WORD_BITS:
        return word
    return build.make("arith.trunci", ir.IntegerType.get_signless(bits), word)
