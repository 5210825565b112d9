"""Checks that run in a kernel, of what the compiler relies on and cannot prove.

    %is_outside = arith.cmpi uge, %i, %c4
    scf.if %is_outside {
      %0 = arith.index_cast %i : index to i64
      llvm.inline_asm has_side_effects "trap; // lego.check: index 1 of 'a' is $0, ...", "l" %0
    }

The message is a comment in the PTX; the simulator shows it with the register's value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lego_mlir.artifact import CHECK_MARK
from lego_mlir.index import Int
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, scf
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader

Printers = Callable[[Any], tuple[Callable[[Int], Any], Callable[[Int], Any]]]
"""What prints expressions at an operation: their value, and their truth."""


class KernelChecks:
    """Makes checks, which trap with a message.

    Args:
        reader: reads the operands.
        printers: for an operation.
    """

    def __init__(self, reader: IndexReader, printers: Printers) -> None:
        self._reader = reader
        self._printers = printers
        self._made: set[tuple[Any, ...]] = set()

    def within(
        self, op: Any, x: Any, limit: Int, message: str, inside: Int = 1, *, after: bool = False
    ) -> None:
        """Make a check that an index is in [0, limit).

        Args:
            op: what relies on it.
            x: the index, an expression or a value.
            limit: the limit.
            message: what the trap says; `$0` stands for the index, `$1` for the limit.
            inside: 1 where the index is used, an expression.
            after: whether it is known only behind the operation.
        """
        index, condition = self._printers(op)
        with _at(op, after=after), op.location:
            value = x if isinstance(x, ir.Value) else index(x)
            end = index(limit)
            outside = arith.CmpIOp(arith.CmpIPredicate.uge, value, end).result
            if not isinstance(inside, int):
                outside = arith.AndIOp(condition(inside), outside).result
            limits = [] if isinstance(limit, int) else [end]
            _trap(outside, [value, *limits], message)

    def positive(self, op: Any, operand: Any, message: str) -> None:
        """Make a check that an operand is at least 1, once a block."""
        if not self._is_new(op, operand, "positive"):
            return
        value = self._lasting(op, operand)
        with ir.InsertionPoint(op), op.location:
            zero = arith.ConstantOp(ir.IndexType.get(), 0).result
            _trap(arith.CmpIOp(arith.CmpIPredicate.sle, value, zero).result, [value], message)

    def divided(self, op: Any, operand: Any, divisor: Int, message: str) -> None:
        """Make a check that an expression divides an operand, once a block."""
        if not self._is_new(op, operand, divisor):
            return
        value = self._lasting(op, operand)
        index, _ = self._printers(op)
        with ir.InsertionPoint(op), op.location:
            rest = arith.RemSIOp(value, index(divisor)).result
            zero = arith.ConstantOp(ir.IndexType.get(), 0).result
            _trap(arith.CmpIOp(arith.CmpIPredicate.ne, rest, zero).result, [value], message)

    def _lasting(self, op: Any, operand: Any) -> Any:
        """Return the value of an operand that remains when the lego operations are erased."""
        if isinstance(operand, ir.BlockArgument) or not operand.owner.name.startswith(
            dialect.PREFIX
        ):
            return operand
        index, _ = self._printers(op)
        return index(self._reader.read(operand))

    def _is_new(self, op: Any, *what: Any) -> bool:
        """Return whether the same block has not checked this before."""
        key = (op.operation.block, *what)
        if key in self._made:
            return False
        self._made.add(key)
        return True


def _trap(violated: Any, values: Sequence[Any], message: str) -> None:
    """Build a trap for a violated condition; `$0` in the message stands for a value."""
    guard = scf.IfOp(violated)
    i64 = ir.IntegerType.get_signless(64)
    with ir.InsertionPoint(guard.then_block):
        shown = [arith.IndexCastOp(i64, value).result for value in values]
        escaped = message.replace("$", "$$")
        for k in range(len(shown)):
            escaped = escaped.replace(f"$${k}", f"${k}")
        attributes = {
            "asm_string": ir.StringAttr.get(f"trap; // {CHECK_MARK}{' '.join(escaped.split())}"),
            "constraints": ir.StringAttr.get(",".join("l" for _ in shown)),
            "has_side_effects": ir.UnitAttr.get(),
        }
        ir.Operation.create("llvm.inline_asm", operands=shown, attributes=attributes)
        scf.YieldOp([])


def _at(op: Any, *, after: bool) -> Any:
    return ir.InsertionPoint.after(op) if after else ir.InsertionPoint(op)
