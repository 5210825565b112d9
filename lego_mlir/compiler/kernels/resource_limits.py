"""Check kernels and launches against the limits of a GPU: threads, grid, registers.

The errors have the location in the source. Sizes are known from stage `ptx` on, registers when the
kernels are assembled. (`mlir.to_nvvm.shared_memory` checks shared memory.)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from lego_mlir.compiler.backend.assembly import Cubin
from lego_mlir.hardware.limits import (
    HOPPER_SMS,
    MAX_CTA_DIMS,
    MAX_CTA_THREADS,
    MAX_GRID_DIMS,
    MAX_SM_THREADS,
    SM_REGISTERS,
    WARP_THREADS,
)
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.modules import launches_in, symbols_in

LAUNCH_SIZES = ("grid x", "grid y", "grid z", "block x", "block y", "block z")
"""The names of a launch's sizes, in order."""

_LIMITS = (*MAX_GRID_DIMS, *MAX_CTA_DIMS)

_BLOCK_SIZES = ("nvvm.maxntid", "nvvm.reqntid")
"""The attributes of a kernel that give the threads of a CTA along x, y and z."""

_SHARED_SEGMENT = 10
"""Which segment of a launch's operands is the size of its dynamic shared memory."""

_REGISTER_UNIT = 8
"""Registers of a thread are allocated in multiples of this."""


def check_sizes(sizes: Sequence[int | None], location: Any, source: Source) -> None:
    """Check the sizes of a launch.

    Args:
        sizes: as `LAUNCH_SIZES`; `None` for one that is not known.
        location: of the launch, for errors.
        source: the module's text, for errors.

    Raises:
        LegoError: a GPU does not take one of the sizes.
    """
    block = [1 if size is None else size for size in sizes[3:]]
    if prod(block) > MAX_CTA_THREADS:
        raise source.error(
            f"a CTA of {'×'.join(map(str, block))} has {prod(block)} threads; "
            f"a GPU takes at most {MAX_CTA_THREADS}",
            location,
            hint="launch smaller CTAs, and more of them",
        )
    for size, most, what in zip(sizes, _LIMITS, LAUNCH_SIZES, strict=True):
        if size is not None and not 1 <= size <= most:
            raise source.error(
                f"the {what} of this launch is {size}; a GPU takes 1 to {most}", location
            )


def check_launches(module: Any, source: Source) -> None:
    """Check all sizes that a module of stage nvvm gives: by its launches, or on its kernels.

    Raises:
        LegoError: a GPU does not take one of the sizes.
    """
    for op in launches_in(module):
        check_sizes(_sizes(op), op.location, source)
    for op in symbols_in(module):
        for name in _BLOCK_SIZES:
            if name in op.attributes:
                block = [*ir.DenseI32ArrayAttr(op.attributes[name]), 1, 1][:3]
                check_sizes([None, None, None, *block], op.location, source)


def check_occupancy(operations: Sequence[Any], source: Source) -> None:
    """Check for how many CTAs of a multiprocessor launches ask for registers, `lego.ctas_per_sm`.

    Args:
        operations: those of a module whose launches may not be outlined yet.
        source: the module's text, for errors.

    Raises:
        LegoError: it is no number of CTAs that a multiprocessor can hold.
    """
    for op in operations:
        if dialect.CTAS_PER_SM not in op.attributes:
            continue
        attribute = op.attributes[dialect.CTAS_PER_SM]
        block = [1 if size is None else size for size in _sizes(op)[3:]]
        most = max(1, MAX_SM_THREADS // max(1, prod(block)))
        count = attribute.value if isinstance(attribute, ir.IntegerAttr) else None
        if count is None or not 1 <= count <= most:
            raise source.error(
                f"'{dialect.CTAS_PER_SM}' is {attribute}, and a multiprocessor holds 1 to {most} "
                f"CTAs of {prod(block)} threads",
                op.location,
                hint=f"{{{dialect.CTAS_PER_SM} = {most}}}",
            )


def check_registers(module: Any, cubin: Cubin, source: Source) -> None:
    """Check that a multiprocessor has enough registers for each launch of a module.

    Args:
        module: of stage nvvm.
        cubin: its machine code.
        source: the module's text, for errors.

    Raises:
        LegoError: the threads of a CTA need more registers than there are.
    """
    registers = {kernel.kernel: kernel.registers for kernel in cubin.resources}
    for op in launches_in(module):
        kernel = list(op.attributes["kernel"].value)[-1]
        block = [1 if size is None else size for size in _sizes(op)[3:]]
        warps = -(-prod(block) // WARP_THREADS)
        each = -(-registers.get(kernel, 0) // _REGISTER_UNIT) * _REGISTER_UNIT
        if warps * WARP_THREADS * each > SM_REGISTERS:
            raise source.error(
                f"kernel '{kernel}' takes {registers[kernel]} registers a thread; "
                f"a CTA of {prod(block)} threads needs {warps * WARP_THREADS * each}, "
                f"a multiprocessor has {SM_REGISTERS}",
                op.location,
                hint="launch smaller CTAs, or give the gpu.func its known_block_size, "
                "for which it then is compiled",
            )


def is_alone(launch: Any, target: Target) -> bool:
    """Return whether a CTA of a `gpu.launch_func` has a multiprocessor for itself.

    It has if there are no more CTAs than an H100 has multiprocessors, or if another would find no
    dynamic shared memory. Sizes that are not constant say nothing. On GPUs with fewer
    multiprocessors some have several of the CTAs, as far as their registers go.
    """
    segments = list(launch.attributes["operandSegmentSizes"])
    first = sum(segments[:_SHARED_SEGMENT])
    known = _known(list(launch.operands)[first]) if segments[_SHARED_SEGMENT] else None
    grid = [n for n in _sizes(launch)[:3] if n is not None]
    are_few = len(grid) == 3 and prod(grid) <= HOPPER_SMS
    return are_few or 2 * (known or 0) > target.optin_shared_bytes


def _sizes(launch: Any) -> list[int | None]:
    """Return the sizes of a launch, `None` for those that are not constant."""
    first, *_ = launch.attributes["operandSegmentSizes"]
    return [_known(value) for value in list(launch.operands)[first : first + len(LAUNCH_SIZES)]]


def _known(value: Any) -> int | None:
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return None
    return ir.IntegerAttr(value.owner.operation.attributes["value"]).value  # type: ignore[no-any-return]
