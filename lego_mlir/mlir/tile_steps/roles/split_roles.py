"""`transform_lego.split_roles`: a role of its own fills the rings (warp specialization).

    scf.for %i ... iter_args(%sum = %zero) {
      "lego.acquire"(%ring, %i)
      "lego.copy_async"(%ring, %i, %a, %row, %c0)
      "lego.commit"(%ring, %i)
      %t = "lego.wait"(%ring, %i)
      ...
    }
    "lego.store"(...)

becomes

    "lego.role"() ({
      scf.for %i ... iter_args(%sum = %zero) { %t = "lego.wait"(%ring, %i) ... }
      "lego.store"(...)
    }) {name = "consumer", first_warp = 0, warps = 8, registers = 240}
    "lego.role"() ({
      scf.for %i ... {
        "lego.acquire"(%ring, %i)
        "lego.copy_async"(%ring, %i, %a, %row, %c0)
        "lego.commit"(%ring, %i)
      }
    }) {name = "producer", first_warp = 8, warps = 4, registers = 24}

The producer repeats the loops and branches around the copies, and what their numbers, indices and
bounds are computed from, which must be scalars. `producer_warps` more warps are launched. If tiles
are put into rings to be stored, one of these warps has the role "storer", which waits for them and
stores them. If tiles of rings are put into other rings, `converter_warps` of them have the role
"converter", which does that.
Each role waits by itself for the launch before. If all CTAs run at once, the next launch may begin
before that: its CTAs take nothing from those of this one.
`producer_registers` and `consumer_registers` are operands of setmaxnreg; 0 for none.
"""

from __future__ import annotations

from math import prod
from typing import Any

from lego_mlir.hardware.limits import MAX_CTA_THREADS, WARP_THREADS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.lowering.indices.index_reader import launch_sizes
from lego_mlir.mlir.modules import body_of, operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.structure import set_size
from lego_mlir.mlir.tile_ir.kernels import TileKernel, constant_size
from lego_mlir.mlir.tile_ir.types import is_shared_tile
from lego_mlir.mlir.tile_steps.kernels import kernels_of, operations_of
from lego_mlir.mlir.tile_steps.roles.role_slices import RoleSlice
from lego_mlir.mlir.tile_steps.scalars import is_scalar

_OF_EACH = "nvvm.griddepcontrol"
"""What each role does for itself, so that earlier launches end while barriers are set up."""

_AT_ONCE = 132
"""CTAs that run at once, at most: the multiprocessors of an H200."""

_CONVERTER = "converter"

_X_THREADS = 3
"""Which of a launch's six sizes is the number of threads along x."""


@transform("split_roles")
def split_roles(step: TransformStep) -> list[list[Any]]:
    """Give the operations that fill rings to a role of its own."""
    warps = step.number("producer_warps", 4)
    converter = step.number("converter_warps", 0) or 1
    producer = step.number("producer_registers", 0) or None
    consumer = step.number("consumer_registers", 0) or None
    for name, count in (("producer_warps", warps), ("converter_warps", converter)):
        if not 1 <= count <= MAX_CTA_THREADS // WARP_THREADS:
            raise step.misuse(f"{name} is {count}", hint=step.option(name, 4))
    for kernel in kernels_of(step):
        _split(step, kernel, warps, converter, (producer, consumer))
    return []


def _split(
    step: TransformStep,
    kernel: TileKernel,
    producer_warps: int,
    converter_warps: int,
    registers: tuple[int | None, int | None],
) -> None:
    """Split one kernel."""
    inside = list(operations_in(kernel.launch))
    if any(op.name == pipelines.ROLE for op in inside):
        raise step.error("the kernel has roles already", kernel.launch)
    moved = _moved(inside)
    if not moved:
        raise step.error(
            "the kernel has no ring that could be filled by a role of its own",
            kernel.launch,
            hint="transform_lego.pipeline_loop makes rings",
        )
    tile_warps = kernel.warps
    sizes = {name: converter_warps if name == _CONVERTER else 1 for name in moved}
    first_name = next(iter(moved))
    others = sum(n for name, n in sizes.items() if name != first_name)
    sizes[first_name] = max(producer_warps - others, 1)
    warps = sum(sizes.values())
    body = kernel.body
    *listed, end = operations_of(body)
    staying = _staying(listed)
    with ir.InsertionPoint(end), kernel.launch.location:
        consuming = pipelines.role("consumer", range(tile_warps), registers[1])
        first = tile_warps
        roles: list[Any] = []
        for name, count in sizes.items():
            roles.append(pipelines.role(name, range(first, first + count), registers[0]))
            first += count
    for role in (consuming, *roles):
        with ir.InsertionPoint(body_of(role)), kernel.launch.location:
            ir.Operation.create("gpu.yield")
    last = operations_of(body_of(consuming))[-1]
    for op in listed:
        if op not in staying:
            op.move_before(last)
    for role, kept in zip(roles, moved.values(), strict=True):
        with ir.InsertionPoint(operations_of(body_of(role))[-1]):
            RoleSlice(step, body_of(consuming), kept).build()
    of_each = [op for op in listed if op.name == _OF_EACH]
    if _runs_at_once(kernel):
        of_each.sort(key=_waits)
    for role in (consuming, *roles):
        with ir.InsertionPoint.at_block_begin(body_of(role)):
            for op in of_each:
                op.clone()
    for op in reversed([*of_each, *(op for kept in moved.values() for op in kept)]):
        step.erase(op)
    launch = kernel.launch
    set_size(launch, _X_THREADS, (tile_warps + warps) * WARP_THREADS)
    with launch.location:
        i64 = ir.IntegerType.get_signless(64)
        launch.attributes[dialect.TILE_WARPS] = ir.IntegerAttr.get(i64, tile_warps)


def _runs_at_once(kernel: TileKernel) -> bool:
    """Return whether each CTA of a launch has a multiprocessor of its own."""
    sizes = [constant_size(size) for size in launch_sizes(kernel.launch)[:3]]
    return None not in sizes and prod(size or 1 for size in sizes) <= _AT_ONCE


def _waits(op: Any) -> bool:
    """Return whether a nvvm.griddepcontrol is the wait for the launch before."""
    return "wait" in str(op.attributes["kind"])


def _moved(inside: list[Any]) -> dict[str, list[Any]]:
    """Return what roles of their own do, by their name, in the order of the program."""
    puts = [op for op in inside if op.name == pipelines.PUT]
    copied = {op for op in puts if is_shared_tile(op.operands[2])}
    converted = [x for op in copied for x in _of_conversion(op)]
    put = {op.operands[0] for op in puts if op not in copied}
    produced, stored = [], []
    for op in inside:
        is_tile = op.name == dialect.STORE and is_shared_tile(op.operands[0])
        if op in converted:
            continue
        if op.name in pipelines.PRODUCES and op.operands[0] not in put:
            produced.append(op)
        elif is_tile or (op.name in pipelines.CONSUMES and op.operands[0] in put):
            stored.append(op)
    ordered = [op for op in inside if op in converted]
    roles = (("producer", produced), ("storer", stored), (_CONVERTER, ordered))
    return {name: found for name, found in roles if found}


def _of_conversion(put: Any) -> list[Any]:
    """Return what converts a tile of a ring: what its copy to another ring consists of."""
    ring, number, tile = put.operands
    found = [x for x in operations_of(put.block) if _is_produced(x, ring, number)]
    while tile.owner.name != pipelines.WAIT:
        found.append(tile.owner.operation)
        tile = tile.owner.operands[0]
    wait = tile.owner.operation
    found.append(wait)
    source = list(wait.operands)
    found += [
        x
        for x in operations_of(wait.block)
        if x.name == pipelines.RELEASE and list(x.operands) == source
    ]
    return found


def _is_produced(op: Any, ring: Any, number: Any) -> bool:
    return op.name in pipelines.PRODUCES and list(op.operands)[:2] == [ring, number]


def _staying(listed: list[Any]) -> list[Any]:
    """Return the operations that all roles need: rings, and scalars that need nothing else."""
    staying: list[Any] = []
    for op in listed:
        is_known = all(
            isinstance(x, ir.BlockArgument)
            or x.owner.operation not in listed
            or x.owner.operation in staying
            for x in op.operands
        )
        if op.name == pipelines.MAKE_RING or (is_scalar(op) and is_known):
            staying.append(op)
    return staying
