"""`transform_lego.pack_shared`: pack a kernel's shared memory into one dynamic buffer.

    %a = "lego.alloc"() {layout = #tiles}             // 64 KiB, used in the loop
    %c = "lego.alloc"() {layout = #result}            // 32 KiB, used after it

becomes, in a launch with 64 KiB of dynamic shared memory,

    %memory = gpu.dynamic_shared_memory
    %a = memref.view %memory[%c0]
    %c = memref.view %memory[%c0]

with a barrier in between: buffers that are not live at the same time share bytes. A buffer's offset
is a multiple of 128 bytes, or of its attribute `lego.alignment`, up to 1024. `min_shared_bytes` is
a lower limit of the size, which limits the CTAs per multiprocessor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lego_mlir.analysis.buffer_lifetimes import BufferLifetime, assign_offsets
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, memref
from lego_mlir.mlir.buffer_users import ancestor_in, users_of
from lego_mlir.mlir.lowering.buffers import (
    DYNAMIC_ALIGNMENT,
    DYNAMIC_SHARED,
    bytes_of,
    is_workgroup,
    replace_alloc,
)
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tiles.accesses import WORKGROUP
from lego_mlir.mlir.tiles.kernels import LAUNCH, barrier, kernels_of
from lego_mlir.mlir.to_nvvm.shared_memory import (
    LEAST_ALIGNMENT,
    TargetMemory,
    dynamic_size,
    with_dynamic_size,
)


@dataclass(frozen=True, slots=True)
class _Buffer:
    """A lego.alloc of shared memory.

    Attributes:
        op: the operation.
        kind: its type of memref.
        room: its size and alignment, and the positions of its first and last use.
    """

    op: Any
    kind: Any
    room: BufferLifetime


@transform("pack_shared")
def pack_shared(step: TransformStep) -> list[list[Any]]:
    """Pack the shared memory of each kernel, and return the kernels; launches are new ones."""
    return [[_packed(step, kernel) for kernel in kernels_of(step)]]


def _packed(step: TransformStep, kernel: Any) -> Any:
    found = [(op, op.name) for op in operations_in(kernel)]
    allocs = [op for op, name in found if name == dialect.ALLOC and _is_shared(op)]
    if not allocs:
        return kernel
    if any(name == DYNAMIC_SHARED for _, name in found):
        raise step.error("the kernel already has dynamic shared memory", kernel)
    users = [list(users_of(op.results[0])) for op in allocs]
    block = _common_block([user for of in users for user in of], kernel)
    operations = [op.operation for op in block.operations]
    buffers = [
        _buffer(step, op, [ancestor_in(block, user) for user in of], operations)
        for op, of in zip(allocs, users, strict=True)
    ]
    offsets = assign_offsets([buffer.room for buffer in buffers])
    used = max(o + b.room.size for o, b in zip(offsets, buffers, strict=True))
    size = max(used, step.number("min_shared_bytes", 0))
    _check_size(step, kernel, size, buffers)
    _separate(block, operations, buffers, offsets)
    with ir.InsertionPoint.at_block_begin(kernel.regions[0].blocks[0]), kernel.location:
        space = ir.Attribute.parse(WORKGROUP)
        dynamic, byte = ir.ShapedType.get_dynamic_size(), ir.IntegerType.get_signless(8)
        kind = ir.MemRefType.get([dynamic], byte, memory_space=space)
        memory = ir.Operation.create(DYNAMIC_SHARED, results=[kind]).result
        for buffer, offset in zip(buffers, offsets, strict=True):
            with buffer.op.location:
                start = arith.ConstantOp(ir.IndexType.get(), offset).result
                replace_alloc(buffer.op, memref.ViewOp(buffer.kind, memory, start, []).result)
    for op in allocs:
        step.erase(op)
    launches = [kernel] if kernel.name == LAUNCH else list(_launches_of(kernel))
    made = [_with_dynamic_shared(step, launch, size) for launch in launches]
    return made[0] if kernel.name == LAUNCH else kernel


def _is_shared(alloc: Any) -> bool:
    return is_workgroup(alloc.results[0].type)


def _buffer(
    step: TransformStep, op: Any, users: Sequence[Any], operations: Sequence[Any]
) -> _Buffer:
    """Return the size, alignment and live range of an allocation.

    Args:
        step: for errors.
        op: the allocation.
        users: the operations of the block that use it, or contain a use.
        operations: the operations of the block.
    """
    layout = step.pass_context.layouts.of(op)
    if not isinstance(layout.size, int):
        names = ", ".join(s.name for s in layout.symbols)
        raise step.error(f"the size of '{layout}' has symbols ({names})", op)
    old = ir.MemRefType(op.results[0].type)
    kind = ir.MemRefType.get([layout.size], old.element_type, memory_space=old.memory_space)
    first = last = None
    for around in users:
        if first is None or around.is_before_in_block(first):
            first = around
        if last is None or last.is_before_in_block(around):
            last = around
    positions = [0 if o is None else operations.index(o) for o in (first, last)]
    return _Buffer(op, kind, BufferLifetime(bytes_of(kind), _alignment(step, op), *positions))


def _alignment(step: TransformStep, op: Any) -> int:
    if dialect.ALIGNMENT not in op.attributes:
        return LEAST_ALIGNMENT
    n: int = ir.IntegerAttr(op.attributes[dialect.ALIGNMENT]).value
    if n < 1 or n & (n - 1) or n > DYNAMIC_ALIGNMENT:
        raise step.error(
            f"{dialect.ALIGNMENT} of shared memory is a power of two up to {DYNAMIC_ALIGNMENT}, "
            f"not {n}",
            op,
        )
    return max(n, LEAST_ALIGNMENT)


def _common_block(users: Sequence[Any], kernel: Any) -> Any:
    """Return the innermost block of the kernel and its loops that contains all `users`."""
    block = kernel.regions[0].blocks[0]
    while users:
        around = [ancestor_in(block, user) for user in users]
        if any(op != around[0] for op in around) or around[0].name != "scf.for":
            break
        block = around[0].regions[0].blocks[0]
    return block


def _check_size(step: TransformStep, kernel: Any, size: int, buffers: Sequence[_Buffer]) -> None:
    target = step.pass_context.target
    static = sum(bytes_of(ir.MemRefType(a.type)) for a in _static_buffers(kernel))
    if size + static <= target.optin_shared_bytes:
        return
    largest = max(buffers, key=lambda b: b.room.size)
    layout = step.pass_context.layouts.of(largest.op)
    raise step.error(
        TargetMemory(target.name, target.optin_shared_bytes).too_much(size + static),
        kernel,
        hint=f"use fewer stages or smaller tiles; the largest buffer is {largest.room.size} bytes, "
        f"'{layout}' of {largest.kind.element_type}",
    )


def _static_buffers(kernel: Any) -> list[Any]:
    arguments = list(kernel.regions[0].blocks[0].arguments)
    return [a for a in arguments if isinstance(a.type, ir.MemRefType) and is_workgroup(a.type)]


def _separate(
    block: Any, operations: Sequence[Any], buffers: Sequence[_Buffer], offsets: Sequence[int]
) -> None:
    """Put barriers between the last use of a buffer and the first of another at its bytes."""
    barriers = [k for k, op in enumerate(operations) if op.name == "gpu.barrier"]
    shares = False
    for late, at in zip(buffers, offsets, strict=True):
        ends = [
            early.room.last_use
            for early, o in zip(buffers, offsets, strict=True)
            if early.room.last_use < late.room.first_use
            and o < at + late.room.size
            and at < o + early.room.size
        ]
        shares = shares or bool(ends)
        if ends and not any(max(ends) < k < late.room.first_use for k in barriers):
            with ir.InsertionPoint(operations[late.room.first_use]), late.op.location:
                barrier()
            barriers.append(late.room.first_use - 1)
    if shares and block.owner.name == "scf.for" and operations[-2].name != "gpu.barrier":
        with ir.InsertionPoint(operations[-1]), block.owner.location:
            barrier()


def _launches_of(function: Any) -> Iterator[Any]:
    """Yield the launches of a gpu.func."""
    path = [function.parent.attributes["sym_name"].value, function.attributes["sym_name"].value]
    module = function.parent.parent
    for op in operations_in(module):
        if op.name == "gpu.launch_func" and list(op.attributes["kernel"].value) == path:
            yield op


def _with_dynamic_shared(step: TransformStep, launch: Any, size: int) -> Any:
    """Replace a launch by one with `size` bytes of dynamic shared memory."""
    if dynamic_size(launch) is not None:
        raise step.error("the launch already has dynamic shared memory", launch)
    made = with_dynamic_size(launch, size)
    step.erase(launch)
    return made
