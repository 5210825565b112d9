"""Check what is given to MLIR's last passes and to LLVM: names, types, operations, index widths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lego_mlir.hardware.targets import Target
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.modules import operations_in


def check_lowered(kernels: Any, source: Source) -> None:
    """Check that LLVM knows all operations of a gpu.module, and PTX the names of its functions.

    Raises:
        LegoError: at the operation.
    """
    for op in operations_in(kernels):
        name = op.name
        if name == "llvm.func":
            is_kernel = "nvvm.kernel" in op.attributes
            symbol = op.attributes["sym_name"].value
            if not (_KERNEL if is_kernel else _IDENTIFIER).fullmatch(symbol):
                raise source.error(
                    f"the name {symbol!r} cannot stand in PTX",
                    op.location,
                    hint="kernels, and functions that launch them, have names of ASCII letters, "
                    "digits, _ and $, no digit first",
                )
        elif not name.startswith(("llvm.", "nvvm.")):
            raise source.error(
                f"'{name}' is left after the pass pipeline 'nvvm'; LLVM does not know it",
                op.location,
                hint="--emit=nvvm shows what the pipeline makes of the kernels",
            )


def check_types(operations: Sequence[Any], source: Source) -> None:
    """Check that no value is of tf32: the pass that lowers its type ends the process.

    Raises:
        LegoError: at the operation.
    """
    if "tf32" not in source.text:
        return
    for op in operations:
        if any("tf32" in str(value.type) for value in (*op.operands, *op.results)):
            raise source.error(
                f"'{op.name}' has a value of type tf32, which no register or memory holds",
                op.location,
                hint="use f32: tf32 is only a rounding that tensor cores apply to f32 operands",
            )


def check_instructions(operations: Sequence[Any], target: Target, source: Source) -> None:
    """Check that a target has cp.async where it is used: without it LLVM ends the process.

    Source: PTX ISA 9.7.9.25.3, target notes.

    Raises:
        LegoError: at the operation.
    """
    if target.capability >= _HAS_CP_ASYNC:
        return
    for op in operations:
        if op.name.startswith(("nvgpu.device_async", "nvvm.cp.async")):
            raise source.error(
                f"{target.name} has no cp.async",
                op.location,
                hint="--target=sm_80 or later, or loads and stores instead of asynchronous copies",
            )


def index_bitwidth(module: Any, operations: Sequence[Any]) -> int:
    """Return the width of indices that the passes of stage nvvm can use in the kernels.

    `lego.index_bitwidth`, but 64 where an operation is left to passes that take every index for
    one of 64 bits: convert-nvgpu-to-nvvm, and convert-vector-to-llvm for accesses of memory.
    """
    for op in operations:
        namespace, _, name = op.name.partition(".")
        if namespace == "nvgpu" or _is_global_address(op):
            return 64
        if namespace != "vector" or name in _ANY_WIDTH:
            continue
        if any(isinstance(operand.type, ir.MemRefType) for operand in op.operands):
            return 64
    return ir.IntegerAttr(module.operation.attributes[dialect.INDEX_BITWIDTH]).value  # type: ignore[no-any-return]


def _is_global_address(op: Any) -> bool:
    """Return whether an operation's result is an address in global memory, which has 64 bits."""
    if op.name != "memref.extract_aligned_pointer_as_index":
        return False
    return ir.MemRefType(op.operands[0].type).memory_space is None


_HAS_CP_ASYNC = (8, 0)
"""The first compute capability with cp.async."""

_ANY_WIDTH = ("load", "store")

_KERNEL = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,1023}")
"""What PTX takes for a kernel's name, which the back end leaves as it is."""

_IDENTIFIER = re.compile(r"[A-Za-z0-9_$.]+")
"""What the NVPTX back end takes for a symbol; it makes `_$_` of a full stop."""
