"""Layouts of tiles' accesses whose sizes only the launch knows.

An access has the values of its layout's symbols as its last operands. Passes read them as
expressions, which know what the layouts say of them; where a pass only has to choose, typical
numbers stand for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.algebra.strided import buffer_shape, in_strides
from lego_mlir.index import Sym
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.launch_sizes.promises import Promised, promised, promises_of
from lego_mlir.mlir.launch_sizes.strided import has_strides
from lego_mlir.mlir.layouts import Layouts, symbols_of
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader, table_range
from lego_mlir.mlir.modules import operations_in

_TYPICAL = 8191
"""A size, times what divides it: so large that tiles are smaller, and odd."""

_ACCESSES = (
    dialect.LOAD,
    dialect.STORE,
    dialect.ATOMIC,
    dialect.COPY_ASYNC,
    tiles.GATHER,
    tiles.SCATTER,
)


def sizes_of(op: Any, layout: Layout) -> dict[Sym, Any]:
    """Return the values of the symbols of an access's layout: its last operands."""
    symbols = symbols_of(layout, dialect.layout_attribute_of(op))
    values = list(op.operands)[len(op.operands) - len(symbols) :]
    return dict(zip(symbols, values, strict=True))


def index_of(op: Any, layout: Layout) -> list[Any]:
    """Return the operands of an access that are its index, one a dimension."""
    end = len(op.operands) - len(layout.symbols)
    return list(op.operands)[end - layout.rank : end]


def read_sizes(kernel: Any, layouts: Layouts, reader: IndexReader) -> None:
    """Let a reader know what the layouts of a kernel's accesses say of their sizes.

    Args:
        kernel: the gpu.launch.
        layouts: reads its layouts.
        reader: has not read the sizes yet.
    """
    divisors: dict[Any, tuple[str, set[int]]] = {}
    for op in operations_in(kernel):
        if op.name not in _ACCESSES:
            continue
        layout = layouts.of(op)
        for symbol, value in sizes_of(op, layout).items():
            _, known = divisors.setdefault(value, (symbol.name, set()))
            known |= {d for d in symbol.divisors if isinstance(d, int)}
    for value, (name, known) in divisors.items():
        promise = promised(value) or Promised()
        low, high = max(1, promise.low), promise.high
        if dialect.made_by(value, dialect.TABLE):
            low, high = table_range(value.owner)
        reader.define(value, reader.symbol(value, name, low, high, frozenset(known)))


def with_read_sizes(op: Any, layout: Layout, reader: IndexReader) -> Layout:
    """Return the layout of an access whose symbols are the expressions of their values."""
    if not layout.symbols:
        return layout
    return layout.substitute({s: reader.read(v) for s, v in sizes_of(op, layout).items()})


def typical(layout: Layout, buffer: Any) -> Layout:
    """Return a layout of numbers that stands for one in a buffer of the launch's sizes.

    It has the same order of dimensions in memory, and sizes with no more divisors than are known.
    """
    if layout.symbols:
        numbers = {s: _TYPICAL * _known_divisor(s.divisors) for s in layout.symbols}
        layout = layout.substitute(numbers)
    if not has_strides(buffer):
        return layout
    kind = ir.MemRefType(buffer.type)
    promises = promises_of(buffer)
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    given, _ = kind.get_strides_and_offset()
    strides = tuple(
        _TYPICAL * (kind.rank - dim) * promises.of_stride(dim).divisor if step == unknown else step
        for dim, step in enumerate(given)
    )
    return in_strides(layout, buffer_shape(layout), strides)


def _known_divisor(divisors: Sequence[Any] | frozenset[Any]) -> int:
    return lcm(*(d for d in divisors if isinstance(d, int)))
