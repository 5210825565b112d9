"""`transform_lego.specialize_warps`: a producer warp loads tiles, consumers multiply them.

    for k { x = load A[m, k]; y = load B[k, n]; sum = contract x, y, sum }
    store f(sum)

becomes two concurrent loops, with a ring buffer of `stages` stages in shared memory between them:

    if (the last warpgroup) {                       else {
      for k {                                         for k {
        wait empty[stage]                               wait full[stage]
        expect full[stage], bytes                       sum = contract a[stage], b[stage], sum
        a[stage] = load A[m, k]                         release the previous stage
        b[stage] = load B[k, n]                       }
      }                                               store f(sum)
    }                                               }

If `persist` made a loop over tiles, both roles continue around the ring from tile to tile: the next
tile's loads run while this one is stored.

With `pdl = 1` the kernel may start before the preceding work of the stream is done. It runs its
prologue meanwhile, and only the producer waits (programmatic dependent launch).

With `overlap_epilogue = 1` a tile's result is stored during the next tile's main loop: registers
carry it there, and each of the first iterations stores one chunk.

With `ping_pong = 1` two consumer warpgroups compute whole tiles in turns
(`warp_specialized.ping_pong`).

With `promote = n` threads accumulate the sums of n iterations each, outside of the tensor cores
(`warp_specialized.consumer`).

After `split_k` the CTAs of a cluster reduce their accumulators after the loop
(`warp_specialized.cluster_reduction`). The producer's threads arrive at the cluster's barriers too.

With `cluster = n` a tile that CTAs of a cluster have in common, by the layout that maps CTA ids to
tiles, is loaded by multicast (`warp_specialized.multicast`): each of them loads a slice of it for
all. A stage is then empty when the consumers of all these CTAs have released it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.algebra.multibuffer import multibuffered
from lego_mlir.hardware.limits import WARP_THREADS, WARPGROUP_WARPS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, scf
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tiles.accesses import alloc, inv
from lego_mlir.mlir.tiles.kernels import barrier
from lego_mlir.mlir.tiles.main_loop import MainLoop, find_main_loop
from lego_mlir.mlir.tiles.pointers import i32_constant
from lego_mlir.mlir.tiles.structure import (
    backward_slice,
    body_of,
    clone,
    known_size,
    operands_of,
    set_launch_size,
)
from lego_mlir.mlir.warp_specialized import cluster_reduction, ping_pong
from lego_mlir.mlir.warp_specialized.consumer import Consumers, bound_stages
from lego_mlir.mlir.warp_specialized.multicast import cluster_sharing
from lego_mlir.mlir.warp_specialized.overlapped_epilogue import OverlappedEpilogue
from lego_mlir.mlir.warp_specialized.ping_pong import PingPong
from lego_mlir.mlir.warp_specialized.producer import Producer
from lego_mlir.mlir.warp_specialized.register_checks import check_promotion, check_registers
from lego_mlir.mlir.warp_specialized.ring_buffer import RingBuffer, RingPosition
from lego_mlir.mlir.warp_specialized.tma_stores import is_stored_by_tma


@transform("specialize_warps")
def specialize_warps(step: TransformStep) -> list[list[Any]]:
    """Move the loads of kernels to a producer warpgroup."""
    stages, cluster = step.number("stages"), step.number("cluster", 1)
    registers = step.number("producer_registers", 0), step.number("consumer_registers", 0)
    if step.pass_context.target.name != "sm_90a":
        raise step.misuse(
            f"warpgroups, wgmma and TMA need sm_90a, the target is {step.pass_context.target.name}",
            hint="--target=sm_90a, or --schedule=cp_async",
        )
    if stages < 2:
        raise step.misuse(
            f"stages is {stages}, but a ring buffer needs 2: one is read while another is filled",
            hint=f"{step.option('stages', 2)}, or more",
        )
    pdl, overlap_epilogue = bool(step.number("pdl", 0)), bool(step.number("overlap_epilogue", 0))
    promote, is_ping_pong = step.number("promote", 0), bool(step.number("ping_pong", 0))
    for launch in step.payload():
        main_loop = find_main_loop(step, launch)
        if main_loop.warp_count % WARPGROUP_WARPS:
            raise step.error(
                f"{main_loop.warp_count} warps are no multiple of a warpgroup's {WARPGROUP_WARPS}",
                main_loop.contract,
            )
        teams = ping_pong.TEAMS if is_ping_pong else 1
        check_registers(step, *registers, teams * main_loop.warp_count // WARPGROUP_WARPS)
        cluster_reduction.check(step, launch, main_loop, cluster)
        check_promotion(step, main_loop, promote, overlap_epilogue)
        if is_ping_pong:
            ping_pong.check(step, launch, main_loop, overlap_epilogue)
        roles = _Roles(
            step, launch, main_loop, stages, cluster, pdl, overlap_epilogue, promote, teams
        )
        roles.build(registers)
    return []


class _Roles:
    """The rewrite of one kernel into a producer and consumers."""

    def __init__(
        self,
        step: TransformStep,
        launch: Any,
        main_loop: MainLoop,
        stages: int,
        cluster: int,
        pdl: bool,
        overlap_epilogue: bool,
        promote: int,
        teams: int,
    ) -> None:
        self.step = step
        self.launch = launch
        self.main_loop = main_loop
        self.stages = stages
        self.cluster = cluster
        self.pdl = pdl
        self.overlap_epilogue = overlap_epilogue
        self.promote = promote
        self.teams = teams
        self.body = body_of(launch)
        self.groups = main_loop.warp_count // WARPGROUP_WARPS
        self.buffers: dict[Any, tuple[Layout, Any]] = {}
        self.ring: Any = None
        self.turns: PingPong | None = None
        self.sharing = cluster_sharing(step, launch, main_loop, cluster)
        self.reduces_over_cluster = cluster_reduction.is_used_in(launch)

    def build(self, registers: tuple[int, int]) -> None:
        """Replace the main loop, its epilogue and the loop over tiles by the two roles."""
        main_loop, body, epilogue = self.main_loop, self.body, self._epilogue_ops()
        consumers = self.teams * self.groups
        set_launch_size(self.launch, 3, (consumers + 1) * WARPGROUP_WARPS * WARP_THREADS)
        if self.pdl:
            self.launch.attributes[dialect.PDL] = ir.UnitAttr.get()
        if self.cluster > 1:
            i64 = ir.IntegerType.get_signless(64)
            self.launch.attributes[dialect.CLUSTER] = ir.IntegerAttr.get(i64, self.cluster)
        end = list(body.operations)[-1].operation
        with self.launch.location:
            with ir.InsertionPoint.at_block_begin(body):
                self._allocate_ring()
                thread = body.arguments[3]
                threads = OrderBy(Row(consumers + 1, WARPGROUP_WARPS, WARP_THREADS))
                group, warp, lane = inv(threads, thread)
                self._initialize(thread)
                if self.pdl:
                    nvvm.griddepcontrol("launch_dependents")
            with ir.InsertionPoint(end):
                group, warp = _uniform(group), _uniform(warp)
                is_producer = _equal(group, consumers)
                roles = scf.IfOp(is_producer, has_else=True)
                with ir.InsertionPoint(roles.then_block):
                    _set_registers(registers[0], "decrease")
                    elected = arith.AndIOp(_equal(warp, 0), nvvm.elect()).result
                    fetching = scf.IfOp(elected)
                    with ir.InsertionPoint(fetching.then_block):
                        if self.pdl:  # the preceding kernel may write what is loaded
                            nvvm.griddepcontrol("wait")
                        self._produce()
                        scf.YieldOp([])
                    if self.reduces_over_cluster:
                        cluster_reduction.join_barriers(self.launch)
                    scf.YieldOp([])
                with ir.InsertionPoint(roles.else_block):
                    _set_registers(registers[1], "increase")
                    self._consume(self._consumers(warp, lane), epilogue, group)
                    scf.YieldOp([])
                if self.cluster > 1:  # other CTAs may still write to this CTA's shared memory
                    nvvm.cluster_arrive()
                    nvvm.cluster_wait()
        replaced = [main_loop.outer] if main_loop.outer else [main_loop.loop, *epilogue]
        for op in reversed(replaced):
            self.step.erase(op)

    # Setting up.
    def _allocate_ring(self) -> None:
        pass_context = self.step.pass_context
        for tile in (self.main_loop.a, self.main_loop.b):
            shared = self.main_loop.shared_layout(tile, pass_context.layouts)
            if tuple(shared.dims) != tuple(tile.shape):
                raise self.step.error(
                    f"the tile is {list(tile.shape)}, but its shared-memory layout '{shared}' is "
                    f"{list(shared.dims)}",
                    tile.op,
                    hint="write a layout with the tile's dimensions in 'shared'",
                )
            layout = multibuffered(shared, self.stages)
            self.buffers[tile.op] = layout, alloc(layout, tile.element)
        self.ring = RingBuffer.make(self.stages, self.sharing.ctas)
        if self.teams > 1:
            self.turns = PingPong.make(self.step, self.launch, self.main_loop)

    def _initialize(self, thread: Any) -> None:
        first = arith.CmpIOp(arith.CmpIPredicate.eq, thread, _index(0)).result
        guard = scf.IfOp(first)
        with ir.InsertionPoint(guard.then_block):
            if self.turns is not None:
                self.turns.initialize()
            self.ring.initialize(self.groups)
            scf.YieldOp([])
        if self.cluster > 1:
            nvvm.cluster_arrive()
            nvvm.cluster_wait()
        else:
            barrier()
        if self.reduces_over_cluster:
            cluster_reduction.announce_start(self.launch)

    def _producer(self) -> Producer:
        return Producer(self.main_loop, self.ring, self.buffers, self.sharing.operands)

    def _consumers(self, warp: Any, lane: Any) -> Consumers:
        """Return the consumers: lane r of a warpgroup's first warp releases stages of CTA r."""
        i32 = ir.IntegerType.get_signless(32)
        block = arith.IndexCastOp(i32, lane).result
        is_lane = self.sharing.signals(block)
        signals = arith.AndIOp(_equal(warp, 0), is_lane).result
        # mapa needs a rank inside the cluster, even if the address is not used.
        rank = arith.RemUIOp(block, i32_constant(self.cluster)).result
        peer = rank if self.cluster > 1 else None
        return Consumers(
            self.main_loop,
            self.ring,
            self.buffers,
            signals,
            peer,
            self.promote,
            self._is_divisible(),
        )

    def _is_divisible(self) -> bool:
        """Return whether `promote` divides the iterations of the main loop."""
        pass_context = self.step.pass_context
        sizes = [known_size(v, pass_context) for v in list(self.main_loop.loop.operands)[:3]]
        known = [n for n in sizes if n is not None]
        if not self.promote or len(known) < len(sizes):
            return False
        lower, upper, stride = known
        return (upper - lower) % (stride * self.promote) == 0

    # The loops of a role.
    def _epilogue_ops(self) -> list[Any]:
        """Return the operations after the main loop: the consumers' epilogue."""
        home = self.main_loop.loop.block
        operations = [op.operation for op in home.operations]
        after = operations[operations.index(self.main_loop.loop) + 1 :]
        return after[:-1]

    def _produce(self) -> None:
        """Make the producer's loops."""
        outer, values = self.main_loop.outer, dict[Any, Any]()
        if outer is None:
            self._producer().fetch(values, self.ring.start())
            return
        start = self.ring.start()
        tiles = scf.ForOp(*list(outer.operands)[:3], [start.stage, start.parity])
        bound_stages(tiles.operation, self.stages, 0)
        with ir.InsertionPoint(tiles.body):
            self._clone_setup(values, tiles, [])
            end = self._producer().fetch(values, RingPosition(*tiles.inner_iter_args))
            scf.YieldOp([end.stage, end.parity])

    def _consume(self, consumers: Consumers, epilogue: list[Any], group: Any) -> None:
        """Make the consumers' loops, and the epilogue after the main loop."""
        if self.turns is not None:
            self._consume_in_turns(self.turns, consumers, epilogue, group)
            return
        outer, values = self.main_loop.outer, dict[Any, Any]()
        if outer is None:
            consumers.multiply(values, self.ring.start())
            for op in epilogue:
                clone(op, values)
            return
        last = self._overlapped_epilogue(epilogue)
        if last is not None:
            epilogue = [op for op in epilogue if op != last.op]
        start = self.ring.start()
        carried = [start.stage, start.parity, *(last.initial() if last else [])]
        tiles = scf.ForOp(*list(outer.operands)[:3], carried)
        known = [self.stages, 0, *(last.bounds if last else ())]
        tiles.operation.attributes[dialect.BOUNDS] = dialect.bounds_attribute(known)
        with ir.InsertionPoint(tiles.body):
            self._clone_setup(values, tiles, epilogue if last is None else [*epilogue, last.op])
            stage, parity, *before = tiles.inner_iter_args
            chunks = last.before(before) if last else None
            end = consumers.multiply(values, RingPosition(stage, parity), chunks)
            for op in epilogue:
                clone(op, values)
            scf.YieldOp([end.stage, end.parity, *(last.carried(values) if last else [])])
        if last is not None:
            last.flush(list(tiles.results)[2:])

    def _consume_in_turns(
        self, turns: PingPong, consumers: Consumers, epilogue: list[Any], group: Any
    ) -> None:
        """Make the loops of a warpgroup, an i32, that computes every other tile."""
        outer, values = self.main_loop.outer, dict[Any, Any]()
        team = arith.IndexCastOp(ir.IndexType.get(), group).result
        start, turn = turns.start(team, self.ring)
        bounds = turns.tiles(team, list(outer.operands)[:3])
        tiles = scf.ForOp(*bounds, [start.stage, start.parity, turn])
        bound_stages(tiles.operation, self.stages, 0)
        with ir.InsertionPoint(tiles.body):
            self._clone_setup(values, tiles, epilogue)
            stage, parity, turn = tiles.inner_iter_args
            following = turns.wait(team, turn)
            give_turn = partial(turns.give_turn, team)
            end = replace(consumers, on_issued=give_turn).multiply(
                values, RingPosition(stage, parity)
            )
            for op in epilogue:
                clone(op, values)
            end = self.ring.after(end, turns.iterations)
            scf.YieldOp([end.stage, end.parity, following])

    def _clone_setup(self, values: dict[Any, Any], tiles: Any, epilogue: list[Any]) -> None:
        """Clone what a tile's main loop and epilogue need from the operations before them."""
        inside = self.main_loop.outer.regions[0].blocks[0]
        values[inside.arguments[0]] = tiles.induction_variable
        roots = [*self.main_loop.loop.operands, *self._indices()]
        roots += [v for op in epilogue for v in operands_of(op)]
        for op in backward_slice(roots, inside):
            if op != self.main_loop.loop and op not in epilogue:
                clone(op, values)

    def _overlapped_epilogue(self, epilogue: list[Any]) -> OverlappedEpilogue | None:
        """Return the store that overlaps with the next tile's main loop, if there is one."""
        if not self.overlap_epilogue:
            return None
        stores = [op for op in epilogue if is_stored_by_tma(op)]
        if len(stores) != 1:
            raise self.step.error(
                f"an overlapped epilogue has one store of a tile with '{dialect.SHARED}', found "
                f"{len(stores)}",
                self.main_loop.loop,
            )
        last = OverlappedEpilogue(self.step, stores[0], self.groups)
        steps = known_size(self.main_loop.loop.operands[1], self.step.pass_context)
        if steps is None or steps < last.count:
            raise self.step.error(
                f"the {last.count} chunks of the output tile need as many iterations of the K "
                f"loop, which has {steps}",
                self.main_loop.loop,
                hint=self.step.option("overlap_epilogue", 0),
            )
        return last

    def _indices(self) -> list[Any]:
        """Return the values from outside of the main loop that the loads' indices use."""
        inside = self.main_loop.loop.regions[0].blocks[0]
        found = [*self.main_loop.a.used_values, *self.main_loop.b.used_values]
        for op in backward_slice(found, inside):
            found.extend(operands_of(op))
        return found


def _uniform(value: Any) -> Any:
    """Return a warp-uniform value from a shuffle, by which the assembler knows it is uniform."""
    i32 = ir.IntegerType.get_signless(32)
    word = arith.IndexCastOp(i32, value).result
    return nvvm.shuffle(i32_constant(-1), word, i32_constant(0), i32_constant(WARP_THREADS - 1))


def _equal(word: Any, n: int) -> Any:
    return arith.CmpIOp(arith.CmpIPredicate.eq, word, i32_constant(n)).result


def _index(n: int) -> Any:
    return arith.ConstantOp(ir.IndexType.get(), n).result


def _set_registers(count: int, action: Any) -> None:
    if count:
        nvvm.set_registers(count, action)
