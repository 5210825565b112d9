"""What a host function's arguments promise of their sizes and strides, beyond their types.

    %x: memref<?x?xf32, strided<[?, 1]>> {
        lego.bounds = array<i64: 0, 8193>,               the size along dimension 1 is below 8193
        lego.least = array<i64: 0, 4097>,                and 4097 at least
        lego.elements = 2147418112 : i64,                so is every offset, counted in elements
        lego.stride_divisors = array<i64: 16, 1>,        16 divides the stride along dimension 0
        lego.layout = #lego.layout<"OrderBy(Row(M{16}, N))">}    and the size along it

The compiler relies on promises, and every launch checks them: they are facts of the host function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import lcm
from typing import Any

from lego_mlir.algebra import parse_layout
from lego_mlir.algebra.sizes import ceildiv
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, Sym
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.encodings import layout_text
from lego_mlir.mlir.launch_sizes.hoist_sizes import DIM, METADATA
from lego_mlir.mlir.launch_sizes.strided import is_dense

_LISTS = {
    dialect.BOUNDS: ("bounds", 0),
    dialect.LEAST: ("least", 0),
    dialect.STRIDE_DIVISORS: ("stride_divisors", 1),
}
"""Attributes with a number for each dimension: what `Promises` calls it, and the least number."""


@dataclass(frozen=True, slots=True)
class Promised:
    """What is promised of one size or stride.

    Attributes:
        low: the least value.
        high: the greatest value, `None` if there is none.
        divisor: what divides it.
    """

    low: int = 0
    high: int | None = None
    divisor: int = 1

    @property
    def divisors(self) -> frozenset[Int]:
        """The divisors of a symbol of which this holds."""
        return frozenset({self.divisor} - {1})


@dataclass(frozen=True, slots=True)
class Promises:
    """What one argument promises.

    Attributes:
        bounds: for each dimension the exclusive upper bound of its size, 0 where there is none.
        elements: the exclusive upper bound of offsets in the buffer, 0 where there is none.
        stride_divisors: for each dimension what divides its stride.
        least: for each dimension the least value of its size.
        divisors: for each dimension what divides its size.
    """

    bounds: tuple[int, ...] = ()
    elements: int = 0
    stride_divisors: tuple[int, ...] = ()
    least: tuple[int, ...] = ()
    divisors: tuple[int, ...] = ()

    def of_size(self, dim: int) -> Promised:
        """Return what is promised of a size: 1 at least, for launches take no empty arrays."""
        bound = self.bounds[dim] if self.bounds else 0
        limits = [limit - 1 for limit in (bound, self.elements) if limit]
        low = self.least[dim] if self.least else 0
        divisor = self.divisors[dim] if self.divisors else 1
        high = min((limit - limit % divisor for limit in limits), default=None)
        return Promised(max(divisor, ceildiv(low, divisor) * divisor), high, divisor)

    def of_stride(self, dim: int) -> Promised:
        """Return what is promised of a stride."""
        divisor = self.stride_divisors[dim] if self.stride_divisors else 1
        return Promised(0, self.elements - 1 if self.elements else None, divisor)


def is_open(kind: Any) -> bool:
    """Return whether only the launch knows all sizes and strides of a memref type."""
    if not kind.has_static_shape:
        return True
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    return not is_dense(kind) and unknown in kind.get_strides_and_offset()[0]


def promises_of(buffer: Any) -> Promises:
    """Return what a buffer promises; nothing if it is no argument of a host function."""
    if not isinstance(buffer, ir.BlockArgument):
        return Promises()
    function = buffer.owner.owner.operation
    if function.name != "func.func" or "arg_attrs" not in function.attributes:
        return Promises()
    attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[buffer.arg_number])
    return _read(attributes, ir.MemRefType(buffer.type).rank)


def promised(value: Any) -> Promised | None:
    """Return what is promised of a value that is a size or a stride of a host argument."""
    if isinstance(value, ir.BlockArgument):
        return None
    op = value.owner
    if op.name == DIM:
        dim = op.operands[1].owner.attributes["value"].value
        return promises_of(op.operands[0]).of_size(dim)
    if op.name == METADATA:
        rank = ir.MemRefType(op.operands[0].type).rank
        k = ir.OpResult(value).result_number - 2
        promises = promises_of(op.operands[0])
        return promises.of_size(k) if k < rank else promises.of_stride(k - rank)
    return None


def check_promises(func: Any, source: Source) -> None:
    """Check the attributes by which the arguments of a function promise something.

    Raises:
        LegoError: one has another type, or not a number for each dimension.
    """
    if func.name != "func.func" or "arg_attrs" not in func.attributes:
        return
    kinds = ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value).inputs
    for number, attrs in enumerate(ir.ArrayAttr(func.attributes["arg_attrs"])):
        entries = {entry.name: entry.attr for entry in ir.DictAttr(attrs)}
        rank = ir.MemRefType(kinds[number]).rank if isinstance(kinds[number], ir.MemRefType) else -1
        for name, (_, least) in _LISTS.items():
            if name in entries and not _is_list(entries[name], rank, least):
                raise source.error(
                    f"{name} of argument {number} has an integer from {least} on for each of the "
                    f"dimensions of a memref, not '{entries[name]}'",
                    func.location,
                    hint=f"for example {name} = array<i64: {', '.join(['16'] * max(rank, 1))}>",
                )
        if dialect.ELEMENTS in entries and not _is_positive(entries[dialect.ELEMENTS], rank):
            raise source.error(
                f"{dialect.ELEMENTS} of argument {number} is a positive number of elements of a "
                f"memref, not '{entries[dialect.ELEMENTS]}'",
                func.location,
                hint=f"for example {dialect.ELEMENTS} = 2147418112 : i64",
            )


def _is_list(attribute: Any, rank: int, least: int) -> bool:
    if not isinstance(attribute, ir.DenseI64ArrayAttr):
        return False
    numbers = list(ir.DenseI64ArrayAttr(attribute))
    return len(numbers) == rank and all(n >= least for n in numbers)


def _is_positive(attribute: Any, rank: int) -> bool:
    return rank >= 0 and isinstance(attribute, ir.IntegerAttr) and attribute.value > 0


def _read(attributes: Mapping[str, Any], rank: int) -> Promises:
    found: dict[str, Any] = {}
    for name, (field, _) in _LISTS.items():
        if name in attributes:
            found[field] = tuple(ir.DenseI64ArrayAttr(attributes[name]))
    if dialect.ELEMENTS in attributes:
        found["elements"] = ir.IntegerAttr(attributes[dialect.ELEMENTS]).value
    if dialect.ARGUMENT_LAYOUT in attributes:
        divisors = _size_divisors(layout_text(attributes[dialect.ARGUMENT_LAYOUT]))
        if len(divisors) == rank:
            found["divisors"] = divisors
    return Promises(**found)


@lru_cache(maxsize=1024)
def _size_divisors(text: str) -> tuple[int, ...]:
    """Return a number that divides the size of each dimension of a layout's tensor.

    Nothing for a layout of permutations that the module defines, which is read with it.
    """
    try:
        sizes = parse_layout(text).tensor_shape
    except LegoError:
        return ()
    known = (size.divisors if isinstance(size, Sym) else () for size in sizes)
    return tuple(lcm(*(d for d in divisors if isinstance(d, int))) for divisors in known)
