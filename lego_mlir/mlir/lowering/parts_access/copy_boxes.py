"""Lower lego.copy_box: a slice of a tensor, as boxes of a tensor map that the host encodes.

    "lego.copy_box"(%a, %z, %y, %x, %stages, %stage, %barrier)
      {layout = #window, slice = array<i64: 3, 4, 5>, target = #stages, ...}

becomes, where the window begins at the coordinates (%z, %row, %word) of its tensor,

    %map = "lego.tensor_map"(%a) {box = array<i64: 104, 56, 1>, swizzle = 0 : i64, ...}
    nvvm.cp.async.bulk.tensor.shared.cluster.global %at, %map, %barrier, box[%word * 4, %row, %z]

TMA copies 0 for what lies outside of the tensor, which is what a window that reads zeros there
means; so the indices need no tests.

Source: PTX ISA 9.7.9.27 (cp.async.bulk.tensor), 5.5.3 (fill of what is out of bounds).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.algebra.slices import Slice
from lego_mlir.algebra.strided import buffer_shape, in_strides
from lego_mlir.analysis.instructions.slice_boxes import slice_boxes
from lego_mlir.analysis.instructions.tma_boxes import L2_PROMOTION, TensorMapBoxes
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, construct
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.emit.operations import constant, make
from lego_mlir.mlir.launch_sizes.strided import has_strides
from lego_mlir.mlir.launch_sizes.tensor_map_sizes import known_sizes, stride_symbols
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.lowering.buffers import BOX_ALIGNMENT, sources_of
from lego_mlir.mlir.lowering.parts_access.plan import bytes_of

_SHARED, _CLUSTER = 3, 7
"""Address spaces of LLVM's NVPTX back end: shared memory of the CTA, and of the cluster."""


@dataclass(frozen=True, slots=True)
class BoxCopy:
    """The copy of a slice by TMA.

    Attributes:
        map: the tensor map, with the boxes that make up the slice.
        coordinates: of the slice's first element, one for each dimension of the map.
    """

    map: TensorMapBoxes
    coordinates: tuple[Int, ...]


def box_copy(read: Slice, written: Slice, element: int) -> BoxCopy:
    """Derive the copy of a slice, whose indices are expressions, to one of shared memory.

    Args:
        read: the slice of a tensor, or of a window on it.
        written: the slice of shared memory, of as many elements along each dimension.
        element: bytes of an element.

    Raises:
        LegoError: no tensor map has such boxes.
    """
    layout = read.layout
    tensor, extents, first, order = _in_tensor(read)
    if tensor.is_partial:
        raise LegoError(
            f"TMA: '{layout}' has partial tiles",
            hint='a window that reads zeros outside, t.window(sizes, function, "zero")',
        )
    at_zero = Slice(written.layout, tuple(None if i is None else 0 for i in written.index))
    whole = [
        begin == 0 and extent == n
        for begin, extent, n in zip(first, extents, tensor.dims, strict=True)
    ]
    boxes, groups = slice_boxes(tensor, extents, whole, at_zero, order, element)
    coordinates = []
    for group in (groups[d] for d in boxes.dims):
        inner: Int = 1
        for d in group[1:]:
            inner = construct.mul(inner, tensor.dims[d])
        coordinates.append(construct.mul(first[group[0]], inner))
    return BoxCopy(boxes, tuple(coordinates))


def _in_tensor(
    read: Slice,
) -> tuple[Layout, tuple[int, ...], tuple[Any, ...], tuple[int, ...]]:
    """Return the tensor of a slice, and where the slice is in it.

    Returns:
        The tensor's layout, the slice's extent along each of its dimensions, the index of the first
        element, and for each whole dimension of the slice that of the tensor.

    Raises:
        LegoError: the slice is no box of the tensor.
    """
    layout = read.layout
    begin = tuple(0 if i is None else i for i in read.index)
    whole = [d for d, i in enumerate(read.index) if i is None]
    window = layout.window
    if window is None or layout.view is not None:
        if window is not None:
            raise LegoError(
                f"TMA copies slices of a window by its own index, and '{layout}' is a view of it",
                hint="make the window with the sizes that the kernel indexes",
            )
        extents = [1] * layout.rank
        for d in whole:
            extents[d] = int(layout.dims[d])
        return layout, tuple(extents), begin, tuple(whole)
    extents = [1] * window.base.rank
    order = []
    for d in whole:
        along = [k for k, f in enumerate(window.coordinates) if f.coefficients[d] != 0]
        if [window.coordinates[k].coefficients[d] for k in along] != [1] or extents[along[0]] > 1:
            raise LegoError(
                f"TMA copies boxes, and dimension {d} of '{window.text}' is none of its tensor's",
                hint="each dimension that is copied whole is a dimension of the tensor from "
                "somewhere on: x, or x + i - 1",
            )
        extents[along[0]] = int(window.dims[d])
        order.append(along[0])
    for boundary, inside in zip(window.boundaries, window.is_inside, strict=True):
        if boundary in ("clamp", "wrap") and not inside:
            raise LegoError(
                f"TMA copies zeros of what lies outside of a tensor: '{window.text}'",
                hint='the boundary "zero", or lg.copy_async, by which threads copy',
            )
    return window.base, tuple(extents), tuple(f.at(begin) for f in window.coordinates), tuple(order)


class BoxCopies:
    """Builds the copies of a module; equal tensor maps are made once.

    Args:
        source: the module's text, in which errors are shown.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._made: dict[Any, Any] = {}

    def build(
        self,
        op: Any,
        copy: BoxCopy,
        tensor: Layout,
        sizes: Mapping[str, Any],
        target: Any,
        offset: Int,
        print_index: Callable[[Int], Any],
    ) -> None:
        """Build the copies of a lego.copy_box at the current insertion point.

        Args:
            op: the operation.
            copy: what it copies.
            tensor: the layout of the tensor as the operation says it.
            sizes: the values of its symbols, by name.
            target: shared memory, a buffer of one dimension.
            offset: of the slice's first element there.
            print_index: builds the value of an expression.

        Raises:
            LegoError: the slice does not begin where TMA can write it.
        """
        element = bytes_of(ir.MemRefType(target.type).element_type)
        if construct.mod(construct.mul(offset, element), BOX_ALIGNMENT) != 0:
            raise LegoError(
                f"TMA writes slices at multiples of {BOX_ALIGNMENT} bytes of shared memory, which "
                f"offset {offset!r} of elements of {element} bytes is not known to be",
                hint="pad what lies before it: a window is the corner of a larger layout",
            )
        tensor_map = self._map(op, copy.map, tensor, sizes)
        i32 = ir.IntegerType.get_signless(32)
        base = make("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), target)
        distance = make("arith.index_cast", i32, print_index(construct.mul(offset, element)))
        start = make("arith.addi", i32, make("arith.index_cast", i32, base), distance)
        for box in copy.map.boxes:
            coordinates = [
                make("arith.index_cast", i32, print_index(construct.add(x, at)))
                for x, at in zip(copy.coordinates, box.at, strict=True)
            ]
            at = start
            if box.offset:
                at = make("arith.addi", i32, start, constant(i32, box.offset * element))
            nvvm.fetch_tile(_in_cluster(at), tensor_map, coordinates, op.operands[-1])

    def _map(self, op: Any, found: TensorMapBoxes, tensor: Layout, sizes: Mapping[str, Any]) -> Any:
        """Return the tensor map, which the host encodes before the kernel's launch.

        Raises:
            LegoError: a size is not known to the launch, or the tensor is no argument.
        """
        launch = op
        while launch.name != "gpu.launch":
            launch = launch.parent.operation
        (buffer,) = sources_of(op.operands[0])
        key = (launch, buffer, found.dims, found.shape, found.strides, found.box, found.swizzle)
        if key not in self._made:
            shape, strides = (
                known_sizes(n, self._source, op, sizes, buffer)
                for n in (found.shape, found.strides)
            )
            with ir.InsertionPoint(launch), op.location:
                self._made[key] = dialect.tensor_map(
                    buffer,
                    layout_attribute(tensor),
                    shape,
                    strides,
                    found.box,
                    found.swizzle,
                    L2_PROMOTION,
                )
        return self._made[key]


def in_buffer(layout: Layout, buffer: Any) -> Layout:
    """Return the layout of a tensor with the strides of its buffer, which the launch may know."""
    if not has_strides(buffer):
        return layout
    return in_strides(layout, buffer_shape(layout), stride_symbols(buffer))


def _in_cluster(at: Any) -> Any:
    """Build the pointer to the cluster's shared memory of an address in the CTA's, an i32."""
    own, whole = (ir.Type.parse(f"!llvm.ptr<{space}>") for space in (_SHARED, _CLUSTER))
    return make("llvm.addrspacecast", whole, make("llvm.inttoptr", own, at))
