"""Lower rings to stages in shared memory, mbarriers, and copies.

    "lego.acquire"(%ring, %n)
    "lego.copy_async"(%ring, %n, %a, %i, %j) {engine = "tma", ...}
    "lego.commit"(%ring, %n)

becomes, in the thread that copies,

    nvvm.mbarrier.try_wait.parity %empty_of_stage, %other_parity
    nvvm.mbarrier.arrive.expect_tx %full_of_stage, %bytes
    nvvm.cp.async.bulk.tensor.shared.cluster.global %stage, %map, %full_of_stage, box[...]

and

    %t = "lego.wait"(%ring, %n)
    "lego.release"(%ring, %n)

becomes

    nvvm.mbarrier.try_wait.parity %full_of_stage, %parity
    %t = "lego.shared_tile"(%stages, %stage)
    nvvm.mbarrier.arrive %empty_of_stage            in one lane of each warp, or warpgroup

A lego.store of the tile %t is made by TMA, which has read the stage before its release. A role that
does nothing but copy by TMA runs in one thread. It begins to store the next tiles while TMA reads
the stages of some before, and releases these late (`late_releases`):

    nvvm.cp.async.bulk.tensor.global.shared.cta %map, %stage
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group.read 1
    scf.if 0 < %n { nvvm.mbarrier.arrive %empty_of_stage_before }
 Rings that all threads of a kernel
without roles fill and read need no mbarriers (`copy_groups`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WARP_THREADS, WARPGROUP_THREADS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.modules import has_inside, operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.roles import Role
from lego_mlir.mlir.tile_ir.types import is_shared_tile
from lego_mlir.mlir.tile_passes.lower_pipelines.addresses import by_rank
from lego_mlir.mlir.tile_passes.lower_pipelines.copy_groups import CopyGroups
from lego_mlir.mlir.tile_passes.lower_pipelines.mbarriers import (
    StageBarriers,
    arrive_by_warps,
    order_lanes,
)
from lego_mlir.mlir.tile_passes.lower_pipelines.positions import Position, Positions
from lego_mlir.mlir.tile_passes.lower_pipelines.readers import is_one_thread, only_copies, stores_of
from lego_mlir.mlir.tile_passes.lower_pipelines.ring_buffers import PUT, Ring, RingMaker
from lego_mlir.mlir.tile_passes.lower_pipelines.tensor_copies import Stage, TensorCopies
from lego_mlir.mlir.tile_passes.lower_pipelines.thread_copies import ThreadCopies
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.memory import where

_DOTS = (tiles.DOT, pipelines.DOT_ASYNC)


def lower_rings(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place.

    Raises:
        LegoError: the target has no such mbarriers, or a copy cannot be made by its engine.
    """
    makers = [op for op in operations_in(kernel.launch) if op.name == pipelines.MAKE_RING]
    if makers:
        _Lowering(kernel, makers).run()


class _Lowering:
    """The lowering of the rings of one kernel."""

    def __init__(self, kernel: TileKernel, makers: list[Any]) -> None:
        self._kernel = kernel
        self._makers = makers
        self._copies = TensorCopies(kernel)
        self._thread_copies = ThreadCopies(kernel)
        self._rings: dict[Any, Ring] = {}
        self._maker = RingMaker(kernel, makers)
        of_threads = self._maker.of_threads
        # This replaces loops, and with them operands of what is in these.
        self._positions = Positions(kernel, self._numbers())
        self._doing_nothing = self._maker.doing_nothing()
        asynchronous = {ring for ring in of_threads if self._maker.engines[ring] == "cp.async"}
        self._groups = CopyGroups(self._thread_copies.accesses, of_threads, asynchronous)
        self._has_wgmma = has_inside(kernel.launch, _is_of_warpgroup)

    def _numbers(self) -> Iterator[tuple[Any, Any, int]]:
        """Yield the operations on rings, with the numbers of their tiles and the rings' stages."""
        for op in operations_in(self._kernel.launch):
            if op.name in pipelines.OF_RING:
                yield op, op.operands[1], pipelines.stages_of(op.operands[0])

    def run(self) -> None:
        """Lower the rings, then what uses them."""
        if dialect.TILE_WARPS in self._kernel.launch.attributes:
            self._bound_thread()
        for op in (each.operation for each in self._kernel.body.operations):
            if op.name == pipelines.ROLE and only_copies(op):
                op.attributes[dialect.ONE_THREAD] = ir.UnitAttr.get()
        self._rings = self._maker.make()
        self._end_stores()
        users = [op for op in operations_in(self._kernel.launch) if op.name in pipelines.OF_RING]
        for op in users:
            with ir.InsertionPoint(op), op.location:
                try:
                    self._lower(op)
                except LegoError as e:
                    if e.location is not None:
                        raise
                    raise self._kernel.source.error(e.message, op.location, hint=e.hint) from None
        for op in [*users, *self._makers]:
            op.erase()

    def _bound_thread(self) -> None:
        """Build the number of the thread in the role of the tiles, or its team, with its bound."""
        kernel = self._kernel
        bounds = dialect.bounds_attribute([kernel.warps * WARP_THREADS])
        with ir.InsertionPoint.at_block_begin(kernel.body), kernel.launch.location:
            thread = kernel.launch_thread
            if any(
                op.name == pipelines.ROLE and pipelines.role_teams(op) > 1
                for op in kernel.body.operations
            ):
                thread = build.binary("remui", thread, build.index(kernel.warps * WARP_THREADS))
            bounded = build.binary("andi", thread, thread)
            bounded.owner.attributes[dialect.BOUNDS] = bounds

    def _lower(self, op: Any) -> None:
        ring = self._rings[op.operands[0]]
        if ring.barriers is None:
            self._order_threads(op)
        at = self._positions.of(op, op.operands[1], ring.stages)
        if op.name == pipelines.COPY_ASYNC:
            self._copy(op, ring, at)
        elif ring.barriers is not None and op not in self._doing_nothing:
            self._order_roles(op, ring, ring.barriers, at)
        if op.name == pipelines.PUT:
            pipelines.store_shared(ring.tile(at), op.operands[2])
        elif op.name == pipelines.WAIT:
            for store in stores_of(op):
                self._store(store, ring.stage(at), ring.late)
            if any(True for _ in op.results[0].uses):
                op.results[0].replace_all_uses_with(ring.tile(at))

    def _copy(self, op: Any, ring: Ring, at: Position) -> None:
        memory = (ring.buffer, ring.layout, at.stage)
        match ring.engine:
            case "tma":
                with where(self._one_thread(op)):
                    barrier = cast("StageBarriers", ring.barriers).full_at(at)
                    self._copies.load(op, ring.stage(at), barrier)
            case "cp.async":
                self._thread_copies.asynchronous(op, self._role(op), *memory)
            case _:
                self._thread_copies.through_registers(op, self._role(op), *memory)

    def _order_threads(self, op: Any) -> None:
        """Lower an operation on a ring that all threads fill and read."""
        match op.name:
            case pipelines.ACQUIRE if op in self._groups.acquires:
                ir.Operation.create("gpu.barrier")
            case pipelines.COMMIT if op in self._groups.commits:
                with ir.InsertionPoint(self._groups.end_of_tile(op)):
                    nvvm.commit_copies()
            case pipelines.WAIT if (barrier := self._groups.barriers.get(op)) is not None:
                if barrier.pending is not None:
                    nvvm.wait_for_copies(barrier.pending)
                if barrier.is_of_thread:
                    return
                if self._has_wgmma:
                    nvvm.fence_async_shared()
                ir.Operation.create("gpu.barrier")

    def _order_roles(self, op: Any, ring: Ring, barriers: StageBarriers, at: Position) -> None:
        """Lower an operation on a ring between roles, or of TMA."""
        match op.name:
            case pipelines.ACQUIRE:
                barriers.wait_empty(at)
                if ring.engine == "tma":
                    with where(self._one_thread(op)):
                        barriers.expect(at, ring.expected_bytes)
            case pipelines.COMMIT if ring.engine == "cp.async":
                nvvm.arrive_after_copies(barriers.full_at(at))
            case pipelines.COMMIT if ring.engine == PUT:
                arrive_by_warps(barriers.full_at(at))
            case pipelines.COMMIT if ring.engine == "plain":
                nvvm.fence_async_shared()  # wgmma may read what threads have written
                barriers.arrive_full(at)
            case pipelines.WAIT:
                barriers.wait_full(at)
                if ring.engine == "cp.async" and self._has_wgmma:
                    nvvm.fence_async_shared()
            case pipelines.RELEASE:
                self._release(op, ring, barriers, at)

    def _end_stores(self) -> None:
        """Build the last waits of roles that release late: until TMA has read their stages."""
        late = [value for value, ring in self._rings.items() if ring.late]
        waits = [use.owner for value in late for use in value.uses]
        roles = [self._role(op).op for op in waits if op.name == pipelines.WAIT]
        for role in dict.fromkeys(roles):
            *_, end = role.regions[0].blocks[0].operations
            with ir.InsertionPoint(end), role.location:
                nvvm.wait_for_stores_read(0)

    def _store(self, op: Any, stage: Stage, pending: int) -> None:
        """Build a store of a tile by TMA; `pending` groups before may not have been read yet."""
        with ir.InsertionPoint(op), op.location, where(self._one_thread(op)):
            self._copies.store(op, stage, pending)
        op.erase()

    def _release(self, op: Any, ring: Ring, barriers: StageBarriers, at: Position) -> None:
        """Build the arrivals at the stage's barrier, when the tile has been read.

        Lane k of a warp, or of the first warp of a warpgroup, arrives at CTA k of the cluster if
        that one fills the stage.
        """
        i32, filling = build.i32(), ring.filling
        if ring.late:
            before = at.moved(ring.stages - ring.late, ring.stages)
            with where(build.compare("ult", build.index(ring.late - 1), op.operands[1])):
                nvvm.mbarrier_arrive(barriers.empty_at(before))
            return
        if is_one_thread(self._role(op)):
            for cta in range(len(filling) or 1):
                rank = build.constant(i32, cta) if filling else None
                with where(_fills(filling, rank)):
                    nvvm.mbarrier_arrive(barriers.empty_at(at, rank))
            return
        if not ring.by_groups and not filling:
            arrive_by_warps(barriers.empty_at(at))
            return
        if not ring.by_groups:
            order_lanes()
        threads = WARPGROUP_THREADS if ring.by_groups else WARP_THREADS
        thread = build.make("arith.index_cast", i32, self._kernel.launch_thread)
        lane, rank = build.binary("remui", thread, build.constant(i32, threads)), None
        if filling:
            # Not in the branch: mapa may be moved out, and takes no rank beyond the cluster's.
            rank = build.binary("remui", lane, build.constant(i32, len(filling)))
        barrier = barriers.empty_at(at, rank)
        is_one = build.compare("ult", lane, build.constant(i32, len(filling) or 1))
        with where(is_one), where(_fills(filling, rank)):
            nvvm.mbarrier_arrive(barrier)

    def _one_thread(self, op: Any) -> Any | None:
        """Build whether this is the thread of a role that copies; `None` if it is the only one."""
        role = self._role(op)
        if is_one_thread(role):
            return None
        first = build.index(role.warps.start * WARP_THREADS)
        return build.compare("eq", self._kernel.launch_thread, first)

    def _role(self, op: Any) -> Role:
        return self._thread_copies.accesses.roles.of(op)


def _is_of_warpgroup(op: Any) -> bool:
    """Return whether an operation is a dot of a tile in shared memory."""
    return op.name in _DOTS and is_shared_tile(op.operands[1])


def _fills(filling: Sequence[int], rank: Any) -> Any | None:
    """Build whether the CTA of a rank, an i32, fills a stage of this one; `None` if it does."""
    i32, most = build.i32(), (1 << len(filling)) - 1
    if all(mask == most for mask in filling):
        return None
    mask = by_rank(i32, filling, nvvm.rank_in_cluster())
    bit = build.binary("andi", build.binary("shrui", mask, rank), build.constant(i32, 1))
    return build.compare("eq", bit, build.constant(i32, 1))
