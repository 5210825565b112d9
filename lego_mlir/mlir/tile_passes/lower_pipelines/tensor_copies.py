"""Copies by TMA: a tile of a tensor, as the boxes of a tensor map that the host encodes.

    "lego.copy_async"(%ring, %n, %a, %i, %j) {layout = #A, engine = "tma", slice = array<i64: 0, 1>}

becomes

    %map = "lego.tensor_map"(%a) {box = array<i64: 64, 64>, swizzle = 128 : i64, ...}
    nvvm.cp.async.bulk.tensor.shared.cluster.global %stage, %map, %full, box[%j, %i]

Source: PTX ISA 9.7.9.27 (cp.async.bulk.tensor).
"""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.algebra.sizes import ceildiv
from lego_mlir.algebra.strided import buffer_shape, in_strides
from lego_mlir.analysis.instructions.tma_boxes import TensorMapBoxes, tensor_map_boxes
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import CACHE_LINE_BYTES
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.launch_sizes.strided import has_strides
from lego_mlir.mlir.launch_sizes.tensor_map_sizes import known_sizes, stride_symbols
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.open_sizes import sizes_of
from lego_mlir.mlir.tile_ir.operations import slice_of
from lego_mlir.mlir.tile_ir.types import bytes_of, shared_layout_in
from lego_mlir.mlir.tile_passes.lower_pipelines.addresses import address, as_pointer, in_cluster
from lego_mlir.mlir.tile_passes.lower_pipelines.mbarriers import Position
from lego_mlir.mlir.tile_passes.lower_tiles import build


def boxes_of(kernel: TileKernel, copy: Any) -> TensorMapBoxes:
    """Return the tensor map and the boxes of a lego.copy_async.

    Raises:
        LegoError: TMA cannot copy the tile.
    """
    kind = ir.RankedTensorType(pipelines.tile_type_of(copy.operands[0]))
    shared = shared_layout_in(kind)
    assert shared is not None  # the verifier has seen to it
    layout = _tiled(kernel.layouts.of(copy), slice_of(copy), tuple(kind.shape))
    buffer = copy.operands[2]
    if has_strides(buffer):
        strides = stride_symbols(buffer)
        layout = in_strides(layout, buffer_shape(layout), strides)
    whole = (slice(None),) * len(kind.shape)
    if kernel.target.capability < (9, 0):
        raise LegoError(
            f"{kernel.target.name} has no TMA", hint="--target=sm_90a, or another engine"
        )
    return tensor_map_boxes(layout, shared[whole], bytes_of(kind.element_type))


def _tiled(layout: Layout, dims: tuple[int, ...], shape: tuple[int, ...]) -> Layout:
    """Return a tensor's layout as a grid of tiles.

    Raises:
        LegoError: the layout's dimensions are not the tensor's.
    """
    if layout.view is not None or tuple(layout.dims) != tuple(layout.tensor_shape):
        raise LegoError(
            f"TMA copies tiles of a tensor, and '{layout}' views it by other dimensions",
            hint="load from the tensor's own layout",
        )
    if list(dims) != sorted(dims):
        raise LegoError(f"TMA keeps the order of dimensions, and the slice has {list(dims)}")
    tile = dict(zip(dims, shape, strict=True))
    sizes = [tile.get(d, 1) for d in range(layout.rank)]
    counts = [ceildiv(n, size) for n, size in zip(layout.dims, sizes, strict=True)]
    return layout.TileBy(counts, sizes)


class TensorCopies:
    """The copies of a kernel by TMA; equal tensor maps are made once.

    Args:
        kernel: the kernel.
    """

    def __init__(self, kernel: TileKernel) -> None:
        self._kernel = kernel
        self._made: dict[Any, Any] = {}

    def copy(self, op: Any, buffer: Any, layout: Layout, at: Position, barrier: Any) -> None:
        """Build the copies of a tile by one thread.

        Args:
            op: the lego.copy_async.
            buffer: the stages of its ring.
            layout: of that memory, with the stage as its first dimension.
            at: the tile's position.
            barrier: the pointer to the mbarrier that counts the bytes.

        Raises:
            LegoError: TMA cannot copy the tile.
        """
        found = boxes_of(self._kernel, op)
        tensor_map = self._map(op, found)
        rank = layout.rank - 1
        zero = build.index(0)
        size = bytes_of(ir.MemRefType(buffer.type).element_type)
        origin = [build.make("arith.index_cast", build.i32(), x) for x in list(op.operands)[3:]]
        for box in found.boxes:
            start = address(buffer, layout, [at.stage, *[zero] * rank], box.offset * size)
            coordinates = [
                build.binary("addi", origin[dim], build.constant(build.i32(), shift))
                if shift
                else origin[dim]
                for dim, shift in zip(found.dims, box.at, strict=True)
            ]
            nvvm.fetch_tile(in_cluster(as_pointer(start)), tensor_map, coordinates, barrier)

    def _map(self, op: Any, found: TensorMapBoxes) -> Any:
        tensor = op.operands[2]
        key = (tensor, found.dims, found.shape, found.strides, found.box, found.swizzle)
        if key not in self._made:
            layout = self._kernel.layouts.of(op)
            promotion = found.l2_promotion
            if found.has_neighbors:  # the next box of the tile reads what lies beside this one
                promotion = min(promotion, CACHE_LINE_BYTES)
            values = {symbol.name: value for symbol, value in sizes_of(op, layout).items()}
            shape, strides = (
                known_sizes(sizes, self._kernel.source, op, values, tensor)
                for sizes in (found.shape, found.strides)
            )
            with ir.InsertionPoint(self._kernel.launch), op.location:
                self._made[key] = dialect.tensor_map(
                    tensor,
                    layout_attribute(layout),
                    shape,
                    strides,
                    found.box,
                    found.swizzle,
                    promotion,
                )
        return self._made[key]
