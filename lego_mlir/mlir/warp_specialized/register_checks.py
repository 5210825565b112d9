"""Checks that the registers of producer and consumers suffice."""

from __future__ import annotations

from lego_mlir.hardware.limits import SM_REGISTERS, WARP_THREADS, WARPGROUP_WARPS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tiles.main_loop import MainLoop


def check_promotion(step: TransformStep, main_loop: MainLoop, promote: int) -> None:
    """Check that threads can accumulate the partial sums of a loop.

    Raises:
        LegoError: `promote` is negative, or the sums are integers.
    """
    if not promote:
        return
    if promote < 0:
        raise step.misuse(
            f"promote = {promote} is no number of iterations", hint=step.option("promote", 0)
        )
    for value in list(main_loop.loop.operands)[3:]:
        kind = value.type
        if not isinstance(kind, ir.VectorType) or not isinstance(kind.element_type, ir.FloatType):
            raise step.error(
                f"only floating-point accumulators are promoted, but the loop carries {kind}",
                main_loop.loop,
                hint=step.option("promote", 0),
            )


def check_registers(step: TransformStep, producer: int, consumer: int, groups: int) -> None:
    """Check the operands of setmaxnreg, and that a multiprocessor has enough registers.

    Source: PTX ISA 9.7.19.5 (setmaxnreg).
    """
    for count in (producer, consumer):
        if count and (count % 8 or not 24 <= count <= 256):
            raise step.misuse(
                f"setmaxnreg does not take {count} registers a thread",
                hint="a multiple of 8 from 24 to 256, or 0",
            )
    total = (producer + groups * consumer) * WARPGROUP_WARPS * WARP_THREADS
    if producer and consumer and total > SM_REGISTERS:
        most = (SM_REGISTERS // (WARPGROUP_WARPS * WARP_THREADS) - producer) // groups // 8 * 8
        raise step.misuse(
            f"a CTA of {groups + 1} warpgroups needs {total} registers, "
            f"a multiprocessor has {SM_REGISTERS}",
            hint=step.option("consumer_registers", most),
        )
