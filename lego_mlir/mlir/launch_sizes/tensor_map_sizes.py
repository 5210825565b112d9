"""The sizes and strides of tensor maps, as the launch knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from lego_mlir.index import Int, Sym
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.launch_sizes.known import Known, known_expression, known_value, stride_of
from lego_mlir.mlir.launch_sizes.promises import promises_of

KnownSizes: TypeAlias = tuple[int | str, ...]
"""Sizes that are numbers, or texts of expressions that the launch evaluates."""

_STRIDE = "stride "


def known_sizes(
    sizes: Sequence[Int], source: Source, op: Any, values: Mapping[str, Any], buffer: Any = None
) -> KnownSizes:
    """Return sizes of a tensor map as the launch knows them: numbers, and texts of expressions.

    Args:
        sizes: numbers, and expressions of the symbols of the access's layout.
        source: the module's text, in which errors are shown.
        op: the access whose tensor it is.
        values: those of the symbols, by name.
        buffer: the argument whose strides are named as `stride_symbols` does.

    Raises:
        LegoError: a size depends on what only the kernel knows.
    """

    def known_symbol(symbol: Sym) -> Known | None:
        if symbol.name.startswith(_STRIDE):
            return stride_of(buffer.arg_number, int(symbol.name.removeprefix(_STRIDE)))
        return known_value(values[symbol.name])

    def known(size: Int) -> int | str:
        if isinstance(size, int):
            return size
        found = known_expression(size, known_symbol)
        if found is None:
            raise source.error(
                f"TMA needs a tensor whose sizes the launch knows, and {size!r} is known only to "
                "the kernel",
                op.location,
                hint="sizes that the launch knows are those of arguments, scalar arguments, and "
                "what the host computes of them",
            )
        return str(found)

    return tuple(known(size) for size in sizes)


def stride_symbols(buffer: Any) -> tuple[Int, ...]:
    """Return the strides of an argument in elements: numbers, and symbols that know divisors."""
    given, _ = ir.MemRefType(buffer.type).get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    promises = promises_of(buffer)
    return tuple(
        Sym(f"{_STRIDE}{dim}", 1, None, promises.of_stride(dim).divisors)
        if step == unknown
        else step
        for dim, step in enumerate(given)
    )
