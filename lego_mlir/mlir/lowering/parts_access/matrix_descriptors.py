"""Lower lego.matrix_descriptor: the address of a tile in shared memory, and what never changes.

    %d = "lego.matrix_descriptor"(%b, %stage, %c0, %c0) {layout = #B, word = ...}

becomes, for f16 and stages of 4096 elements,

    %0 = arith.index_cast (memref.extract_aligned_pointer_as_index %b) : index to i32
    %1 = arith.addi %0, %stage * 8192 : i32
    %2 = arith.shrui (arith.andi %1, 0x3FFFF), 4 : i32
    %d = arith.addi (arith.extui %2), word : i64

Source: PTX ISA 9.7.15.5.1.2 (matrix descriptor): addresses count 16 bytes, in 14 bits.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.emit.operations import constant, make

_WINDOW = (1 << 18) - 1
"""The bits of a shared-memory address within its CTA; higher bits name the CTA of the cluster."""

_UNIT_BITS = 4


def lower_matrix_descriptor(flat: Any, offset: Any, element_bytes: int, word: int) -> Any:
    """Build a matrix descriptor, an i64.

    Args:
        flat: shared memory, a buffer of one dimension.
        offset: of the tile's first element, an index.
        element_bytes: bytes of an element.
        word: the descriptor of such a tile at address 0.
    """
    i32, i64 = (ir.IntegerType.get_signless(bits) for bits in (32, 64))
    base = make("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), flat)
    start = make("arith.index_cast", i32, base)
    distance = make("arith.index_cast", i32, offset)
    distance = make("arith.muli", i32, distance, constant(i32, element_bytes))
    at = make("arith.addi", i32, start, distance)
    inside = make("arith.andi", i32, at, constant(i32, _WINDOW))
    units = make("arith.shrui", i32, inside, constant(i32, _UNIT_BITS))
    signed = word - (1 << 64) if word >> 63 else word
    return make("arith.addi", i64, make("arith.extui", i64, units), constant(i64, signed))
