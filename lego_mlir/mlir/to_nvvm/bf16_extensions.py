"""Extensions of vectors of bf16 to f32, two elements of a word by an instruction each.

    %y = arith.extf %x : vector<2xbf16> to vector<2xf32>

becomes

    %w = vector.bitcast %x : vector<2xbf16> to vector<1xi32>
    %low = arith.shli %w, %c16 : vector<1xi32>
    %high = arith.andi %w, %upper_half : vector<1xi32>

and an interleaving of their bits as f32. A bf16 is the upper half of an f32, so both are exact. By
itself the upper one would take two instructions, of which the first takes it out of the word.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lego_mlir.mlir.bindings import arith, ir, vector
from lego_mlir.mlir.dialect import made_by
from lego_mlir.mlir.modules import operations_in

_UPPER_HALF = -1 << 16


def has_words(operations: Iterable[Any]) -> bool:
    """Return whether there are operations that `extend_by_words` is about."""
    return any(map(_is_of_words, operations))


def extend_by_words(module: Any) -> None:
    """Replace the extensions of vectors of an even number of bf16 to f32.

    Args:
        module: before it is lowered to the llvm dialect, changed in place; its context is the
            current one.
    """
    for op in list(operations_in(module.operation)):
        if not _is_of_words(op):
            continue
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(_extended(op.operands[0]))
        op.erase()


def _is_of_words(op: Any) -> bool:
    """Return whether an operation extends a vector of words of two bf16 to f32.

    A vector that is made of single elements has no words yet.
    """
    if op.name != "arith.extf" or made_by(op.operands[0], "vector.from_elements"):
        return False
    source, target = op.operands[0].type, op.results[0].type
    return (
        isinstance(source, ir.VectorType)
        and source.rank == 1
        and source.shape[0] % 2 == 0
        and isinstance(source.element_type, ir.BF16Type)
        and isinstance(target.element_type, ir.F32Type)
    )


def _extended(x: Any) -> Any:
    """Build a vector of bf16 as f32."""
    count = x.type.shape[0] // 2
    words = ir.VectorType.get([count], ir.IntegerType.get_signless(32))
    numbers = ir.VectorType.get([count], ir.F32Type.get())

    def constant(n: int) -> Any:
        number = ir.IntegerAttr.get(words.element_type, n)
        return arith.ConstantOp(words, ir.DenseElementsAttr.get_splat(words, number)).result

    both = vector.BitCastOp(words, x).result
    low = arith.ShLIOp(both, constant(16)).result
    high = arith.AndIOp(both, constant(_UPPER_HALF)).result
    halves = (arith.BitcastOp(numbers, half).result for half in (low, high))
    return vector.InterleaveOp(*halves).result
