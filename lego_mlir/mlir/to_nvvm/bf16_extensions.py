"""Extensions of vectors of bf16 to f32, two elements of a word by an instruction each.

    %y = arith.extf %x : vector<2xbf16> to vector<2xf32>

becomes

    %w = vector.bitcast %x : vector<2xbf16> to vector<1xi32>
    %low = arith.shli %w, %c16 : vector<1xi32>
    %high = arith.andi %w, %upper_half : vector<1xi32>

and an interleaving of their bits as f32. A bf16 is the upper half of an f32, so both are exact. By
itself the upper one would take two instructions, of which the first takes it out of the word.

In a loop, of words that are there before it, LLVM would move both ahead of the loop, where they
take twice the registers. Where that left few of those that a thread has for all else, and where an
extension has `lego.extended_late`, the words pass through instructions of the loop that LLVM knows
nothing of (and ptxas drops):

    %w1 = llvm.inline_asm has_side_effects "mov.b32 $0, $1;", "=r,r" %w0 : (i32) -> i32
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from lego_mlir.hardware.limits import MAX_THREAD_REGISTERS, SM_REGISTERS
from lego_mlir.mlir.bindings import arith, ir, vector
from lego_mlir.mlir.dialect import CTAS_PER_SM, EXTENDED_LATE, made_by
from lego_mlir.mlir.emit.operations import assembly

_UPPER_HALF = -1 << 16

_LEFT = 64
"""Registers of a thread that numbers of f32 are to leave: with 64 to 128 left, LayerNorm of 100,352
to 262,144 columns was 4 to 6 % faster so, as measured on an H200 (rows_shifted.jsonl)."""

_LOOPS = "scf.for", "scf.while"

_SAME = "mov.b32 $0, $1;"


def extensions_of_words(operations: Iterable[Any]) -> list[Any]:
    """Return those of the operations that `extend_by_words` is about."""
    return [op for op in operations if _is_of_words(op)]


def extend_by_words(found: Iterable[Any]) -> None:
    """Replace the extensions of vectors of an even number of bf16 to f32.

    Args:
        found: all of a module, as `extensions_of_words` returns them, before it is lowered to the
            llvm dialect, which is changed in place; its context is the current one.
    """
    kept = _kept(found)
    for op in found:
        with ir.InsertionPoint(op), op.location:
            keeps = op.operands[0] in kept or EXTENDED_LATE in op.attributes
            extended = _extended(op.operands[0], keeps=keeps)
            op.results[0].replace_all_uses_with(extended)
        op.erase()


def _kept(extensions: Iterable[Any]) -> set[Any]:
    """Return the words that loops are to keep, of those that are there before them."""
    outside: dict[Any, tuple[Any, set[Any]]] = {}
    for op in extensions:
        loop = _outermost(op)
        if loop is not None and not _is_inside(op.operands[0], loop):
            outside.setdefault(loop, (loop, set()))[1].add(op.operands[0])
    kept: set[Any] = set()
    for loop, words in outside.values():
        if sum(x.type.shape[0] for x in words) > _registers(loop) - _LEFT:
            kept |= words
    return kept


def _outermost(op: Any) -> Any:
    """Return the outermost loop around an operation; `None` without one."""
    found, at = None, op.operation.parent
    while at is not None and at.name != "gpu.launch":
        found = at if at.name in _LOOPS else found
        at = at.parent
    return found


def _is_inside(value: Any, loop: Any) -> bool:
    """Return whether a value is computed in a loop."""
    at = value.owner.owner if isinstance(value, ir.BlockArgument) else value.owner.operation
    while at is not None and at != loop:
        at = at.operation.parent
    return at is not None


def _registers(op: Any) -> int:
    """Return how many registers a thread has, one for 0 too, of the launch around an operation."""
    while op is not None and op.name != "gpu.launch":
        op = op.operation.parent
    if op is None:
        return MAX_THREAD_REGISTERS + 1
    first, *_ = op.attributes["operandSegmentSizes"]
    sizes = list(op.operands)[first + 3 : first + 6]
    if any(not made_by(size, "arith.constant") for size in sizes):
        return MAX_THREAD_REGISTERS + 1
    threads: int = prod(ir.IntegerAttr(size.owner.attributes["value"]).value for size in sizes)
    ctas: int = (
        ir.IntegerAttr(op.attributes[CTAS_PER_SM]).value if CTAS_PER_SM in op.attributes else 1
    )
    return min(MAX_THREAD_REGISTERS + 1, SM_REGISTERS // max(1, threads * ctas))


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


def _extended(x: Any, *, keeps: bool) -> Any:
    """Build a vector of bf16 as f32; `keeps` says whether loops are to keep its words."""
    count = x.type.shape[0] // 2
    words = ir.VectorType.get([count], ir.IntegerType.get_signless(32))
    numbers = ir.VectorType.get([count], ir.F32Type.get())

    def constant(n: int) -> Any:
        number = ir.IntegerAttr.get(words.element_type, n)
        return arith.ConstantOp(words, ir.DenseElementsAttr.get_splat(words, number)).result

    both = vector.BitCastOp(words, x).result
    if keeps:
        i32 = words.element_type
        each = (vector.ExtractOp(both, [], [k]).result for k in range(count))
        same = [assembly(_SAME, "=r,r", [word], i32, has_effects=True) for word in each]
        both = vector.FromElementsOp(words, same).result
    low = arith.ShLIOp(both, constant(16)).result
    high = arith.AndIOp(both, constant(_UPPER_HALF)).result
    halves = (arith.BitcastOp(numbers, half).result for half in (low, high))
    return vector.InterleaveOp(*halves).result
