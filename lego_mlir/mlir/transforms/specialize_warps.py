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

With `pdl = 1` the kernel may start before the preceding work of the stream is done. It runs its
prologue meanwhile, and only the producer waits (programmatic dependent launch).

With `promote = n` threads accumulate the sums of n iterations each, outside of the tensor cores
(`warp_specialized.consumer`).

After `split_k` the CTAs of a cluster reduce their accumulators after the loop
(`warp_specialized.cluster_reduction`). The producer's threads arrive at the cluster's barriers too.

"""

from __future__ import annotations

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
    body_of,
    clone,
    known_size,
    set_launch_size,
)
from lego_mlir.mlir.warp_specialized import cluster_reduction
from lego_mlir.mlir.warp_specialized.consumer import Consumers
from lego_mlir.mlir.warp_specialized.producer import Producer
from lego_mlir.mlir.warp_specialized.register_checks import check_promotion, check_registers
from lego_mlir.mlir.warp_specialized.ring_buffer import RingBuffer


@transform("specialize_warps")
def specialize_warps(step: TransformStep) -> list[list[Any]]:
    """Move the loads of kernels to a producer warpgroup."""
    stages = step.number("stages")
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
    pdl, promote = bool(step.number("pdl", 0)), step.number("promote", 0)
    for launch in step.payload():
        main_loop = find_main_loop(step, launch)
        if main_loop.warp_count % WARPGROUP_WARPS:
            raise step.error(
                f"{main_loop.warp_count} warps are no multiple of a warpgroup's {WARPGROUP_WARPS}",
                main_loop.contract,
            )
        check_registers(step, *registers, main_loop.warp_count // WARPGROUP_WARPS)
        check_promotion(step, main_loop, promote)
        _Roles(step, launch, main_loop, stages, pdl, promote).build(registers)
    return []


class _Roles:
    """The rewrite of one kernel into a producer and consumers."""

    def __init__(
        self,
        step: TransformStep,
        launch: Any,
        main_loop: MainLoop,
        stages: int,
        pdl: bool,
        promote: int,
    ) -> None:
        self.step = step
        self.launch = launch
        self.main_loop = main_loop
        self.stages = stages
        self.pdl = pdl
        self.promote = promote
        self.body = body_of(launch)
        self.groups = main_loop.warp_count // WARPGROUP_WARPS
        self.buffers: dict[Any, tuple[Layout, Any]] = {}
        self.ring: Any = None
        self.reduces_over_cluster = cluster_reduction.is_used_in(launch)

    def build(self, registers: tuple[int, int]) -> None:
        """Replace the main loop and its epilogue by the two roles."""
        main_loop, body, epilogue = self.main_loop, self.body, self._epilogue_ops()
        consumers = self.groups
        set_launch_size(self.launch, 3, (consumers + 1) * WARPGROUP_WARPS * WARP_THREADS)
        if self.pdl:
            self.launch.attributes[dialect.PDL] = ir.UnitAttr.get()
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
                    self._consume(self._consumers(warp, lane), epilogue)
                    scf.YieldOp([])
        for op in reversed([main_loop.loop, *epilogue]):
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
        self.ring = RingBuffer.make(self.stages)

    def _initialize(self, thread: Any) -> None:
        first = arith.CmpIOp(arith.CmpIPredicate.eq, thread, _index(0)).result
        guard = scf.IfOp(first)
        with ir.InsertionPoint(guard.then_block):
            self.ring.initialize(self.groups)
            scf.YieldOp([])
        barrier()
        if self.reduces_over_cluster:
            cluster_reduction.announce_start(self.launch)

    def _producer(self) -> Producer:
        return Producer(self.main_loop, self.ring, self.buffers)

    def _consumers(self, warp: Any, lane: Any) -> Consumers:
        """Return the consumers: the first thread of a warpgroup releases stages."""
        i32 = ir.IntegerType.get_signless(32)
        first = _equal(arith.IndexCastOp(i32, lane).result, 0)
        signals = arith.AndIOp(_equal(warp, 0), first).result
        return Consumers(
            self.main_loop,
            self.ring,
            self.buffers,
            signals,
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
        """Make the producer's loop."""
        self._producer().fetch({}, self.ring.start())

    def _consume(self, consumers: Consumers, epilogue: list[Any]) -> None:
        """Make the consumers' loop, and the epilogue after it."""
        values: dict[Any, Any] = {}
        consumers.multiply(values, self.ring.start())
        for op in epilogue:
            clone(op, values)


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
