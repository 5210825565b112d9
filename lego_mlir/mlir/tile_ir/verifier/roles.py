"""The roles of a kernel: which warps they have, where tiles are, turns, and asynchronous dots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from lego_mlir.hardware.limits import SM_REGISTERS, WARP_THREADS, WARPGROUP_WARPS
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.roles import role_of
from lego_mlir.mlir.tile_ir.types import is_register_tile

_REGISTER_UNIT = 8
"""Registers of a thread are allocated in such steps. What all threads have at the launch is what
setmaxnreg gives from one warpgroup to another (PTX ISA 9.7.19.5)."""

_ENDS = ("gpu.terminator",)
_CARRIES = ("scf.yield", "scf.for")


def check_roles(kernel: TileKernel, inside: Sequence[Any]) -> None:
    """Check the roles, turns and asynchronous dots of a kernel with these operations.

    Raises:
        LegoError: at the operation that is wrong.
    """
    roles = [op for op in inside if op.name == pipelines.ROLE]
    if roles:
        _check_warps(kernel, roles)
        for role in roles:
            if pipelines.role_teams(role) > 1:
                _check_teams(kernel, role)
        _check_places(kernel, roles)
    for op in inside:
        if op.name == pipelines.TURN_BEGIN:
            _check_turn(kernel, op)
        elif op.name == pipelines.DOT_ASYNC:
            _check_result(kernel, op)
        elif op.name == pipelines.TURN_END and not _opens(op):
            _fail(kernel, op, f"without a '{pipelines.TURN_BEGIN}' before it in its block", _PAIRS)


_PAIRS = f"{pipelines.TURN_BEGIN} and {pipelines.TURN_END} follow one another in a block"


def _fail(kernel: TileKernel, op: Any, message: str, hint: str) -> NoReturn:
    raise kernel.source.error(f"'{op.name}' {message}", op.location, hint=hint)


def _check_warps(kernel: TileKernel, roles: list[Any]) -> None:
    """Check that every warp has one role at most, and that the registers are there."""
    taken: dict[int, str] = {}
    registers = 0
    for role in roles:
        warps, name = pipelines.role_warps(role), pipelines.role_name(role)
        if not len(warps) or warps.stop > kernel.launch_warps:
            _fail(
                kernel,
                role,
                f"'{name}' has the warps {warps.start} to {warps.stop - 1}, the launch 0 to "
                f"{kernel.launch_warps - 1}",
                "launch as many threads as the roles have",
            )
        for warp in warps:
            if warp in taken:
                _fail(
                    kernel,
                    role,
                    f"'{name}' has warp {warp}, as '{taken[warp]}' has",
                    "each warp has one role",
                )
            taken[warp] = name
        registers += (pipelines.role_registers(role) or 0) * len(warps) * WARP_THREADS
    _check_registers(kernel, roles)
    threads = kernel.launch_warps * WARP_THREADS
    pool = SM_REGISTERS // threads // _REGISTER_UNIT * _REGISTER_UNIT * threads
    if registers > pool:
        _fail(
            kernel,
            roles[0],
            f"and the others have {registers} registers, a CTA of {threads} threads {pool}",
            "the last warpgroup would wait for registers forever: take fewer for one role",
        )


def _check_registers(kernel: TileKernel, roles: list[Any]) -> None:
    """Check that the warps of a warpgroup set their registers together, to one number."""
    counts = {w: pipelines.role_registers(r) for r in roles for w in pipelines.role_warps(r)}
    for role in roles:
        warps, own = pipelines.role_warps(role), pipelines.role_registers(role)
        first, last = (w // WARPGROUP_WARPS for w in (warps.start, warps.stop - 1))
        around = range(first * WARPGROUP_WARPS, (last + 1) * WARPGROUP_WARPS)
        if own is not None and any(counts.get(w) != own for w in around):
            _fail(
                kernel,
                role,
                f"of the warps {warps.start} to {warps.stop - 1} sets their registers to {own}",
                "whole warpgroups do, of 4 warps from a multiple of 4 on; several roles of one "
                "warpgroup set the same number",
            )


def _check_places(kernel: TileKernel, roles: list[Any]) -> None:
    """Check that roles end the kernel, and that the warps of the tiles have them."""
    listed = [op.operation for op in kernel.body.operations]
    for role in roles:
        if role.block != kernel.body:
            _fail(kernel, role, "in a loop, branch or role", "roles stand in the kernel's body")
    for op in listed[listed.index(roles[0]) :]:
        if op.name != pipelines.ROLE and op.name not in _ENDS:
            _fail(kernel, op, "behind a role", "what all warps do stands before the roles")
    for op in operations_in(kernel.launch):
        if any(map(is_register_tile, (*op.operands, *op.results))):
            role = role_of(kernel, op)
            if role.op is None or role.warps != range(kernel.warps * role.teams):
                _fail(
                    kernel,
                    op,
                    f"of a tile, in {role.name}",
                    f"the warps 0 to {kernel.warps - 1} hold the tiles, in a role of theirs",
                )


# Teams.
def _check_teams(kernel: TileKernel, role: Any) -> None:
    """Check that the iterations of a role's loop can be dealt to teams.

    An iteration needs nothing of the one before, and waits for rings in turns: so the tiles are
    waited for in their order, and the parity of each wait is that of the round.
    """
    teams, warps = pipelines.role_teams(role), pipelines.role_warps(role)
    if kernel.warps != WARPGROUP_WARPS or len(warps) != teams * kernel.warps:
        _fail(
            kernel,
            role,
            f"of {len(warps)} warps has {teams} teams, and tiles have {kernel.warps}",
            "each team is a warpgroup that holds whole tiles",
        )
    *listed, _ = (op.operation for op in role.regions[0].blocks[0].operations)
    loops = [op for op in listed if op.name == "scf.for"]
    if len(loops) != 1 or list(loops[0].results):
        _fail(
            kernel,
            role,
            f"with teams has {len(loops)} loops, or one that carries values",
            "one loop over tiles, each of which is computed by itself",
        )
    for op in listed:
        if op.name in pipelines.OF_RING or (op != loops[0] and len(op.regions)):
            _fail(kernel, op, "beside the loop of a role with teams", "it stands in the loop")
    block, in_turn = loops[0].regions[0].blocks[0], False
    for op in (o.operation for o in block.operations):
        in_turn = op.name == pipelines.TURN_BEGIN or (in_turn and op.name != pipelines.TURN_END)
        for inner in (op, *operations_in(op)):
            if inner.name in (pipelines.WAIT, pipelines.ACQUIRE) and not in_turn:
                _fail(
                    kernel,
                    inner,
                    "of a role with teams, outside of a turn",
                    f"it stands between {pipelines.TURN_BEGIN} and {pipelines.TURN_END}",
                )


# Turns.
def _check_turn(kernel: TileKernel, begin: Any) -> None:
    """Check that a turn ends in its block, and that all warpgroups of the role take it."""
    groups, warps = pipelines.groups_of(begin), role_of(kernel, begin).warps
    if groups * WARPGROUP_WARPS != len(warps) or warps.start:
        _fail(
            kernel,
            begin,
            f"of {groups} warpgroups, in a role of {len(warps)} warps",
            "all warpgroups of a role, which begins at warp 0, take turns",
        )
    following = _turns_behind(begin)
    if not following or following[0].name != pipelines.TURN_END:
        _fail(kernel, begin, "without an end in its block", _PAIRS)


def _opens(end: Any) -> bool:
    """Return whether a turn begins before a lego.turn_end."""
    begins = (o.operation for o in end.block.operations)
    return any(op.name == pipelines.TURN_BEGIN and _turns_behind(op)[:1] == [end] for op in begins)


def _turns_behind(op: Any) -> list[Any]:
    """Return the begins and ends of turns behind an operation of their block."""
    listed = [o.operation for o in op.block.operations]
    names = (pipelines.TURN_BEGIN, pipelines.TURN_END)
    return [other for other in listed[listed.index(op) + 1 :] if other.name in names]


# Asynchronous dots.
def _check_result(kernel: TileKernel, dot: Any) -> None:
    """Check that nothing reads the result of a dot that has only begun."""
    for use in dot.results[0].uses:
        user = use.owner.operation
        accumulates = user.name == pipelines.DOT_ASYNC and use.operand_number == 2
        if not (accumulates or user.name == pipelines.DOT_WAIT or user.name in _CARRIES):
            _fail(
                kernel,
                user,
                "of a dot that has only begun",
                f"{pipelines.DOT_WAIT} waits for it; what it returns can be read",
            )
