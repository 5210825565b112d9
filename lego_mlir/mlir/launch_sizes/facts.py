"""The facts that arguments promise by themselves, and the symbols of layouts that they bind.

A symbol of an argument's layout is the size of the buffer's dimension that the layout calls so, or
follows from the size of a buffer of one dimension. It has the scope of the host function: the same
name in two layouts is one size.

    %x: memref<?x64xf32> {lego.layout = #lego.layout<"OrderBy(Row(M, 64))">}     M is a0.d0
    %y: memref<?xf32> {lego.layout = #lego.layout<"OrderBy(Row(M))">}            a1.d0 a0.d0 ==
    %z: memref<?xf32> {lego.layout = #lego.layout<"OrderBy(Col(M, N))">}         N is a2.d0 a0.d0 //
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.algebra.blocks import Sizes
from lego_mlir.algebra.sizes import cofactor
from lego_mlir.index import Int, Sym, symbols
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.launch_sizes.known import (
    Known,
    known_expression,
    number,
    size_of,
    stride_of,
)
from lego_mlir.mlir.launch_sizes.promises import promises_of
from lego_mlir.mlir.launch_sizes.strided import is_dense
from lego_mlir.mlir.layouts import Layouts


@dataclass(frozen=True, slots=True)
class PromisedFact:
    """What a host function's arguments promise, as the launch evaluates it.

    Attributes:
        value: what it is about.
        condition: whether it holds.
        says: what is promised.
    """

    value: Known
    condition: Known
    says: str


def bound_symbols(func: Any, layouts: Layouts) -> dict[str, Known]:
    """Return what the launch knows each symbol of the arguments' layouts to be.

    A symbol that no size of a buffer tells, as of two in `Col(M, N)`, is missing.
    """
    found: dict[str, Known] = {}
    products: list[tuple[Known, Int]] = []
    for position, kind, _, sizes in _layouts(func, layouts):
        for dim, size in enumerate(sizes):
            if isinstance(size, Sym):
                found.setdefault(size.name, _size(position, kind, dim))
            else:
                products.append((_size(position, kind, dim), size))
    count = -1
    while len(found) > count:  # one may follow from another that did
        count = len(found)
        for own, size in products:
            unknown = [s for s in symbols(size) if s.name not in found]
            factor = cofactor(size, unknown[0]) if len(unknown) == 1 else None
            if factor is not None:
                known = known_expression(factor, lambda symbol: found.get(symbol.name))
                if known is not None:
                    found[unknown[0].name] = own // known
    return found


def promised_facts(func: Any, layouts: Layouts) -> Iterator[PromisedFact]:
    """Yield what the arguments of a host function promise of their sizes and strides."""
    bound = bound_symbols(func, layouts)
    for position, kind, layout, sizes in _layouts(func, layouts):
        for dim, size in enumerate(sizes):
            own = _size(position, kind, dim)
            expected = known_expression(size, lambda symbol: bound.get(symbol.name))
            if expected is None or expected == own:
                continue
            says = f"but its layout '{layout}' says that it is {size!r}"
            yield PromisedFact(own, own.with_operator("==", expected), says)
    for argument in func.regions[0].blocks[0].arguments:
        if isinstance(argument.type, ir.MemRefType):
            yield from _facts_of(argument)


def _facts_of(argument: Any) -> Iterator[PromisedFact]:
    """Yield what the attributes of one argument promise."""
    kind = ir.MemRefType(argument.type)
    position, promises = argument.arg_number, promises_of(argument)
    sizes = [_size(position, kind, dim) for dim in range(kind.rank)]
    for size, bound in zip(sizes, promises.bounds, strict=False):
        if bound:
            says = f"but {dialect.BOUNDS} says that it is {bound - 1} at most"
            yield PromisedFact(size, size.with_operator("<", number(bound)), says)
    for size, least in zip(sizes, promises.least, strict=False):
        if least:
            says = f"but {dialect.LEAST} says that it is {least} at least"
            yield PromisedFact(size, size.with_operator(">=", number(least)), says)
    for size, divisor in zip(sizes, promises.divisors, strict=False):
        if divisor > 1:
            says = f"but its layout says that {divisor} divides it"
            rest = size.with_operator("%", number(divisor))
            yield PromisedFact(size, rest.with_operator("==", number(0)), says)
    given = _strides(position, kind)
    for stride, divisor in zip(given, promises.stride_divisors, strict=False):
        if divisor > 1:
            says = f"but {dialect.STRIDE_DIVISORS} says that {divisor} divides it"
            rest = stride.with_operator("%", number(divisor))
            yield PromisedFact(stride, rest.with_operator("==", number(0)), says)
    if promises.elements:
        extent = _extent(kind, sizes, given)
        limit = number(promises.elements)
        says = f"but {dialect.ELEMENTS} says that all offsets are below {promises.elements}"
        for value in (extent, *(stride for stride in given if not stride.is_number)):
            if not value.is_number:
                yield PromisedFact(value, value.with_operator("<", limit), says)


def _extent(kind: Any, sizes: Sequence[Known], strides: Sequence[Known]) -> Known:
    """Return the number of elements that a buffer extends over, holes included."""
    if is_dense(kind):
        return reduce(operator.mul, sizes)
    last = [
        size.with_operator("-", number(1)) * stride
        for size, stride in zip(sizes, strides, strict=True)
    ]
    return reduce(operator.add, last, number(1))


def _size(position: int, kind: Any, dim: int) -> Known:
    return number(kind.shape[dim]) if not kind.is_dynamic_dim(dim) else size_of(position, dim)


def _strides(position: int, kind: Any) -> list[Known]:
    """Return the strides of a buffer; of one that is dense, nothing asks for them."""
    if is_dense(kind):
        return []
    strides, _ = kind.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    return [
        stride_of(position, dim) if stride == unknown else number(stride)
        for dim, stride in enumerate(strides)
    ]


def _layouts(func: Any, layouts: Layouts) -> Iterator[tuple[int, Any, Layout, Sizes]]:
    """Yield the arguments that have layouts: position, type, layout, and what its sizes are.

    These are the tensor's, dimension by dimension, or their product in a buffer of one dimension.
    """
    if "arg_attrs" not in func.attributes:
        return
    arguments = func.regions[0].blocks[0].arguments
    for argument, attrs in zip(arguments, func.attributes["arg_attrs"], strict=True):
        if dialect.ARGUMENT_LAYOUT not in attrs or not isinstance(argument.type, ir.MemRefType):
            continue
        kind = ir.MemRefType(argument.type)
        layout = layouts(attrs[dialect.ARGUMENT_LAYOUT], func.location)
        if len(layout.tensor_shape) == kind.rank:
            yield argument.arg_number, kind, layout, layout.tensor_shape
        elif kind.rank == 1:
            yield argument.arg_number, kind, layout, (layout.size,)
