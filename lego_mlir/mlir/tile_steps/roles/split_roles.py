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
are put into rings to be stored, the last of these warps has the role "storer", which waits for them
and stores them.
`producer_registers` and `consumer_registers` are operands of setmaxnreg; 0 for none.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.types import is_shared_tile
from lego_mlir.mlir.tile_steps.kernels import body_of, kernels_of, operations_of, set_size
from lego_mlir.mlir.tile_steps.roles.role_slices import RoleSlice
from lego_mlir.mlir.tile_steps.scalars import is_scalar

_OF_EACH = "nvvm.griddepcontrol"
"""What each role does for itself, so that earlier launches end while barriers are set up."""

_X_THREADS = 3
"""Which of a launch's six sizes is the number of threads along x."""


@transform("split_roles")
def split_roles(step: TransformStep) -> list[list[Any]]:
    """Give the operations that fill rings to a role of its own."""
    warps = step.number("producer_warps", 4)
    producer = step.number("producer_registers", 0) or None
    consumer = step.number("consumer_registers", 0) or None
    if warps < 1:
        raise step.misuse(f"producer_warps is {warps}", hint=step.option("producer_warps", 4))
    for kernel in kernels_of(step):
        _split(step, kernel, warps, (producer, consumer))
    return []


def _split(
    step: TransformStep,
    kernel: TileKernel,
    producer_warps: int,
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
    tile_warps, warps = kernel.warps, max(producer_warps, len(moved))
    body = kernel.body
    *listed, end = operations_of(body)
    staying = _staying(listed)
    with ir.InsertionPoint(end), kernel.launch.location:
        consuming = pipelines.role("consumer", range(tile_warps), registers[1])
        first = tile_warps
        roles: list[Any] = []
        for left, name in zip(range(len(moved) - 1, -1, -1), moved, strict=True):
            behind = first + 1 if roles else tile_warps + warps - left
            roles.append(pipelines.role(name, range(first, behind), registers[0]))
            first = behind
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


def _moved(inside: list[Any]) -> dict[str, list[Any]]:
    """Return what roles of their own do, by their name, in the order of the program."""
    put = {op.operands[0] for op in inside if op.name == pipelines.PUT}
    produced, stored = [], []
    for op in inside:
        is_tile = op.name == dialect.STORE and is_shared_tile(op.operands[0])
        if op.name in pipelines.PRODUCES and op.operands[0] not in put:
            produced.append(op)
        elif is_tile or (op.name in pipelines.CONSUMES and op.operands[0] in put):
            stored.append(op)
    roles = (("producer", produced), ("storer", stored))
    return {name: found for name, found in roles if found}


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
