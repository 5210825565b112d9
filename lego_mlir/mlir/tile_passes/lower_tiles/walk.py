"""The walk over a kernel: each operation on tiles becomes what its threads do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.analysis.distributed.slices import slice_registers
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.dialect.pipeline_operations import role_teams, role_warps
from lego_mlir.mlir.tile_ir.dots import is_warpgroup_dot
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.operations import CONSTANT, is_pointwise
from lego_mlir.mlir.tile_ir.types import (
    bytes_of,
    element_of,
    has_tiles,
    is_shared_tile,
    is_tile,
    shape_of,
    shared_layout_of,
)
from lego_mlir.mlir.tile_passes.lower_tiles import memory, sources, views
from lego_mlir.mlir.tile_passes.lower_tiles.combining import (
    by_kind,
    by_region,
    reduce_scatter,
    reduce_tiles,
    scan_tiles,
    sort_tiles,
)
from lego_mlir.mlir.tile_passes.lower_tiles.control_flow import CONTROL_FLOW, lower_control_flow
from lego_mlir.mlir.tile_passes.lower_tiles.conversions import convert
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.shared_copies import copy_shared
from lego_mlir.mlir.tile_passes.lower_tiles.dots import (
    lower_dot,
    lower_dot_wait,
    lower_warpgroup_dot,
)
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import Fragment
from lego_mlir.mlir.tile_passes.lower_tiles.gathers import lower_gather, lower_scatter
from lego_mlir.mlir.tile_passes.lower_tiles.pointwise import lower_pointwise
from lego_mlir.mlir.tile_passes.lower_tiles.sector_stores import (
    MovedRows,
    moved_rows,
    store_moved,
)
from lego_mlir.mlir.tile_passes.lower_tiles.shared_tiles import (
    SharedTile,
    load_shared,
    store_in,
    store_shared,
)
from lego_mlir.mlir.tile_passes.lower_tiles.takes import take
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads
from lego_mlir.mlir.tile_passes.lower_tiles.votes import lower_vote


def lower_tiles(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place.

    Raises:
        LegoError: at the operation that cannot be lowered.
    """
    _Walk(kernel).run()


class _Walk:
    """The lowering of one kernel.

    Attributes:
        threads: those of the kernel.
        fragments: of each tile so far.
        shared: the tiles in shared memory so far.
        moved: the results of conversions that their stores make, and how these store rows.
        in_flight: buffers in shared memory that asynchronous dots so far read.
        dead: operations to erase, in the order of the kernel: what uses a value comes behind what
            defines it, and what is inside of an operation behind it.
    """

    def __init__(self, kernel: TileKernel) -> None:
        self.kernel = kernel
        self.threads = Threads(kernel)
        self.fragments: dict[Any, Fragment] = {}
        self.shared: dict[Any, SharedTile] = {}
        self.moved: dict[Any, MovedRows] = {}
        self.in_flight: list[Any] = []
        self.dead: list[Any] = []

    def run(self) -> None:
        self.lower_block(self.kernel.body)
        with self.kernel.launch.location:
            self.threads.exchanges.finish()
        for op in reversed(self.dead):
            op.erase()

    def lower_block(self, block: Any) -> None:
        """Lower the operations of a block, as they are now."""
        for op in [o.operation for o in block.operations]:
            with ir.InsertionPoint(op), op.location:
                try:
                    self._lower(op)
                except LegoError as e:
                    if e.location is not None:
                        raise
                    raise self.kernel.source.error(e.message, op.location, hint=e.hint) from None

    def _lower(self, op: Any) -> None:
        """Lower an operation, or what is inside of it."""
        name, is_on_tiles = op.name, has_tiles(op)
        if name in _ONCE and not is_on_tiles:
            memory.lower_once(op, self.threads)
            self.dead.append(op)
        elif name in _TERMINATORS:
            return  # with its loop or branch
        elif name in CONTROL_FLOW and is_on_tiles:
            lower_control_flow(op, self)
        elif is_on_tiles:
            self._lower_tiles(op)
            self.dead.append(op)
        elif name == dialect.ROLE and not self._holds_tiles(op):
            outer, self.threads = self.threads, Threads(self.kernel, op)
            self.lower_block(op.regions[0].blocks[0])
            self.threads = outer
        else:
            for region in op.regions:
                for block in region.blocks:
                    self.lower_block(block)

    def _holds_tiles(self, role: Any) -> bool:
        """Return whether the warps of a role, or of its teams, are those that hold the tiles."""
        return bool(role_warps(role) == range(self.kernel.warps * role_teams(role)))

    def _lower_tiles(self, op: Any) -> None:
        """Build what an operation on tiles becomes."""
        operands = [self.fragments.get(x, self.shared.get(x, x)) for x in op.operands]
        results = [r for r in op.results if is_tile(r)]
        if any(map(is_shared_tile, results)):
            self.shared[results[0]] = self._shared_value(op, operands)
            return
        layouts = [self.threads.layout(r) for r in results]
        found: list[Fragment] = []
        match op.name:
            case dialect.STORE if op.operands[0] in self.moved:
                store_moved(op, operands[0], self.moved[op.operands[0]], self.threads)
            case dialect.STORE:
                mask = self._mask(op.operands[0])
                memory.lower_store(op, operands[0], mask, self.threads)
            case dialect.STORE_SHARED:
                to, source = map(shared_layout_of, op.operands)
                assert to is not None  # the verifier has seen to it
                if source is not None:
                    copy_shared(operands[0], to, operands[1], source, self.threads)
                else:
                    store_in(operands[0], to, operands[1], self.threads)
            case tiles.SCATTER:
                tile, *indices = (operands[k] for k, x in enumerate(op.operands) if is_tile(x))
                masks = self._masks(tile for tile in op.operands if is_tile(tile))
                lower_scatter(op, tile, indices, masks, self.threads)
            case tiles.ITEM:
                op.results[0].replace_all_uses_with(operands[0].elements()[0])
            case tiles.VOTE:
                op.results[0].replace_all_uses_with(lower_vote(op, self.fragments))
            case tiles.SPLIT:
                found = views.split(operands[0], layouts)
            case tiles.REDUCE | tiles.REDUCE_WITH | tiles.SCAN | tiles.SCAN_WITH:
                found = self._combine(op, operands)
            case tiles.SORT_WITH:
                before = by_region(op.regions[0].blocks[0])
                found = sort_tiles(operands, tiles.dim_of(op), before, self.threads)
            case _:
                (layout,) = layouts
                found = [self._value(op, operands, layout)]
        self.fragments.update(zip(results, found, strict=True))

    def _shared_value(self, op: Any, operands: list[Any]) -> SharedTile:
        """Build the result of an operation that is a tile in shared memory."""
        match op.name:
            case dialect.SHARED_TILE:
                layout = self.kernel.layouts.of(op)
                return SharedTile(operands[0], layout, (operands[1],), element_of(op.results[0]))
            case tiles.TRANSPOSE:
                return operands[0].transposed(tiles.order_of(op))  # type: ignore[no-any-return]
            case tiles.RESHAPE:
                return operands[0].reshaped(shape_of(op.results[0]))  # type: ignore[no-any-return]
            case tiles.CONVERT:
                to = shared_layout_of(op.results[0])
                assert to is not None  # the caller has seen to it
                return store_shared(operands[0], to, self.threads)
        raise LegoError(f"'{op.name}' makes no tile in shared memory")

    def _value(self, op: Any, operands: list[Any], layout: DistributedLayout) -> Fragment:
        """Build the result of an operation that has one, in its layout."""
        threads = self.threads
        match op.name:
            case dialect.LOAD:
                return memory.lower_load(op, layout, threads)
            case tiles.GATHER:
                masks = self._masks(tile for tile in op.operands if is_tile(tile))
                indices = [operands[k] for k, x in enumerate(op.operands) if is_tile(x)]
                return lower_gather(op, indices, masks, layout)
            case _ if op.name == CONSTANT:
                return sources.lower_constant(op, layout)
            case tiles.FULL:
                return sources.lower_full(operands[0], layout)
            case tiles.IOTA:
                return sources.lower_iota(op, layout, threads)
            case tiles.IN_RANGE:
                return sources.lower_in_range(op, operands[0], layout, threads)
            case tiles.RESTRICT:
                return operands[0]  # type: ignore[no-any-return]
            case tiles.BROADCAST:
                return views.broadcast(operands[0], layout)
            case tiles.RESHAPE | tiles.TRANSPOSE:
                return operands[0].renamed(layout)  # type: ignore[no-any-return]
            case tiles.JOIN:
                return views.join(operands, layout)
            case tiles.CONVERT if isinstance(operands[0], SharedTile):
                return load_shared(operands[0], layout, threads)
            case tiles.CONVERT:
                if (rows := moved_rows(op, threads)) is not None:  # the store converts it
                    self.moved[op.results[0]] = rows
                    return operands[0]  # type: ignore[no-any-return]
                return convert(operands[0], layout, threads)
            case tiles.EXTRACT_SLICE if isinstance(operands[0], Fragment):
                registers = slice_registers(operands[0].layout, layout, tiles.offsets_of(op))
                assert registers is not None  # the verifier has seen to it
                return operands[0].picked(layout, registers)
            case tiles.EXTRACT_SLICE:
                return load_shared(operands[0], layout, threads, tiles.offsets_of(op))
            case tiles.REDUCE_SCATTER:
                combine = by_kind(tiles.kind_of(op), element_of(op.operands[0]))
                return reduce_scatter(operands[0], layout, combine, threads)
            case tiles.EXTRACT_PART:
                return views.extract_part(operands[0], layout, operands[1])
            case tiles.TAKE:
                tile, indices = operands
                return take(tile, indices, tiles.dim_of(op), threads)
            case tiles.DOT if not is_warpgroup_dot(op):
                return lower_dot(self.kernel, op, operands)
            case tiles.DOT:
                return lower_warpgroup_dot(op, operands, threads, 0)
            case dialect.DOT_ASYNC:
                self.in_flight += [x.buffer for x in operands if isinstance(x, SharedTile)]
                return lower_warpgroup_dot(op, operands, threads, None)
            case dialect.DOT_WAIT:
                found = lower_dot_wait(op, operands[0], self._read_until(op))
                tiles.end_reads(list(dict.fromkeys(self.in_flight)))
                return found
            case _ if is_pointwise(op):
                return lower_pointwise(op, operands)
        raise LegoError(f"'{op.name}' is no operation on tiles")

    def _read_until(self, wait: Any) -> Fragment | None:
        """Return operand A of the dot that a lego.dot_wait is for, if a loop carries it.

        Only of 8-bit elements, which are packed in two steps: of wider ones LLVM writes the next
        operand behind the wait by itself, with other registers than this would give.
        """
        if not dialect.made_by(wait.operands[0], dialect.DOT_ASYNC):
            return None
        tile = wait.operands[0].owner.operands[0]
        is_carried = isinstance(tile, ir.BlockArgument) and bytes_of(element_of(tile)) == 1
        return self.fragments.get(tile) if is_carried else None

    def _combine(self, op: Any, operands: list[Fragment]) -> list[Fragment]:
        """Build a reduction or a scan."""
        dim = tiles.dim_of(op)
        if op.name in (tiles.REDUCE, tiles.SCAN):
            combine = by_kind(tiles.kind_of(op), element_of(op.operands[0]))
        else:
            combine = by_region(op.regions[0].blocks[0])
        if op.name in (tiles.REDUCE, tiles.REDUCE_WITH):
            return reduce_tiles(operands, dim, combine, self.threads, self._shorter(op))
        reverse = tiles.is_reverse(op)
        return scan_tiles(operands, dim, combine, self.threads, is_reverse=reverse)

    def _shorter(self, op: Any) -> Fragment | None:
        """Return what the greatest or smallest of may be taken before it is extended, if any."""
        tile = op.operands[0]
        if op.name != tiles.REDUCE or tiles.kind_of(op) not in ("max", "min"):
            return None
        if not dialect.made_by(tile, "arith.extf"):
            return None
        source = tile.owner.operands[0]
        return self.fragments[source] if bytes_of(element_of(source)) == 2 else None

    def _masks(self, tiles: Iterable[Any]) -> list[Fragment]:
        """Return which elements are valid, of those tiles that do not have all."""
        masks = [self._mask(tile) for tile in tiles]
        return [mask for mask in masks if mask is not None]

    def _mask(self, tile: Any) -> Fragment | None:
        """Return which elements of a tile that is stored are valid; `None` for all.

        A `lego.restrict` says so; a conversion between it and the store converts the mask, too.
        """
        if dialect.made_by(tile, tiles.RESTRICT):
            return self.fragments[tile.owner.operands[1]]
        if dialect.made_by(tile, tiles.CONVERT):
            mask = self._mask(tile.owner.operands[0])
            return None if mask is None else convert(mask, self.threads.layout(tile), self.threads)
        return None


_ONCE = (dialect.STORE, dialect.ATOMIC, "gpu.printf")
"""What one thread of a CTA does for all."""

_TERMINATORS = ("scf.yield", "scf.condition", "gpu.terminator", "gpu.yield")
