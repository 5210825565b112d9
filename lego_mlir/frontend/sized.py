"""Layouts whose sizes are known only when the kernel runs, and tensors chosen among several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.frontend.dtypes import mlir_name
from lego_mlir.frontend.operators import Operand
from lego_mlir.frontend.tensors import TensorValue
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.frontend.values import Value, as_index
from lego_mlir.index import Sym, bounds, substitute
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir


@dataclass(frozen=True, slots=True)
class SizedLayout:
    """A layout with values of the kernel for its symbolic sizes. Made by `sized`.

    Attributes:
        layout: with symbols for those sizes.
        sizes: their values, in the order in which the layout's text names them.
        trace: of the kernel.
    """

    layout: Layout
    sizes: tuple[Value, ...]
    trace: Trace

    def inv(self, flat: Operand) -> tuple[Value, ...]:
        """Return the logical index at a flat offset, one value a dimension."""
        offset = as_index(flat, self.trace).ssa
        attribute = self.trace.layout(self.layout, is_bound=True)
        operands = [offset, *(size.ssa for size in self.sizes)]
        index = dialect.inv(attribute, self.layout.rank, operands, self._most(), self.trace.here())
        return tuple(Value(x, self.trace) for x in index)

    def _most(self) -> list[int]:
        """Return upper bounds of the index in each dimension, from the tables of the sizes."""
        known = _symbols_of(self.layout)
        ranges = {
            s: Sym(s.name, 1, _greatest(value.ssa))
            for s, value in zip(known, self.sizes, strict=True)
        }
        tops = [bounds(substitute(n, ranges))[1] for n in self.layout.dims]
        return [top or 0 for top in tops]


def _symbols_of(layout: Layout) -> tuple[Sym, ...]:
    """Return a layout's symbols in the order in which an operation takes their values."""
    from lego_mlir.mlir.layouts import layout_attribute, symbols_of

    return symbols_of(layout, layout_attribute(layout))


def sized(layout: Layout, **sizes: Operand) -> Layout | SizedLayout:
    """Return a layout with values for its symbolic sizes: numbers or kernel values.

        rows = lg.sized(lg.parse_layout("OrderBy(Row(M, 64))"), M=lg.table(which, [128, 72]))

    Args:
        layout: with symbolic sizes.
        sizes: a value for each of them, by name.

    Returns:
        A plain layout where all values are numbers.
    """
    trace = current("sized")
    names = {s.name for s in layout.symbols}
    if names != set(sizes):
        raise trace.error(
            f"the layout '{layout}' has the symbolic sizes {', '.join(sorted(names)) or 'none'}, "
            f"given are {', '.join(sorted(sizes)) or 'none'}"
        )
    constants = {name: _constant(x) for name, x in sizes.items()}
    bound = layout.bind(**{name: n for name, n in constants.items() if n is not None})
    if not bound.symbols:
        return bound
    left = _symbols_of(bound)
    return SizedLayout(bound, tuple(as_index(sizes[s.name], trace) for s in left), trace)


def pick(
    number: Operand, tensors: Sequence[TensorValue], layout: Layout | SizedLayout
) -> TensorValue:
    """Return one of several tensors of the same element type, chosen by an index.

    Args:
        number: an index below the number of tensors.
        tensors: in device memory.
        layout: through which the one is indexed, with its sizes.
    """
    trace = current("pick")
    kinds = {tensor.dtype for tensor in tensors}
    if len(kinds) != 1:
        raise trace.error(
            f"pick: tensors of {', '.join(sorted(kinds)) or 'no type'}",
            hint="one tensor or more, of the same element type",
        )
    buffer = tensors[0].memref
    (dtype,) = kinds
    if len(tensors) > 1:
        kind = ir.Type.parse(f"memref<?x{mlir_name(dtype)}>")
        flat = [_flat(tensor.memref, kind, trace) for tensor in tensors]
        buffer = dialect.pick(kind, as_index(number, trace).ssa, flat, trace.here())
    if isinstance(layout, SizedLayout):
        return TensorValue("picked", buffer, dtype, layout.layout, trace, layout.sizes)
    return TensorValue("picked", buffer, dtype, layout, trace)


def _flat(buffer: Any, kind: Any, trace: Trace) -> Any:
    """Return a buffer as one of one dimension of unknown size."""
    memref = ir.MemRefType(buffer.type)
    if memref.rank > 1:
        i64 = ir.IntegerType.get_signless(64)
        every = ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in range(memref.rank)])
        line = ir.MemRefType.get([prod(memref.shape)], memref.element_type)
        groups = ir.ArrayAttr.get([every])
        (buffer,) = trace.create("memref.collapse_shape", [line], [buffer], reassociation=groups)
    return trace.create("memref.cast", [kind], [buffer])[0]


def _constant(x: Any) -> int | None:
    """Return a size as a number; `None` if it is known only at run time."""
    if not isinstance(x, Value):
        return int(x)
    if isinstance(x.ssa, ir.BlockArgument) or x.ssa.owner.name != "arith.constant":
        return None
    return ir.IntegerAttr(x.ssa.owner.attributes["value"]).value  # type: ignore[no-any-return]


def _greatest(ssa: Any) -> int | None:
    """Return the greatest number of the table that a value is from; `None` if from none."""
    return max(dialect.table_values(ssa.owner)) if dialect.made_by(ssa, dialect.TABLE) else None
