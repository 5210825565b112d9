"""Types and attributes of the operations on pipelines, and of tiles in shared memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from lego_mlir.analysis.distributed.slices import slice_of_cta
from lego_mlir.analysis.shared_tiles import reshaped_tile, transposed_tile
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.types import (
    is_shared_tile,
    is_shared_type,
    is_tile,
    layout_of,
    shape_of,
    shared_layout_in,
    shared_layout_of,
)
from lego_mlir.mlir.tile_ir.verifier.checked import Checked
from lego_mlir.mlir.tile_ir.verifier.shapes import check_access, check_dot

_OF_SHARED = (
    dialect.STORE,
    tiles.CONVERT,
    tiles.EXTRACT_SLICE,
    tiles.RESHAPE,
    tiles.TRANSPOSE,
    tiles.DOT,
    pipelines.DOT_ASYNC,
    pipelines.PUT,
    pipelines.WAIT,
    pipelines.SHARED_TILE,
)
"""The operations that have tiles in shared memory among their operands and results."""

DOTS = (tiles.DOT, pipelines.DOT_ASYNC)
"""The operations that multiply tiles."""


# Tiles in shared memory.
def check_shared_type(kernel: TileKernel, kind: Any, op: Any) -> None:
    """Check the encoding of a tile in shared memory.

    Where the CTAs of a cluster hold tiles together, each has a slice of the tile there.

    Raises:
        LegoError: it is no bijective layout of the tile's shape, or of that of a slice.
    """
    try:
        layout = shared_layout_in(kind)
    except LegoError as e:
        raise kernel.source.error(
            f"the layout of a tile in shared memory, {kind}: {e.message}", op.location, hint=e.hint
        ) from None
    assert layout is not None
    shape = tuple(ir.RankedTensorType(kind).shape)
    if layout.symbols or not _has_slices(shape, layout.dims, kernel.ctas) or layout.is_partial:
        raise kernel.source.error(
            f"a tile {list(shape)} in shared memory has the layout '{layout}' of "
            f"{list(layout.dims)}",
            op.location,
            hint="it maps the index of each element, and no more, to the element's offset",
        )
    kernel.layouts.verified(layout, op.location)


def _has_slices(shape: Sequence[int], dims: Sequence[Any], ctas: int) -> bool:
    """Return whether so many slices with these sizes make a tile."""
    if len(dims) != len(shape) or any(n % int(d) for n, d in zip(shape, dims, strict=True)):
        return False
    return prod(shape) == ctas * prod(map(int, dims))


def check_shared_tiles(c: Checked) -> None:
    """Check that an operation may have the tiles in shared memory that it has."""
    op = c.op
    operands = [k for k, x in enumerate(op.operands) if is_shared_tile(x)]
    results = [x for x in op.results if is_shared_tile(x)]
    c.require(
        op.name in _OF_SHARED,
        lambda: "of a tile in shared memory",
        "lego.convert takes it to registers; dots and transposes take it as it is",
    )
    match op.name:
        case tiles.CONVERT:
            c.require(
                not (operands and results),
                lambda: "from shared memory to shared memory",
                "convert the tile to registers first",
            )
            _check_slices(c)
        case tiles.RESHAPE | tiles.TRANSPOSE:
            _check_view(c)
        case dialect.STORE:
            c.require(
                dialect.made_by(op.operands[0], pipelines.WAIT),
                lambda: f"of a tile in shared memory that no {pipelines.WAIT} has returned",
                "TMA stores the tiles of rings; convert another one to registers",
            )
        case _ if op.name in DOTS:
            c.require(
                2 not in operands and not results,
                lambda: "has an accumulator in shared memory",
                "accumulators are in registers",
            )


def _check_slices(c: Checked) -> None:
    """Check that each CTA reads its own slice of a tile in shared memory."""
    (source,), (result,) = c.op.operands, c.op.results
    memory, registers = shared_layout_of(source), layout_of(result) if is_tile(result) else None
    if memory is None or registers is None:
        return
    own = slice_of_cta(registers)
    c.require(
        own is not None and own.shape == tuple(memory.dims),
        lambda: "reads elements that other CTAs of the cluster have in shared memory",
        "each CTA has a slice, and reads that",
    )


def _check_view(c: Checked) -> None:
    """Check that a reshaped or transposed tile in shared memory is the same memory."""
    before, after = shared_layout_of(c.op.operands[0]), shared_layout_of(c.op.results[0])
    if before is None or after is None:
        c.fail("between shared memory and registers", "convert the tile with lego.convert")
    if c.op.name == tiles.RESHAPE:
        wanted = reshaped_tile(before, shape_of(c.op.results[0]))
    else:
        wanted = transposed_tile(before, tuple(tiles.order_of(c.op)))
    c.require(
        after == wanted,
        lambda: f"to the layout '{after}'",
        f"the elements stay where they are: it is '{wanted}'",
    )


# Rings.
def _of_ring(c: Checked) -> Any:
    ring = c.op.operands[0]
    c.require(
        dialect.made_by(ring, pipelines.MAKE_RING),
        lambda: f"of a ring that is not directly the result of a {pipelines.MAKE_RING}",
    )
    return ring


def _ring(c: Checked) -> None:
    (ring,) = c.op.results
    kind = pipelines.tile_type_of(ring)
    stages = pipelines.stages_of(ring)
    c.require(stages >= 1, lambda: f"of {stages} stages", "a ring has one stage or more")
    c.require(
        is_shared_type(kind),
        lambda: f"of {kind}",
        'its tiles are in shared memory: tensor<64x64xf16, #lego.shared<"OrderBy(...)">>',
    )


def _number(c: Checked) -> None:
    _of_ring(c)


def _copy(c: Checked) -> None:
    ring, _, buffer, *origin = list(c.op.operands)
    _of_ring(c)
    engine = c.attribute("engine", ir.StringAttr, '"tma"').value
    c.require(
        engine in pipelines.ENGINES,
        lambda: f"by '{engine}'",
        f"the engines are {', '.join(pipelines.ENGINES)}",
    )
    check_access(c, pipelines.tile_type_of(ring), buffer, origin)


def _put(c: Checked) -> None:
    kind = ir.RankedTensorType(pipelines.tile_type_of(_of_ring(c)))
    tile = c.op.operands[2]
    found = ir.RankedTensorType(tile.type)
    c.require(
        list(found.shape) == list(kind.shape) and found.element_type == kind.element_type,
        lambda: f"of {found}, the ring has {kind}",
        "the tile has the shape and the elements of the ring's tiles",
    )


def _wait(c: Checked) -> None:
    kind = pipelines.tile_type_of(_of_ring(c))
    found = c.op.results[0].type
    c.require(found == kind, lambda: f"has the tile {found}, the ring has {kind}")


# Asynchronous dots.
def _dot_wait(c: Checked) -> None:
    pending = c.attribute("pending", ir.IntegerAttr, "0 : i64").value
    c.require(pending >= 0, lambda: f"leaves {pending} groups pending")
    before, after = c.op.operands[0], c.op.results[0]
    c.require(before.type == after.type, lambda: f"of {before.type} has the result {after.type}")


def _turn(c: Checked) -> None:
    groups = c.attribute("groups", ir.IntegerAttr, "2 : i64").value
    c.require(groups >= 2, lambda: f"of {groups} warpgroups", "two or more take turns")


def _role(c: Checked) -> None:
    for name, example in (("first_warp", "0 : i64"), ("warps", "4 : i64")):
        c.attribute(name, ir.IntegerAttr, example)
    blocks = list(c.op.regions[0].blocks)
    end = list(blocks[0].operations)[-1].operation if blocks and len(blocks[0].operations) else None
    c.require(
        len(blocks) == 1 and end is not None and end.name == "gpu.yield" and not list(end.operands),
        lambda: "has no region of one block that ends in a gpu.yield",
    )
    registers = pipelines.role_registers(c.op)
    c.require(
        registers is None or (registers % 8 == 0 and 24 <= registers <= 256),
        lambda: f"of {registers} registers a thread",
        "setmaxnreg takes multiples of 8 from 24 to 256 (PTX ISA 9.7.19.5)",
    )


CHECKS: Mapping[str, Callable[[Checked], None]] = {
    pipelines.MAKE_RING: _ring,
    pipelines.ACQUIRE: _number,
    pipelines.COPY_ASYNC: _copy,
    pipelines.PUT: _put,
    pipelines.COMMIT: _number,
    pipelines.WAIT: _wait,
    pipelines.RELEASE: _number,
    pipelines.ROLE: _role,
    pipelines.DOT_ASYNC: check_dot,
    pipelines.DOT_WAIT: _dot_wait,
    pipelines.TURN_BEGIN: _turn,
    pipelines.TURN_END: _turn,
}
"""By the operation's name."""
