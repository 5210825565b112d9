"""Claims: ranges of indices that a program states and the compiler relies on.

A claim is an attribute of an operation: one of its operands, or its result, is an index in
[0, limit). The front end sets it for `lg.choose`, `lg.select`, `lg.segment` and `v.below`; a
lego.table or lego.pick claims it of its number. `mlir.lowering.indices.index_checks` proves or
checks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir

RESULT = -1
"""Instead of an operand's number: the claim is about the result."""

_OPERATIONS = ("scf.index_switch", "memref.load")
_DIALECT = "arith."


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of an operation.

    Attributes:
        what: the index, as the user's program calls it.
        limit: its exclusive upper bound; the lower one is 0.
        operand: the number of the operand that the index is, or `RESULT`.
    """

    what: str
    limit: int
    operand: int = 0

    @property
    def attribute(self) -> Any:
        """Return the claim as an attribute, in the current context."""
        i64 = ir.IntegerType.get_signless(64)
        numbers = {"limit": self.limit, "operand": self.operand}
        entries = {name: ir.IntegerAttr.get(i64, n) for name, n in numbers.items()}
        return ir.DictAttr.get({"what": ir.StringAttr.get(self.what), **entries})

    def value(self, op: Any) -> Any:
        """Return the claimed index of an operation."""
        return op.results[0] if self.operand == RESULT else op.operands[self.operand]


def claims(name: str, op: Any) -> bool:
    """Return whether an operation of this name has a claim."""
    return (name.startswith(_DIALECT) or name in _OPERATIONS) and dialect.CLAIM in op.attributes


def taken_claim(op: Any) -> Claim:
    """Remove the claim of an operation and return it."""
    entries = {entry.name: entry.attr for entry in ir.DictAttr(op.attributes[dialect.CLAIM])}
    del op.attributes[dialect.CLAIM]
    what = ir.StringAttr(entries["what"]).value
    limit, operand = (ir.IntegerAttr(entries[name]).value for name in ("limit", "operand"))
    return Claim(what, limit, operand)
