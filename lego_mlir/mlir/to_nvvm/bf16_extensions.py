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
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import CTAS_PER_SM, EXTENDED_LATE, made_by
from lego_mlir.mlir.emit.operations import assembly, make, vector_element

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
    kept, build = _kept(found), _Builder()
    for op in found:
        x, result = op.operands[0], op.results[0]
        keeps = x in kept or EXTENDED_LATE in op.attributes
        with ir.InsertionPoint(op), op.location:
            extended = build.extended(x, result.type, op.operation.block, keeps=keeps)
        result.replace_all_uses_with(extended)
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


class _Builder:
    """Builds extensions; those of a block share their constants."""

    def __init__(self) -> None:
        self._i32, self._f32 = ir.IntegerType.get_signless(32), ir.F32Type.get()
        self._kinds: dict[int, tuple[Any, Any]] = {}
        self._constants: dict[tuple[Any, Any], tuple[Any, Any]] = {}

    def extended(self, x: Any, kind: Any, block: Any, *, keeps: bool) -> Any:
        """Build a vector of bf16 as f32, in the order of the program.

        Args:
            x: the vector.
            kind: the type of the result.
            block: where it is built.
            keeps: whether loops are to keep the words of the vector.
        """
        count = kind.shape[0] // 2
        if count not in self._kinds:
            self._kinds[count] = (
                ir.VectorType.get([count], self._i32),
                ir.VectorType.get([count], self._f32),
            )
        words, numbers = self._kinds[count]
        if (block, words) not in self._constants:
            self._constants[block, words] = _splat(words, 16), _splat(words, _UPPER_HALF)
        width, upper = self._constants[block, words]
        both = make("vector.bitcast", words, x)
        if keeps:
            each = [vector_element(both, k) for k in range(count)]
            same = [assembly(_SAME, "=r,r", [word], self._i32, has_effects=True) for word in each]
            both = make("vector.from_elements", words, *same)
        low = make("arith.shli", words, both, width)
        high = make("arith.andi", words, both, upper)
        halves = (make("arith.bitcast", numbers, half) for half in (low, high))
        return make("vector.interleave", kind, *halves)


def _splat(words: Any, number: int) -> Any:
    """Build a vector of equal words."""
    value = ir.IntegerAttr.get(words.element_type, number)
    return make("arith.constant", words, value=ir.DenseElementsAttr.get_splat(words, value))
