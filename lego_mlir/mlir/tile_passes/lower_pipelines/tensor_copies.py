"""Copies by TMA: a tile of a tensor, as the boxes of a tensor map that the host encodes.

    "lego.copy_async"(%ring, %n, %a, %i, %j) {layout = #A, engine = "tma", slice = array<i64: 0, 1>}

becomes

    %map = "lego.tensor_map"(%a) {box = array<i64: 64, 64>, swizzle = 128 : i64, ...}
    nvvm.cp.async.bulk.tensor.shared.cluster.global %stage, %map, %full, box[%j, %i]

A lego.store of a tile in shared memory is the same in the other direction, in a group of its own.
Of a tensor that the kernel picks from several, the maps are consecutive in one parameter:

    %maps = "lego.tensor_maps"(%map_of_a, %map_of_b)
    %map = llvm.getelementptr %maps[%which]

Source: PTX ISA 9.7.9.27 (cp.async.bulk.tensor).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.algebra.sizes import ceildiv
from lego_mlir.algebra.strided import buffer_shape, in_strides
from lego_mlir.analysis.instructions.tma_boxes import L2_PROMOTION, TensorMapBoxes, tensor_map_boxes
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect.readers import L2_PROMOTION as PROMOTION
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.launch_sizes.strided import has_strides
from lego_mlir.mlir.launch_sizes.tensor_map_sizes import known_sizes, stride_symbols
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.open_sizes import sizes_of
from lego_mlir.mlir.tile_ir.operations import slice_of
from lego_mlir.mlir.tile_ir.types import bytes_of, shared_layout_in
from lego_mlir.mlir.tile_passes.lower_pipelines.addresses import by_rank
from lego_mlir.mlir.tile_passes.lower_pipelines.picked_tensors import tensors_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.pointers import (
    address,
    as_pointer,
    in_cluster,
    tensor_map_at,
)


@dataclass(frozen=True)
class TensorBoxes:
    """The tensor map of a tensor that TMA accesses, and the boxes of each tile.

    Attributes:
        buffer: the tensor.
        layout: its layout.
        boxes: the map and the boxes.
    """

    buffer: Any
    layout: Layout
    boxes: TensorMapBoxes


def boxes_of(kernel: TileKernel, access: Any, kind: Any, parts: int = 1) -> list[TensorBoxes]:
    """Return the tensor map, and the boxes of a tile in shared memory that TMA loads or stores.

    There is one for each tensor that the access may be of; the boxes are the same.

    Args:
        kernel: the kernel.
        access: a lego.copy_async or a lego.store.
        kind: the type of the tile.
        parts: CTAs that copy it together, each as many boxes.

    Raises:
        LegoError: TMA cannot copy the tile.
    """
    kind = ir.RankedTensorType(kind)
    shared = shared_layout_in(kind)
    assert shared is not None  # the verifier has seen to it
    whole = (slice(None),) * len(kind.shape)
    if kernel.target.capability < (9, 0):
        raise LegoError(
            f"{kernel.target.name} has no TMA", hint="--target=sm_90a, or another engine"
        )
    found = []
    for buffer, given in tensors_of(kernel, access).tensors:
        layout = _tiled(given, slice_of(access), tuple(kind.shape))
        if has_strides(buffer):
            strides = stride_symbols(buffer)
            layout = in_strides(layout, buffer_shape(layout), strides)
        boxes = tensor_map_boxes(layout, shared[whole], bytes_of(kind.element_type), parts)
        found.append(TensorBoxes(buffer, given, boxes))
    if len({(x.boxes.dims, x.boxes.box, x.boxes.swizzle, x.boxes.boxes) for x in found}) > 1:
        raise LegoError("the tensors that lego.pick picks from need different TMA boxes")
    return found


def load_boxes(kernel: TileKernel, copy: Any) -> list[TensorBoxes]:
    """Return the tensor map and the boxes of a lego.copy_async, as `boxes_of`."""
    return boxes_of(kernel, copy, pipelines.tile_type_of(copy.operands[0]))


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


_GROUP_BYTES = 24576
"""Bytes of boxes that are stored together, at most."""

_MASK_BITS = 16
"""The bits of the mask of CTAs to which TMA copies."""


@dataclass(frozen=True)
class Stage:
    """A stage of a ring.

    Attributes:
        buffer: the stages.
        layout: of that memory, with the stage as its first dimension.
        kind: the type of a tile.
        number: of the stage, an index.
    """

    buffer: Any
    layout: Layout
    kind: Any
    number: Any


def _plus(value: Any, shifts: Sequence[int], rank: Any) -> Any:
    """Build an i32 plus the shift of a rank."""
    if not any(shifts):
        return value
    return build.binary("addi", value, by_rank(build.i32(), shifts, rank))


def _l2_promotion(access: Any) -> int:
    """Return how many bytes a copy brings into the L2 cache at least."""
    if PROMOTION in access.attributes:
        return int(ir.IntegerAttr(access.attributes[PROMOTION]).value)
    return L2_PROMOTION


class TensorCopies:
    """The copies of a kernel by TMA; equal tensor maps are made once.

    Args:
        kernel: the kernel.
    """

    def __init__(self, kernel: TileKernel) -> None:
        self._kernel = kernel
        self._made: dict[Any, Any] = {}

    def load(self, op: Any, stage: Stage, barrier: Any) -> None:
        """Build the copies of a tile to shared memory by one thread.

        Of a multicast each CTA copies some of the boxes to all CTAs that load the tile.

        Args:
            op: the lego.copy_async.
            stage: where to.
            barrier: the pointer to the mbarrier that counts the bytes.

        Raises:
            LegoError: TMA cannot copy the tile.
        """
        _, _, _, *origin = list(op.operands)
        masks, mask = pipelines.multicast_masks(op), None
        if masks:
            bits = ir.IntegerType.get_signless(_MASK_BITS)
            mask = by_rank(bits, masks, nvvm.rank_in_cluster())
        for tensor_map, coordinates, at in self._boxes(op, stage, origin, masks):
            nvvm.fetch_tile(in_cluster(at), tensor_map, coordinates, barrier, mask)

    def store(self, op: Any, stage: Stage, pending: int = 0) -> None:
        """Build the copies of a tile to its tensor by one thread.

        A group of boxes has been read before the next one begins: TMA copies in order, so loads
        would wait for the whole of a large tile.

        Args:
            op: the lego.store.
            stage: where the tile is.
            pending: groups that may not have been read yet behind the last of these.

        Raises:
            LegoError: TMA cannot copy the tile.
        """
        _, _, *origin = list(op.operands)
        box = boxes_of(self._kernel, op, stage.kind)[0].boxes.box
        each = prod(box) * bytes_of(ir.RankedTensorType(stage.kind).element_type)
        together = max(1, _GROUP_BYTES // each)
        copies = list(self._boxes(op, stage, origin))
        for number, (tensor_map, coordinates, at) in enumerate(copies, 1):
            nvvm.store_tile(tensor_map, at, coordinates)
            is_last = number == len(copies)
            if number % together == 0 or is_last:
                nvvm.commit_stores()
                nvvm.wait_for_stores_read(pending if is_last else 0)

    def _boxes(
        self,
        op: Any,
        stage: Stage,
        origin: Sequence[Any],
        masks: Sequence[int] = (1,),
    ) -> Iterator[tuple[Any, list[Any], Any]]:
        """Yield the tensor map, the coordinates and the pointer to shared memory of each box.

        Of n CTAs of a mask the k-th one copies the boxes k, k + n, ...
        """
        parts = masks[0].bit_count() if masks else 1
        of_each = boxes_of(self._kernel, op, stage.kind, parts)
        found = of_each[0].boxes
        number = None
        if parts > 1:
            before = [(mask & (1 << k) - 1).bit_count() for k, mask in enumerate(masks)]
            number = by_rank(build.i32(), before, nvvm.rank_in_cluster())
        tensor_map = self._map_of(op, of_each)
        zeros = [build.index(0)] * (stage.layout.rank - 1)
        size = bytes_of(ir.RankedTensorType(stage.kind).element_type)
        first = [build.make("arith.index_cast", build.i32(), x) for x in origin]
        start = address(stage.buffer, stage.layout, [stage.number, *zeros])
        for k in range(0, len(found.boxes), parts):
            boxes = found.boxes[k : k + parts]
            coordinates = [
                _plus(first[dim], [box.at[d] for box in boxes], number)
                for d, dim in enumerate(found.dims)
            ]
            at = _plus(start, [box.offset * size for box in boxes], number)
            yield tensor_map, coordinates, as_pointer(at)

    def _map_of(self, op: Any, of_each: Sequence[TensorBoxes]) -> Any:
        """Build the pointer to the tensor map of an access."""
        maps = [self._map(op, found) for found in of_each]
        number = tensors_of(self._kernel, op).number
        if number is None:
            return maps[0]
        key = tuple(maps)
        if key not in self._made:
            with ir.InsertionPoint(self._kernel.launch), op.location:
                self._made[key] = dialect.tensor_maps(maps)
        return tensor_map_at(self._made[key], number)

    def _map(self, op: Any, of: TensorBoxes) -> Any:
        """Return the tensor map of a tensor, which the host encodes."""
        promotion, found = _l2_promotion(op), of.boxes
        sizes = found.shape, found.strides
        key = (of.buffer, found.dims, *sizes, found.box, found.swizzle, promotion)
        if key not in self._made:
            named = sizes_of(op, of.layout).items() if of.layout.symbols else ()
            values = {symbol.name: value for symbol, value in named}
            source = self._kernel.source
            shape, strides = (known_sizes(n, source, op, values, of.buffer) for n in sizes)
            with ir.InsertionPoint(self._kernel.launch), op.location:
                self._made[key] = dialect.tensor_map(
                    of.buffer,
                    layout_attribute(of.layout),
                    shape,
                    strides,
                    found.box,
                    found.swizzle,
                    promotion,
                )
        return self._made[key]
