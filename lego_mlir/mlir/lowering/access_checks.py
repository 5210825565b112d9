"""Checks of the attributes and the value type of a lego.load or lego.store."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, cast

from lego_mlir.algebra import Layout
from lego_mlir.algebra.sizes import sizes_text
from lego_mlir.algebra.slices import Slice
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source

MOST_ELEMENTS = 1024
"""The greatest vector that is accessed: each of its elements may become an instruction."""


_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    dialect.LOAD: (dialect.LAYOUT, dialect.SLICE, dialect.OTHER, dialect.STREAMED),
    dialect.STORE: (dialect.LAYOUT, dialect.SLICE, dialect.EXCLUSIVE, dialect.KIND),
}
"""The attributes of accesses; those of other dialects have names with a dot."""


def check_attributes(op: Any, source: Source) -> None:
    """Check that a lego.load or lego.store has no attribute that means nothing.

    Raises:
        LegoError: it has one.
    """
    known = _ATTRIBUTES[op.name]
    for name in list(op.attributes):
        if name not in known and "." not in name:
            raise source.error(
                f"'{op.name}' has no attribute '{name}'",
                op.location,
                hint="where a tile lies in shared memory is part of its type: lego.convert it to "
                'tensor<64x64xf16, #lego.shared<"...">>'
                if name == "shared"
                else f"it has {', '.join(known)}",
            )


def whole_dimensions(
    op: Any, layout: Layout, source: Source, name: str = dialect.SLICE
) -> tuple[int, ...]:
    """Return the dimensions that an operation's `slice` names, none without that attribute.

    Args:
        op: the operation.
        layout: whose dimensions they are.
        source: the module's text, in which errors are shown.
        name: of the attribute, if it is not `slice`.

    Raises:
        LegoError: it is not an ascending list of dimensions of the layout.
    """
    if name not in op.attributes:
        return ()
    attribute = op.attributes[name]
    dims = tuple(attribute) if isinstance(attribute, ir.DenseI64ArrayAttr) else ()
    ascending = dims == tuple(sorted(set(dims)))
    if not dims or not ascending or dims[0] < 0 or dims[-1] >= layout.rank:
        raise source.error(
            f"'{op.name}': {name} is {attribute}, its layout '{layout}' has the dimensions 0 to "
            f"{layout.rank - 1}",
            op.location,
            hint="it lists the whole dimensions in order, such as array<i64: 2, 3>",
        )
    return dims


def check_value(op: Any, kind: Any, piece: Slice | None, element: Any, source: Source) -> None:
    """Check the type of the value that is loaded or stored.

    Args:
        op: the load or store.
        kind: the type of its value.
        piece: the slice it takes; `None` for one element.
        element: the type of the buffer's elements.
        source: the module's text, in which errors are shown.

    Raises:
        LegoError: the type is not that of the element or slice, or the slice is too large.
    """
    if piece is None:
        if kind != element:
            vectors = isinstance(kind, ir.VectorType) and kind.element_type == element
            raise source.error(
                f"'{op.name}' of {kind} through a buffer of {element}",
                op.location,
                hint="name the dimensions that are whole: {layout = #L, slice = array<i64: 1>}"
                if vectors
                else "convert the value before it is stored or after it is loaded",
            )
        return
    sizes = sizes_text(piece.shape)
    if not all(isinstance(n, int) for n in piece.shape):
        raise source.error(
            f"'{op.name}' of a slice of sizes {sizes}: a vector has known sizes",
            op.location,
            hint="give the symbols values in lego.sizes, or access the elements one by one",
        )
    shape = cast("tuple[int, ...]", piece.shape)
    if prod(shape) > MOST_ELEMENTS:
        raise source.error(
            f"'{op.name}' of a slice of sizes {sizes}: {prod(shape)} elements are more than the "
            f"{MOST_ELEMENTS} that one access takes",
            op.location,
            hint="take smaller tiles, or tensors instead of vectors: tiles that all threads hold",
        )
    expected = ir.VectorType.get(list(shape), element)
    if kind != expected:
        raise source.error(
            f"'{op.name}' of {kind} through a slice of type {expected}",
            op.location,
            hint="the vector has the sizes of the whole dimensions and the buffer's elements",
        )


def other_attribute(op: Any, element: Any, source: Source) -> Any:
    """Return the attribute `other`, the value where there is no element; `None` without it.

    Raises:
        LegoError: it does not have the element's type.
    """
    if dialect.OTHER not in op.attributes:
        return None
    attribute = op.attributes[dialect.OTHER]
    if getattr(attribute, "type", None) != element:
        raise source.error(
            f"'{op.name}': other is {attribute}, the buffer's elements are {element}",
            op.location,
            hint="write its type along: other = 1.0 : f32",
        )
    return attribute
