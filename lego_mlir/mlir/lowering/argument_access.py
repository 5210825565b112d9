"""Whether kernels read a host function's argument, write it, or both.

The lego operations of the module say so before they are lowered. Operations of upstream dialects
count too, since a module may have kernels that are written without layouts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lego_mlir.artifact import ArgumentAccess
from lego_mlir.mlir import dialect
from lego_mlir.mlir.dialect import tile_operations as tiles

# What happens to the result of these operations happens to their operand.
_VIEWS = (
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.subview",
    "memref.cast",
    "memref.reinterpret_cast",
    "memref.memory_space_cast",
    "llvm.getelementptr",
    "arith.select",
    dialect.PICK,
    *dialect.TENSOR_MAP_OPERATIONS,
)
_READS_AND_WRITES = (dialect.ATOMIC,)
_READS = (
    dialect.LOAD,
    tiles.GATHER,
    tiles.LOAD_PARTS,
    tiles.COPY_PARTS,
    "memref.load",
    "affine.load",
    "vector.load",
    "vector.transfer_read",
    "vector.gather",
    "nvgpu.device_async_copy",
    "nvvm.prefetch",
    "nvvm.cp.async.bulk.tensor.shared.cluster.global",
)
_WRITES = (
    dialect.STORE,
    tiles.SCATTER,
    tiles.STORE_PARTS,
    "memref.store",
    "affine.store",
    "vector.store",
    "vector.transfer_write",
    "nvvm.cp.async.bulk.tensor.global.shared.cta",
)

_SIZES = ("memref.dim", "memref.extract_strided_metadata")
"""What only asks for sizes and strides."""

GpuFunctions = Mapping[tuple[str, ...], Any]
"""The gpu.func operations of a module, by gpu.module and name."""


def argument_access(buffer: Any, kernels: GpuFunctions) -> ArgumentAccess | None:
    """Return how kernels access a buffer, `None` if an operation does not tell.

    Args:
        buffer: an argument of the host function.
        kernels: the gpu.func operations that the function may launch.
    """
    reads = writes = False
    stack = [buffer]
    while stack:
        value = stack.pop()
        for use in value.uses:
            op = use.owner.operation
            if op.name in _VIEWS:
                stack.append(op.results[0])
            elif op.name in _SIZES:
                continue
            elif op.name in _READS:
                reads = True
            elif op.name in _READS_AND_WRITES or (
                op.name in _WRITES and dialect.KIND in op.attributes
            ):
                reads = writes = True
            elif op.name in _WRITES:
                writes = True
            elif op.name == "gpu.launch_func":
                argument = _kernel_argument(op, use.operand_number, kernels)
                if argument is None:
                    return None
                stack.append(argument)
            else:
                return None
    if reads and writes:
        return "readwrite"
    return "read" if reads else "write" if writes else "none"


def _kernel_argument(launch: Any, operand: int, kernels: GpuFunctions) -> Any:
    """Return the argument of a gpu.func that an operand of its launch becomes, if it is known."""
    segments = list(launch.attributes["operandSegmentSizes"])
    kernel = kernels.get(tuple(launch.attributes["kernel"].value))
    if kernel is None or segments[-1]:
        return None
    return kernel.regions[0].blocks[0].arguments[operand - (len(launch.operands) - segments[-2])]
