"""Give the buffers of a kernel on tiles offsets in one allocation of shared memory.

    %a = "lego.alloc"() {layout = #A}       // from the first use ...
    %b = "lego.alloc"() {layout = #B}

becomes

    %a = memref.view %memory[%c0]
    %b = memref.view %memory[%c4096]

A buffer exists from its first use to its last; what a loop or branch does with it is one use. What
it holds when its lego.alloc is reached again is unknown, so a buffer of a loop's body exists for a
part of each iteration. A buffer that other CTAs of a cluster send into exists from the begin. An
alloc may state an alignment.

Buffers that do not exist at the same time may share bytes. But then a barrier stands between them,
so the smallest share none: as many as leave room for all CTAs that the registers allow on a
multiprocessor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lego_mlir.analysis.buffer_lifetimes import BufferLifetime, assign_offsets, least_bytes
from lego_mlir.hardware.limits import (
    MAX_ACCESS_BYTES,
    MAX_SM_THREADS,
    MAX_THREAD_REGISTERS,
    RESERVED_SHARED_BYTES,
    SM_REGISTERS,
    WARP_THREADS,
)
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.buffer_users import ancestor_in, last_inside, users_of
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.dialect.pipeline_operations import role_teams
from lego_mlir.mlir.emit.operations import constant, make
from lego_mlir.mlir.lowering.buffers import (
    DYNAMIC_ALIGNMENT,
    allocated_type,
    bytes_of,
    is_workgroup,
    replace_alloc,
    room,
)
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.roles import role_around
from lego_mlir.mlir.tile_passes.live_registers import live_registers
from lego_mlir.mlir.to_nvvm.shared_memory import LEAST_ALIGNMENT, TargetMemory

_TEAM_ALIGNMENT = 128
"""Bytes: the alignment of each team's part of a buffer."""


@dataclass(frozen=True, slots=True)
class _Buffer:
    """A lego.alloc of shared memory.

    Attributes:
        op: the operation.
        kind: its type of memref, of known size.
        lifetime: its size, and the numbers of its first and last use.
        teams: of a role, each of which uses a part of it for itself.
    """

    op: Any
    kind: Any
    lifetime: BufferLifetime
    teams: int = 1


def plan_shared_memory(kernel: TileKernel) -> None:
    """Replace the lego.alloc of shared memory in a kernel by views of one buffer.

    Raises:
        LegoError: they need more than a CTA may have; names the largest.
    """
    inside = list(operations_in(kernel.launch))
    allocs = [op for op in inside if _is_shared_alloc(op)]
    if not allocs:
        return
    numbers = {op: number for number, op in enumerate(inside)}
    buffers = [_buffer(kernel, op, numbers) for op in allocs]
    certain = _bytes_of_ctas(kernel, MAX_SM_THREADS)
    free = partial(_free_bytes, kernel)
    offsets = offsets_of([b.lifetime for b in buffers], free, certain)
    used = max(at + b.lifetime.size for at, b in zip(offsets, buffers, strict=True))
    if dialect.MIN_SHARED_BYTES in kernel.launch.attributes:
        least = ir.IntegerAttr(kernel.launch.attributes[dialect.MIN_SHARED_BYTES]).value
        used = max(used, least)
    # LLVM makes one access of 16 bytes of neighbours that have fewer, and does not use the rest.
    size = -(-used // MAX_ACCESS_BYTES) * MAX_ACCESS_BYTES
    _check_size(kernel, size, buffers)
    byte, space = ir.IntegerType.get_signless(8), buffers[0].kind.memory_space
    with ir.InsertionPoint.at_block_begin(kernel.body), kernel.launch.location:
        kind = ir.MemRefType.get([size], byte, memory_space=space)
        memory = room(allocs[0], kind, kernel.source)
        i64 = ir.IntegerType.get_signless(64)
        for buffer, offset in zip(buffers, offsets, strict=True):
            with buffer.op.location:
                start = constant(ir.IndexType.get(), offset)
                view = make("memref.view", buffer.kind, memory, start)
                if buffer.teams > 1:
                    distance = buffer.lifetime.size // buffer.teams
                    sizes = {dialect.TEAM_BYTES: distance, dialect.ALIGNMENT: _TEAM_ALIGNMENT}
                    for name, n in sizes.items():
                        view.owner.attributes[name] = ir.IntegerAttr.get(i64, n)
                for name in (dialect.GUARDED, dialect.ORDERED):
                    if name in buffer.op.attributes:
                        view.owner.attributes[name] = ir.UnitAttr.get()
                replace_alloc(buffer.op, view)
    for op in allocs:
        op.erase()


def _is_shared_alloc(op: Any) -> bool:
    return op.name == dialect.ALLOC and is_workgroup(op.results[0].type)


def _teams(alloc: Any) -> int:
    """Return how many teams of a role use memory, each a part of it for itself."""
    if dialect.GUARDED in alloc.attributes:
        return 1
    roles = (role_around(user) for user in users_of(alloc.results[0]))
    return max((role_teams(role) for role in roles if role is not None), default=1)


def _free_bytes(kernel: TileKernel) -> int:
    """Return the bytes that a CTA may have if as many CTAs run as their registers allow."""
    registers = min(max(1, live_registers(kernel.body)), MAX_THREAD_REGISTERS)
    return _bytes_of_ctas(kernel, SM_REGISTERS // registers)


def _bytes_of_ctas(kernel: TileKernel, threads: int) -> int:
    """Return the bytes that each CTA may have if a multiprocessor has so many threads at most."""
    ctas = max(1, min(MAX_SM_THREADS, threads) // (WARP_THREADS * kernel.warps))
    return kernel.target.optin_shared_bytes // ctas - RESERVED_SHARED_BYTES


def _buffer(kernel: TileKernel, op: Any, numbers: Mapping[Any, int]) -> _Buffer:
    """Return the size and lifetime of an allocation.

    Args:
        kernel: the kernel.
        op: the lego.alloc.
        numbers: of the kernel's operations, in the order of the text.
    """
    kind = allocated_type(op, kernel.layouts.of(op), kernel.source)
    uses = {ancestor_in(op.block, user) for user in users_of(op.results[0])}
    first = min(map(numbers.__getitem__, uses), default=0)
    sends = [u for u in users_of(op.results[0]) if u.name == tiles.SEND_PARTS]
    if sends:
        first = 0  # another CTA of the cluster may be there already, and send
    last = max((numbers[last_inside(use)] for use in uses), default=0)
    # Copies into it are on their way when nobody waits, or other CTAs are iterations ahead.
    if dialect.GUARDED in op.attributes or any(map(tiles.has_slots, sends)):
        first, last = 0, len(numbers) - 1
    alignment = dialect.alignment_in(op.attributes, LEAST_ALIGNMENT)
    if not 0 < alignment <= DYNAMIC_ALIGNMENT or alignment & (alignment - 1):
        raise kernel.source.error(
            f"{dialect.ALIGNMENT} of shared memory is a power of two up to {DYNAMIC_ALIGNMENT}, "
            f"not {alignment}",
            op.location,
        )
    size, teams = bytes_of(kind), _teams(op)
    if teams > 1:  # one team may be in another iteration
        first, last = 0, len(numbers) - 1
        alignment = max(alignment, _TEAM_ALIGNMENT)
        size = teams * (-(-size // alignment) * alignment)
    return _Buffer(op, kind, BufferLifetime(size, alignment, first, last), teams)


def offsets_of(
    lifetimes: Sequence[BufferLifetime], free: Callable[[], int], certain: int = 0
) -> list[int]:
    """Return offsets at which as many of the smallest buffers as possible share no bytes.

    Args:
        lifetimes: of the buffers.
        free: returns the bytes that cost nothing; called where more than `certain` are wanted.
        certain: bytes that cost nothing however many registers there are.
    """
    shared = assign_offsets(lifetimes)
    at_least = max(_end(lifetimes, shared), certain)
    most: int | None = None
    by_size = sorted(range(len(lifetimes)), key=lambda k: lifetimes[k].size, reverse=True)
    last = max(b.last_use for b in lifetimes)
    alone = [replace(b, first_use=0, last_use=last) for b in lifetimes]
    for sharing in range(len(lifetimes)):
        if sharing and alone[by_size[sharing - 1]] == lifetimes[by_size[sharing - 1]]:
            continue  # it shares no bytes anyway: nothing has changed
        separate = list(lifetimes)
        for k in by_size[sharing:]:
            separate[k] = alone[k]
        least = least_bytes(separate)
        if least > at_least and most is None:
            most = max(at_least, free())
        if most is not None and least > most:
            continue  # whatever their offsets
        offsets = assign_offsets(separate)
        end = _end(separate, offsets)
        if end > at_least and most is None:
            most = max(at_least, free())
        if end <= (at_least if most is None else most):
            return offsets
    return shared


def _end(lifetimes: Sequence[BufferLifetime], offsets: Sequence[int]) -> int:
    return max(at + b.size for at, b in zip(offsets, lifetimes, strict=True))


def _check_size(kernel: TileKernel, size: int, buffers: Sequence[_Buffer]) -> None:
    """Refuse what is more than a CTA may have."""
    most = kernel.target.optin_shared_bytes
    if size <= most:
        return
    largest = max(buffers, key=lambda b: b.lifetime.size)
    layout = kernel.layouts.of(largest.op)
    memory = TargetMemory(kernel.target.name, most, kernel.target.static_shared_bytes)
    raise kernel.source.error(
        f"{memory.too_much(size)}; the largest buffer, of {largest.lifetime.size} bytes, is "
        f"'{layout}' of {largest.kind.element_type}",
        largest.op.location,
        hint="take smaller tiles or fewer stages, or give both sides of a conversion one layout",
    )
