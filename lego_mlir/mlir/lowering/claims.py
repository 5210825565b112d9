"""Claims: indices of which a program says, and the compiler relies on, that they are in a range.

A claim is an attribute of an operation: one of its operands, or its result, is an index from 0 on
and below a limit. The front end makes it of `lg.choose`, `lg.select`, `lg.segment` and `v.below`;
a lego.table or lego.pick claims it of its number. Whether it holds is `mlir.lowering.index_checks`' to see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir

RESULT = -1
"""In the place of an operand's number: the claim is about the result."""

_OPERATIONS = ("scf.index_switch", "memref.load")
_DIALECT = "arith."


@dataclass(frozen=True, slots=True)
class Claim:
    """What an operation claims.

    Attributes:
        what: the index, in the words of the user's program.
        limit: it is from 0 on, and below this.
        operand: the number of the operand that it is, or `RESULT`.
    """

    what: str
    limit: int
    operand: int = 0

    @property
    def attribute(self) -> Any:
        """The claim as an attribute, in the current context."""
        i64 = ir.IntegerType.get_signless(64)
        numbers = {"limit": self.limit, "operand": self.operand}
        entries = {name: ir.IntegerAttr.get(i64, n) for name, n in numbers.items()}
        return ir.DictAttr.get({"what": ir.StringAttr.get(self.what), **entries})

    def value(self, op: Any) -> Any:
        """The index, of an operation that claims it."""
        return op.results[0] if self.operand == RESULT else op.operands[self.operand]


def claims(name: str, op: Any) -> bool:
    """Return whether an operation of this name has a claim."""
    return (name.startswith(_DIALECT) or name in _OPERATIONS) and dialect.CLAIM in op.attributes


def taken_claim(op: Any) -> Claim:
    """Return the claim of an operation, which is taken away from it."""
    entries = {entry.name: entry.attr for entry in ir.DictAttr(op.attributes[dialect.CLAIM])}
    del op.attributes[dialect.CLAIM]
    what = ir.StringAttr(entries["what"]).value
    limit, operand = (ir.IntegerAttr(entries[name]).value for name in ("limit", "operand"))
    return Claim(what, limit, operand)
