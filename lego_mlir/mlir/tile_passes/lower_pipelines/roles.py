"""Lower roles to branches on the number of the warp, and turns to named barriers.

    "lego.role"() ({ ... }) {first_warp = 8 : i64, warps = 4 : i64, registers = 24 : i64}

becomes

    scf.if (8 <= %warp and %warp < 12) {
      nvvm.setmaxregister decrease 24
      scf.if (the warp is 8, in one lane) { ... }       if the role runs in one thread
    }

The number of the warp comes from a shuffle, by which the assembler knows that it is the same in all
lanes.

Source: PTX ISA 9.7.19.5 (setmaxnreg), 9.7.13.1 (bar.sync, bar.arrive).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lego_mlir.hardware.limits import SM_REGISTERS, WARP_THREADS, WARPGROUP_THREADS, WARPGROUP_WARPS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.memory import where

_FIRST_TURN = 2
"""The number of the first warpgroup's named barrier: 0 is the CTA's, 1 that of the role's tiles."""


def lower_roles(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place."""
    of_turns = (pipelines.TURN_BEGIN, pipelines.TURN_END)
    kinds = (pipelines.ROLE, *of_turns)
    found = [op for op in operations_in(kernel.launch) if op.name in kinds]
    roles, turns = _with_turns(found)
    group: dict[Any, Any] = {}
    for op in found:
        if op.name in of_turns:
            block = _home(kernel, op)
            if block not in group:
                with ir.InsertionPoint.at_block_begin(block), op.location:
                    group[block] = _group(kernel)
            with ir.InsertionPoint(op), op.location:
                _lower_turn(op, group[block])
            op.erase()
    if not roles:
        return
    with ir.InsertionPoint(roles[0]), roles[0].location:
        warp = _warp(kernel)
        joint = _joint_registers(roles)
        for warps, registers in joint:
            with where(_is_in(warp, warps)):
                _set_registers(kernel, registers)
    for role, groups in zip(roles, turns, strict=True):
        with ir.InsertionPoint(role), role.location:
            is_set = any(pipelines.role_warps(role)[0] in warps for warps, _ in joint)
            _lower_role(kernel, role, warp, groups, sets_registers=not is_set)
        role.erase()


def _warp(kernel: TileKernel) -> Any:
    """Build the number of the warp, an i32 that is the same in all lanes."""
    number = build.binary("divui", kernel.launch_thread, build.index(WARP_THREADS))
    word = build.make("arith.index_cast", build.i32(), number)
    i32 = build.i32()
    lane, last = build.constant(i32, 0), build.constant(i32, WARP_THREADS - 1)
    return nvvm.shuffle(build.constant(i32, -1), word, lane, last)


def _joint_registers(roles: list[Any]) -> list[tuple[range, int]]:
    """Return the warpgroups that several roles share, with the registers that these set.

    All warps of a warpgroup execute the same setmaxnreg.
    """
    groups: dict[int, list[Any]] = {}
    for role in roles:
        for warp in pipelines.role_warps(role):
            groups.setdefault(warp // WARPGROUP_WARPS, []).append(role)
    found = []
    for group, members in groups.items():
        registers = pipelines.role_registers(members[0])
        if registers is not None and len(set(members)) > 1:
            first = group * WARPGROUP_WARPS
            found.append((range(first, first + WARPGROUP_WARPS), registers))
    return found


def _is_in(warp: Any, warps: range) -> Any:
    """Build whether a warp is one of a range."""
    distance = build.binary("subi", warp, build.constant(build.i32(), warps.start))
    return build.compare("ult", distance, build.constant(build.i32(), len(warps)))


def _set_registers(kernel: TileKernel, registers: int) -> None:
    least = SM_REGISTERS // (kernel.launch_warps * WARP_THREADS)
    nvvm.set_registers(registers, "increase" if registers > least else "decrease")


def _lower_role(
    kernel: TileKernel,
    role: Any,
    warp: Any,
    groups: Sequence[tuple[int, int]],
    *,
    sets_registers: bool,
) -> None:
    """Build the branch of a role, and move what it does there."""
    warps = pipelines.role_warps(role)
    first = build.constant(build.i32(), warps.start)
    registers = pipelines.role_registers(role)
    with where(_is_in(warp, warps)):
        if registers is not None and sets_registers:
            _set_registers(kernel, registers)
        for count, order in groups:
            _give_first_turn(kernel, count, order)
        one_thread = None
        if dialect.ONE_THREAD in role.attributes:
            is_first = build.compare("eq", warp, first)
            one_thread = build.make("arith.andi", is_first.type, is_first, nvvm.elect())
        with where(one_thread):
            here = ir.Operation.create("gpu.barrier")  # what the role does moves before it
            for op in [o.operation for o in role.regions[0].blocks[0].operations][:-1]:
                op.move_before(here)
            here.erase()


# Turns.
def _with_turns(found: Iterable[Any]) -> tuple[list[Any], list[list[tuple[int, int]]]]:
    """Return the roles, and of each how many warpgroups take turns, for each order of turns.

    Args:
        found: roles, each with the turns inside of it behind it.
    """
    roles: list[Any] = []
    turns: list[list[tuple[int, int]]] = []
    for op in found:
        if op.name == pipelines.ROLE:
            roles.append(op)
            turns.append([])
        elif op.name == pipelines.TURN_BEGIN and roles:
            turn = pipelines.groups_of(op), pipelines.order_of(op)
            turns[-1] += [turn] if turn not in turns[-1] else []
    return roles, turns


def _home(kernel: TileKernel, op: Any) -> Any:
    """Return the block of the role that an operation is in, or of the kernel."""
    while op.block != kernel.body and op.parent.name != pipelines.ROLE:
        op = op.parent.operation
    return op.block


def _lower_turn(op: Any, group: Any) -> None:
    """Build the wait for a turn of a warpgroup, or its end."""
    groups, order = pipelines.groups_of(op), pipelines.order_of(op)
    threads = build.constant(build.i32(), 2 * WARPGROUP_THREADS)
    if op.name == pipelines.TURN_BEGIN:
        nvvm.barrier(_barrier_of(group, groups, order), threads)
    else:
        following = build.binary("addi", group, build.constant(build.i32(), 1))
        around = build.compare("eq", following, build.constant(build.i32(), groups))
        following = build.select(around, build.constant(build.i32(), 0), following)
        nvvm.barrier_arrive(_barrier_of(following, groups, order), threads)


def _give_first_turn(kernel: TileKernel, groups: int, order: int) -> None:
    """Build the last warpgroup's arrival that lets the first one begin."""
    is_last = build.compare("eq", _group(kernel), build.constant(build.i32(), groups - 1))
    with where(is_last):
        number = build.constant(build.i32(), _FIRST_TURN + groups * order)
        nvvm.barrier_arrive(number, build.constant(build.i32(), 2 * WARPGROUP_THREADS))


def _group(kernel: TileKernel) -> Any:
    """Build the number of the warpgroup, an i32 that is the same in all lanes."""
    per_group = build.constant(build.i32(), WARPGROUP_THREADS // WARP_THREADS)
    return build.binary("divui", _warp(kernel), per_group)


def _barrier_of(group: Any, groups: int, order: int) -> Any:
    first = build.constant(build.i32(), _FIRST_TURN + groups * order)
    return build.binary("addi", group, first)
