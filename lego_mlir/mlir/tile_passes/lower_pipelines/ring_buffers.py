"""What rings become: stages in shared memory, and mbarriers that one thread initializes.

    %ring = "lego.make_ring"() : () -> !lego.ring<2 : i64, tensor<64x64xf16, #S>>

becomes

    %stages = "lego.alloc"() {layout = two of #S, ...}
    %full = "lego.alloc"() {layout = #lego.layout<"OrderBy(Row(2))">, ...}      %empty alike
    scf.if %is_first_thread {
      nvvm.mbarrier.init of each barrier
    }
    gpu.barrier                        or one of the cluster, if its CTAs copy to one another
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from math import prod
from operator import or_
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, RegP, Row
from lego_mlir.algebra.multibuffer import multibuffered
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.roles import role_around, role_of
from lego_mlir.mlir.tile_ir.types import bytes_of, shared_layout_in
from lego_mlir.mlir.tile_passes.lower_pipelines.addresses import allocate_guarded, by_rank
from lego_mlir.mlir.tile_passes.lower_pipelines.joint_rings import doing_nothing, joint_rings
from lego_mlir.mlir.tile_passes.lower_pipelines.mbarriers import StageBarriers
from lego_mlir.mlir.tile_passes.lower_pipelines.positions import Position
from lego_mlir.mlir.tile_passes.lower_pipelines.readers import (
    arrivals,
    is_read_by_groups,
    late_releases,
)
from lego_mlir.mlir.tile_passes.lower_pipelines.tensor_copies import Stage
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.memory import where

PUT = "put"
"""The engine of rings whose tiles come from registers."""

_ALIGNMENT = 1024
"""Bytes: what the widest swizzle asks of a tile that TMA writes."""

_CAPABILITY = (9, 0)


@dataclass(frozen=True)
class Ring:
    """What a ring becomes.

    Attributes:
        stages: how many tiles it holds.
        kind: their type.
        layout: of the memory: the stage, then the tile's dimensions.
        buffer: the memory.
        barriers: those of its stages; `None` if the CTA's barrier orders them.
        engine: what copies; "put" of tiles that come from registers.
        filling: for each rank the mask of the CTAs that fill its stages by multicast; none if each
            CTA fills its own.
        by_groups: whether only dots by `wgmma` read its tiles, each with a warpgroup.
        expected_bytes: what completes a stage that TMA fills, with rings that share its barriers.
        late: how many tiles are begun to be stored before the stage of one is released.
    """

    stages: int
    kind: Any
    layout: Layout
    buffer: Any
    barriers: StageBarriers | None
    engine: str
    filling: tuple[int, ...]
    by_groups: bool
    expected_bytes: int
    late: int

    def stage(self, at: Position) -> Stage:
        """Return the stage of a tile."""
        return Stage(self.buffer, self.layout, self.kind, at.stage)

    def tile(self, at: Position) -> Any:
        """Build the tile in a stage."""
        layout = layout_attribute(self.layout)
        return pipelines.shared_tile(self.kind, self.buffer, at.stage, layout)


def _row_by_row(layout: Layout, stages: int) -> Layout:
    """Return the layout of stages of a tile of two dimensions, of which each row has all stages.

    From one stage to the next there is a row, mostly a power of two, however many rows there are.
    """
    return OrderBy(RegP([stages, *layout.dims], [1, 0, 2]))


class RingMaker:
    """Makes the rings of one kernel.

    Args:
        kernel: the kernel.
        makers: its lego.make_ring operations.

    Attributes:
        engines: what copies the tiles of each ring.
        of_threads: the rings that all threads of a kernel without roles fill and read.

    Raises:
        LegoError: several engines copy the tiles of a ring.
    """

    def __init__(self, kernel: TileKernel, makers: list[Any]) -> None:
        self._kernel = kernel
        self._makers = makers
        self._uses = {
            maker.results[0]: [use.owner.operation for use in maker.results[0].uses]
            for maker in makers
        }
        self.engines = {maker.results[0]: self._engine(maker) for maker in makers}
        self.of_threads = {ring for ring in self._uses if self._is_of_threads(ring)}
        by_tma = [ring for ring, engine in self.engines.items() if engine == "tma"]
        groups = [
            group
            for by_groups in (True, False)
            for group in joint_rings(r for r in by_tma if self._by_groups(r) == by_groups)
        ]
        self._groups = {ring: group for group in groups for ring in group}

    def doing_nothing(self) -> set[Any]:
        """Return the operations that become part of one on a ring with the same barriers."""
        groups = {id(group): group for group in self._groups.values()}.values()
        return {op for group in groups for op in doing_nothing(group)}

    def make(self) -> dict[Any, Ring]:
        """Build the memory and the initialized barriers of each ring.

        Raises:
            LegoError: the target has no such mbarriers.
        """
        rings: dict[Any, Ring] = {}
        for maker in self._makers:
            with ir.InsertionPoint(maker), maker.location:
                rings[maker.results[0]] = self._make(maker, rings)
        last = self._makers[-1]
        if len(self.of_threads) < len(rings):
            with ir.InsertionPoint(last), last.location:
                self._initialize(rings)
        return rings

    def _make(self, maker: Any, made: Mapping[Any, Ring]) -> Ring:
        """Build the memory of a ring, and its barriers unless a ring that is made has them."""
        (ring,) = maker.results
        kind = pipelines.tile_type_of(ring)
        shared = shared_layout_in(kind)
        assert shared is not None  # the verifier has seen to it
        stages = pipelines.stages_of(ring)
        element, is_of_threads = ir.RankedTensorType(kind).element_type, ring in self.of_threads
        by_rows = is_of_threads and shared == OrderBy(Row(*shared.dims)) and shared.rank == 2
        layout = _row_by_row(shared, stages) if by_rows else multibuffered(shared, stages)
        by = dialect.ORDERED if is_of_threads else dialect.GUARDED
        buffer = allocate_guarded(layout, element, _ALIGNMENT, by)
        barriers, group = None, self._groups.get(ring, [ring])
        if group[0] in made:
            barriers = made[group[0]].barriers
        elif not is_of_threads:
            self._check_mbarriers(maker)
            barriers = StageBarriers.make(stages)
        copies = [op for each in group for op in self._users(each, pipelines.COPY_ASYNC)]
        waits = self._users(ring, pipelines.WAIT)
        is_put = self.engines[ring] == PUT
        masks = [m for op in copies if (m := pipelines.multicast_masks(op))]
        filling = tuple(reduce(or_, each) for each in zip(*masks, strict=True))
        return Ring(
            stages,
            kind,
            layout,
            buffer,
            barriers,
            self.engines[ring],
            filling,
            self._by_groups(ring),
            sum(map(_tile_bytes, group)),
            late_releases(self._kernel, waits, stages) if is_put else 0,
        )

    def _by_groups(self, ring: Any) -> bool:
        """Return whether only whole warpgroups read the tiles of a ring."""
        waits = self._users(ring, pipelines.WAIT)
        return all(is_read_by_groups(self._kernel, op) for op in waits)

    def _check_mbarriers(self, maker: Any) -> None:
        """Refuse a ring that mbarriers guard where the target has none that a thread waits at."""
        target = self._kernel.target
        if target.capability < _CAPABILITY:
            raise self._kernel.source.error(
                f"{target.name} has no mbarriers that a thread can wait at (mbarrier.try_wait), "
                "which guard rings between roles and of TMA",
                maker.location,
                hint="--target=sm_90a, or a schedule without split_roles, such as cp_async",
            )

    def _engine(self, maker: Any) -> str:
        """Return what copies the tiles of a ring."""
        (ring,) = maker.results
        engines = {pipelines.engine_of(op) for op in self._users(ring, pipelines.COPY_ASYNC)}
        if len(engines) > 1:
            raise self._kernel.source.error(
                f"the tiles of this ring are copied by {' and '.join(sorted(engines))}",
                maker.location,
                hint="all copies into a ring have one engine",
            )
        return engines.pop() if engines else PUT

    def _is_of_threads(self, ring: Any) -> bool:
        """Return whether all threads of the kernel fill and read a ring."""
        is_of_role = any(map(role_around, self._uses[ring]))
        return self.engines[ring] not in ("tma", PUT) and not is_of_role

    def _initialize(self, rings: dict[Any, Ring]) -> None:
        """Build the initialization of all barriers by one thread, which the others wait for."""
        first = build.compare("eq", self._kernel.launch_thread, build.index(0))
        with where(first):
            for value, ring in rings.items():
                if ring.barriers is not None and self._groups.get(value, [value])[0] == value:
                    own = self._consumers(value, ring)
                    counts = [own * mask.bit_count() for mask in ring.filling] or [own]
                    rank = nvvm.rank_in_cluster() if ring.filling else None
                    consumers = by_rank(build.i32(), counts, rank)
                    ring.barriers.initialize(self._producers(value, ring), consumers)
            nvvm.fence_mbarrier_init()
        if not any(ring.filling for ring in rings.values()):
            ir.Operation.create("gpu.barrier")
            return
        _cluster_barrier()
        end = list(self._kernel.body.operations)[-1]
        with ir.InsertionPoint(end):
            _cluster_barrier()  # until then others copy to this CTA, and arrive at its barriers

    def _users(self, ring: Any, name: str) -> list[Any]:
        return [op for op in self._uses[ring] if op.name == name]

    def _producers(self, value: Any, ring: Ring) -> int:
        """Return the arrivals that make a stage full.

        It is one by TMA, one of each warp that puts a tile, else one of each thread.
        """
        if ring.engine == "tma":
            return 1
        (role, *_) = [role_of(self._kernel, op) for op in self._users(value, pipelines.COMMIT)]
        return role.team_warps * (1 if ring.engine == PUT else WARP_THREADS)

    def _consumers(self, value: Any, ring: Ring) -> int:
        """Return the arrivals that make a stage empty, of its own CTA."""
        roles = {role_of(self._kernel, op) for op in self._users(value, pipelines.RELEASE)}
        return sum(arrivals(role, by_groups=ring.by_groups) for role in roles)


def _tile_bytes(ring: Any) -> int:
    """Return the bytes of a ring's tile."""
    kind = ir.RankedTensorType(pipelines.tile_type_of(ring))
    return prod(map(int, kind.shape)) * bytes_of(kind.element_type)


def _cluster_barrier() -> None:
    """Build a barrier of all threads of the cluster."""
    nvvm.cluster_arrive()
    nvvm.cluster_wait()
