"""Lower lego.table and lego.pick, before the other lego operations.

    %k = "lego.table"(%which) {values = array<i64: 64, 128, 192>} : (index) -> index
    %x = "lego.pick"(%which, %a, %b, %c) : (index, memref<…>, …) -> memref<?xf16>

become

    memref.global "private" constant @numbers : memref<3xi32> = dense<[64, 128, 192]>
    ...
    %0 = memref.load %numbers[%which]
    %k = arith.index_castui %0 {lego.bounds = array<i64: 193>} : i32 to index

and the buffer that comparisons with %which select.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, memref
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.lowering.indices.claims import Claim
from lego_mlir.mlir.modules import operations_in

_MOST = 1 << 31
_NAME = "numbers"


def checked_table_values(op: Any, source: Source) -> tuple[int, ...]:
    """Return the numbers of a lego.table, checked.

    Raises:
        LegoError: they are not numbers from 0 to 2³¹ - 1.
    """
    attribute = op.attributes[dialect.VALUES]
    found = tuple(attribute) if isinstance(attribute, ir.DenseI64ArrayAttr) else ()
    if not found or min(found) < 0 or max(found) >= _MOST:
        raise source.error(
            f"'{op.name}': the {dialect.VALUES} are {attribute}",
            op.location,
            hint="numbers from 0 to 2147483647, one or more: array<i64: 64, 128>",
        )
    return found


TABLES = frozenset((dialect.TABLE, dialect.PICK))


def lower_tables(module: Any, source: Source) -> dict[Any, tuple[int, ...]]:
    """Replace every lego.table and lego.pick of a module.

    The operations that replace them claim that the number is in range.

    Returns:
        The table's numbers, for each value that is read from a table.

    Raises:
        LegoError: an operation has wrong attributes or operands.
    """
    tables: dict[tuple[int, ...], str] = {}
    values: dict[Any, tuple[int, ...]] = {}
    found = [op for op in operations_in(module.operation) if op.name in TABLES]
    checked: dict[Any, tuple[int, ...]] = {}
    for op in found:
        if any(True for _ in op.results[0].uses):
            with ir.InsertionPoint(op), op.location:
                if op.name == dialect.TABLE:
                    given = op.attributes[dialect.VALUES]
                    if given not in checked:  # roles of a kernel read the same tables
                        checked[given] = checked_table_values(op, source)
                    value = _number(op, checked[given], module, tables)
                    values[value] = checked[given]
                else:
                    value = _buffer(op, source)
            op.results[0].replace_all_uses_with(value)
    for op in reversed(found):
        op.erase()
    return values


def _number(
    op: Any, values: tuple[int, ...], module: Any, tables: dict[tuple[int, ...], str]
) -> Any:
    """Build the load of a table's number."""
    index, i32 = ir.IndexType.get(), ir.IntegerType.get_signless(32)
    if len(set(values)) == 1:
        return arith.ConstantOp(index, values[0]).result
    kind = ir.MemRefType.get([len(values)], i32)
    if values not in tables:
        name = tables[values] = f"{_NAME}_{len(tables)}"
        with ir.InsertionPoint.at_block_begin(module.body):
            memref.GlobalOp(
                name,
                ir.TypeAttr.get(kind),
                sym_visibility=ir.StringAttr.get("private"),
                initial_value=ir.DenseElementsAttr.get(np.array(values, np.int32)),
                constant=True,
            )
    table = memref.GetGlobalOp(kind, tables[values]).result
    load = memref.LoadOp(table, [op.operands[0]])
    claim = Claim("the index of a table", len(values), operand=1)
    load.operation.attributes[dialect.CLAIM] = claim.attribute
    word = load.result
    found = arith.IndexCastUIOp(index, word)
    found.operation.attributes[dialect.BOUNDS] = dialect.bounds_attribute([max(values) + 1])
    return found.result


def _buffer(op: Any, source: Source) -> Any:
    """Build the choice of one of several buffers."""
    number, *buffers = list(op.operands)
    kind = op.results[0].type
    if not buffers or any(buffer.type != kind for buffer in buffers):
        raise source.error(
            f"'{op.name}' of {len(buffers)} buffers as one of {kind}",
            op.location,
            hint="one buffer or more, all of the result's type, memref<?xf16>: memref.cast",
        )
    chosen, *others = buffers
    for k, other in enumerate(others, start=1):
        here = arith.ConstantOp(ir.IndexType.get(), k).result
        is_this = arith.CmpIOp(arith.CmpIPredicate.eq, number, here)
        if k == 1:
            claim = Claim("the number of a pick", len(buffers))
            is_this.operation.attributes[dialect.CLAIM] = claim.attribute
        chosen = arith.SelectOp(is_this.result, other, chosen).result
    return chosen
