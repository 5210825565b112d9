"""Layouts in buffers with strides of their own.

An access through a layout of such a buffer lies where the strides put the layout's positions. The
layout has to be of the buffer's shape, as `Row(M, N)` is of memref<?x?xf32, strided<[?, 1]>>.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.algebra.strided import buffer_shape, in_strides
from lego_mlir.index import Int
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.launch_sizes.hoist_sizes import METADATA
from lego_mlir.mlir.launch_sizes.strided import has_strides
from lego_mlir.mlir.lowering.indices.index_checks import IndexChecks
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader


class StridedBuffers:
    """The strided buffers of one module.

    Args:
        reader: reads sizes and strides.
        checks: makes facts of what is not known of them.
        source: the module's text, in which errors are shown.
    """

    def __init__(self, reader: IndexReader, checks: IndexChecks, source: Source) -> None:
        self._reader = reader
        self._checks = checks
        self._source = source

    def layout(self, op: Any, layout: Layout, buffer: Any) -> Layout:
        """Return the layout of an access with its elements where the buffer has them.

        Args:
            op: what accesses the buffer.
            layout: its layout, whose symbols have values.
            buffer: what is accessed.

        Raises:
            LegoError: the layout is not of the buffer's shape.
        """
        if not has_strides(buffer):
            return layout
        kind = ir.MemRefType(buffer.type)
        if layout.window is not None:
            raise self._source.error(
                f"'{op.name}': the window '{layout}' looks at the buffer {kind}, whose dimensions "
                "have strides",
                op.location,
                hint="windows look at dense buffers: take the strides away",
            )
        shape = buffer_shape(layout)
        sizes = zip(kind.shape, shape, strict=False)
        unknown = ir.ShapedType.get_dynamic_size()
        if len(shape) != kind.rank or any(
            isinstance(size, int) and known not in (size, unknown) for known, size in sizes
        ):
            raise self._source.error(
                f"'{op.name}': the layout '{layout}' is not of the shape of the buffer {kind}, "
                "whose dimensions have strides",
                op.location,
                hint="begin it with OrderBy(Row(...)) of the buffer's sizes",
            )
        self._checks.shape(op, buffer, shape)
        return in_strides(layout, shape, self._strides(buffer, kind))

    def _strides(self, buffer: Any, kind: Any) -> tuple[Int, ...]:
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        given, _ = kind.get_strides_and_offset()
        if unknown not in given:
            return tuple(given)
        asked = next(use.owner for use in buffer.uses if use.owner.name == METADATA)
        values = list(asked.results)[2 + kind.rank :]
        return tuple(
            self._reader.read(value) if stride == unknown else stride
            for stride, value in zip(given, values, strict=True)
        )
