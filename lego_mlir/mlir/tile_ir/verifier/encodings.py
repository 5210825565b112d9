"""Encodings of tiles: read, compared with the kernel's threads, and written in one way."""

from __future__ import annotations

from typing import Any

from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.encodings import LAYOUT_PREFIX, layout_text
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.operations import CONSTANT
from lego_mlir.mlir.tile_ir.types import is_shared_type, tile_type

_FORM = 'write tensor<8x32xf32, #lego.layout<"OrderBy(Row(warps, 32, registers))...">>'


def canonicalize_encodings(kernel: TileKernel) -> None:
    """Write the layouts of a kernel's tiles in their canonical form, in place.

    Raises:
        LegoError: an encoding is no distributed layout of its tile by the kernel's threads.
    """
    seen: dict[Any, Any] = {}
    for op in operations_in(kernel.launch):
        blocks = [block for region in op.regions for block in region.blocks]
        values = [*op.results, *(a for block in blocks for a in block.arguments)]
        for value in values:
            if isinstance(value.type, ir.RankedTensorType):
                canonical = _canonical(kernel, value.type, op, seen)
                if canonical != value.type:
                    if op.name == CONSTANT:
                        literal = str(op.attributes["value"]).removesuffix(str(value.type))
                        op.attributes["value"] = ir.Attribute.parse(f"{literal}{canonical}")
                    value.set_type(canonical)


def _canonical(kernel: TileKernel, kind: Any, op: Any, seen: dict[Any, Any]) -> Any:
    """Return a tile's type with its encoding in canonical form, in which sizes are numbers."""
    if kind not in seen:
        tile = ir.RankedTensorType(kind)
        found = kind
        if is_shared_type(kind) or str(tile.encoding).startswith(LAYOUT_PREFIX):
            encoding = kernel.layouts.with_sizes(tile.encoding, op.location)
            found = tile = ir.RankedTensorType.get(tile.shape, tile.element_type, encoding)
        if tile.encoding is not None and tile.has_static_shape and not is_shared_type(kind):
            layout = layout_in(kernel, tile, op)
            if layout.text != layout_text(tile.encoding):
                found = tile_type(tuple(tile.shape), tile.element_type, layout)
        seen[kind] = found
    return seen[kind]


def layout_in(kernel: TileKernel, kind: Any, op: Any) -> DistributedLayout:
    """Return the layout of a tile's type that has an encoding.

    Args:
        kernel: whose threads hold the tile.
        kind: the type.
        op: an operation about the tile, for errors.

    Raises:
        LegoError: the encoding is no distributed layout of this shape, or of other threads.
    """
    tile = ir.RankedTensorType(kind)
    shape = tuple(tile.shape)
    if not str(tile.encoding).startswith("#lego.layout<"):
        raise kernel.source.error(
            f"the tile {kind} has an encoding that is no layout", op.location, hint=_FORM
        )
    try:
        layout = DistributedLayout.parse(layout_text(tile.encoding), shape)
    except LegoError as e:
        raise kernel.source.error(
            f"the layout of a tile {list(shape)}: {e.message}", op.location, hint=e.hint or _FORM
        ) from None
    held = (layout.ctas, layout.warps)
    if held != (kernel.ctas, kernel.warps):
        ctas = f"{layout.ctas} CTAs of " if (layout.ctas, kernel.ctas) != (1, 1) else ""
        have = f"{kernel.ctas} CTAs of " if (layout.ctas, kernel.ctas) != (1, 1) else ""
        raise kernel.source.error(
            f"the layout of a tile {list(shape)} is by {ctas}{layout.warps} warps, the kernel has "
            f"{have}{kernel.warps}: '{layout}'",
            op.location,
            hint="give copies to the warps that are too many, as the last dimension of GroupBy, "
            "or launch as many threads as the layout has",
        )
    return layout
