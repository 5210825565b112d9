"""The protocol of rings: roles number tiles 0, 1, 2, ..., and read them while they are there.

How tiles are numbered is proven by `tile_ir.ring_numbers`.
Whether a role waits for itself is another question (`runs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from lego_mlir.analysis.distributed.conversions.shared_copies import plan_shared_copy
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.tile_ir.dots import matrix_instructions
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.ring_numbers import RingNumbers
from lego_mlir.mlir.tile_ir.roles import role_around, role_of
from lego_mlir.mlir.tile_ir.types import (
    bytes_of,
    element_of,
    is_shared_tile,
    shared_layout_in,
    shared_layout_of,
)


def check_rings(kernel: TileKernel, inside: Sequence[Any]) -> None:
    """Check what the roles of a kernel with these operations do with rings.

    Raises:
        LegoError: at the operation that breaks the protocol, or is not proven to keep it.
    """
    rings = [op.results[0] for op in inside if op.name == pipelines.MAKE_RING]
    if not rings:
        return
    for ring in rings:
        _check_roles(kernel, ring)
    roles = [op for op in inside if op.name == pipelines.ROLE]
    bodies = [role.regions[0].blocks[0] for role in roles] or [kernel.body]
    numbers = RingNumbers(kernel)
    for body in bodies:
        numbers.check(body)
    for op in inside:
        if op.name == pipelines.ACQUIRE:
            _check_copies(kernel, op)
        elif op.name == pipelines.WAIT:
            _check_reads(kernel, op)
        elif op.name == pipelines.PUT and is_shared_tile(op.operands[2]):
            _check_shared_copy(kernel, op)


def _fail(kernel: TileKernel, op: Any, message: str, hint: str) -> NoReturn:
    raise kernel.source.error(f"'{op.name}' {message}", op.location, hint=hint)


def _users(ring: Any, names: Iterable[str]) -> list[Any]:
    return [u.owner.operation for u in ring.uses if u.owner.name in names]


def _check_roles(kernel: TileKernel, ring: Any) -> None:
    """Check that one role produces a ring's tiles, and that some role consumes them."""
    maker = ring.owner.operation
    if maker.block != kernel.body:
        _fail(kernel, maker, "in a loop, branch or role", "make rings in the kernel's body")
    producers = {role_around(op) for op in _users(ring, pipelines.PRODUCES)}
    if len(producers) != 1:
        _fail(
            kernel,
            maker,
            f"has {len(producers)} roles that fill it",
            "one role acquires, copies and commits the tiles of a ring",
        )
    fills = {op.name for op in _users(ring, pipelines.FILLS)} or {pipelines.COPY_ASYNC}
    if len(fills) > 1:
        _fail(
            kernel,
            maker,
            f"has '{pipelines.COPY_ASYNC}' and '{pipelines.PUT}'",
            "the tiles of a ring are all copied, or all put",
        )
    for name in (pipelines.ACQUIRE, *fills, pipelines.COMMIT, *pipelines.CONSUMES):
        if not _users(ring, [name]):
            _fail(
                kernel,
                maker,
                f"has no '{name}'",
                "a tile is acquired, copied or put, committed, waited for and released",
            )


# Copies and reads.
def _check_copies(kernel: TileKernel, acquire: Any) -> None:
    """Check that the copies of a tile stand between its lego.acquire and its lego.commit."""
    ring, number = acquire.operands
    same = [
        op
        for op in (o.operation for o in acquire.block.operations)
        if op.name in pipelines.PRODUCES and op.operands[0] == ring and op.operands[1] == number
    ]
    names = [op.name for op in same]
    wanted = [[pipelines.ACQUIRE, fill, pipelines.COMMIT] for fill in pipelines.FILLS]
    if names not in wanted:
        _fail(
            kernel,
            acquire,
            "is not followed by one copy and one commit of its tile",
            f"{pipelines.ACQUIRE}, {pipelines.COPY_ASYNC} or {pipelines.PUT}, and "
            f"{pipelines.COMMIT} of one number follow one another in a block",
        )
    for op in _users(ring, pipelines.FILLS):
        if op.operands[1] == number and op.block != acquire.block:
            _fail(kernel, op, "in another block than its acquire", "copy right after it")


def _check_shared_copy(kernel: TileKernel, put: Any) -> None:
    """Check that a role can copy a tile from shared memory to where a ring has it."""
    tile = put.operands[2]
    source = shared_layout_of(tile)
    target = shared_layout_in(pipelines.tile_type_of(put.operands[0]))
    assert source is not None  # the types have been checked
    assert target is not None
    warps = len(role_of(kernel, put).warps)
    size = bytes_of(element_of(tile))
    has_instructions = matrix_instructions(kernel.target).store
    if not has_instructions or plan_shared_copy(source, target, size, warps) is None:
        _fail(
            kernel,
            put,
            f"of a tile in shared memory: {warps} warps of {kernel.target.name} do not copy it by "
            f"matrices from '{source}' to '{target}'",
            "another number of warps, or convert the tile to registers and put that",
        )


def _check_reads(kernel: TileKernel, wait: Any) -> None:
    """Check that a tile is used in its block, before its release."""
    ring, number = wait.operands
    release = next(
        (
            op
            for op in _users(ring, [pipelines.RELEASE])
            if op.operands[1] == number and op.block == wait.block
        ),
        None,
    )
    pending = [wait.results[0]]
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            inside = user
            while inside is not None and inside.block != wait.block:
                inside = inside.parent and inside.parent.operation
            if user.name in ("scf.yield", "scf.condition"):
                _fail(kernel, user, "of a tile in shared memory", "only its release ends a tile")
            if release is not None and inside is not None and release.is_before_in_block(inside):
                _fail(
                    kernel,
                    user,
                    "reads a tile behind its release",
                    f"{pipelines.RELEASE} stands behind all that reads the tile",
                )
            pending.extend(r for r in user.results if is_shared_tile(r))
            if user.name == pipelines.DOT_ASYNC and release is not None:
                _check_finished(kernel, user, release)


def _check_finished(kernel: TileKernel, dot: Any, release: Any) -> None:
    """Check that a dot that reads a tile is waited for before a release in the same block."""
    for use in dot.results[0].uses:
        wait = use.owner.operation
        is_late = wait.block == release.block and release.is_before_in_block(wait)
        if wait.name == pipelines.DOT_WAIT and is_late:
            _fail(
                kernel,
                release,
                "of a tile that a dot still reads",
                f"it stands behind the {pipelines.DOT_WAIT} for the dot",
            )
