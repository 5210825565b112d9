"""Control flow, barriers and fences. Source: PTX ISA 9.7.12, 9.7.13, 9.7.19."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.hardware.limits import TENSOR_MAP_BYTES
from lego_mlir.sim.instructions.memory.addresses import address_of
from lego_mlir.sim.ptx.decoded import (
    Barrier,
    Branch,
    Exit,
    Handler,
    Reduction,
    Trap,
    Wait,
    WarpCollective,
)
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.syntax import Symbol
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import PRED, U32

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave


@instruction("9.7.12.3", "bra [uni]")
def bra(form: Form) -> Branch:
    """Branch to a label; `.uni` changes nothing."""
    form.expect(1)
    target = form.operands[0]
    if not isinstance(target, Symbol) or target.name not in form.symbols.labels:
        form.fail(f"{target} is no label of this kernel", target)
    return Branch(target.name)


@instruction("9.7.12.7", "exit")
def exit_(form: Form) -> Exit:
    """End the thread."""
    form.expect(0)
    return Exit()


@instruction("9.7.19.4", "trap")
def trap(form: Form) -> Trap:
    """Abort the kernel, as an error."""
    form.expect(0)
    return Trap()


@instruction("9.7.13.1", "bar [cta] sync", "barrier [cta] sync [aligned]")
def barrier(form: Form) -> Barrier:
    """Wait until the threads of the CTA have arrived; exited threads do not count.

    With a thread count, wait for so many. Threads are counted one by one, not by warps, so the
    `.aligned` forms allow the lanes of a warp to come from different instructions.
    """
    form.expect(1, 2)
    number = form.read(form.operands[0], U32)
    count = form.read(form.operands[1], U32) if len(form.operands) == 2 else None
    return Barrier(number, count)


@instruction("9.7.13.1", "bar [cta] arrive", "barrier [cta] arrive [aligned]")
def barrier_arrive(form: Form) -> Barrier:
    """Arrive at a barrier without waiting."""
    form.expect(2)
    number, count = (form.read(operand, U32) for operand in form.operands)
    return Barrier(number, count, waits=False)


@instruction(
    "9.7.13.1",
    "bar [cta] red popc u32",
    "bar [cta] red and|or pred",
    "barrier [cta] red popc [aligned] u32",
    "barrier [cta] red and|or [aligned] pred",
)
def barrier_reduce(form: Form) -> Barrier:
    """Wait as `bar.sync`, and count the threads where a predicate holds, or test all or any."""
    form.expect(3, 4)
    target, number, *counts, predicate = form.operands
    operation = form.one_of("popc", "and", "or")
    reduction = Reduction(
        operation,
        form.predicate(predicate),
        form.write(target, U32 if operation == "popc" else PRED),
    )
    count = form.read(counts[0], U32) if counts else None
    return Barrier(form.read(number, U32), count, reduction=reduction)


@instruction("9.7.13.2", "bar warp sync")
def bar_warp_sync(form: Form) -> WarpCollective:
    """Wait for the named lanes of the warp."""
    form.expect(1)
    members = form.read(form.operands[0], U32)
    return WarpCollective(members, lambda w: w.observer.warp_converged(members(w), w.mask))


_SCOPES = "cta|cluster|gpu|sys"


@instruction(
    "9.7.13.4",
    "membar cta|gl|sys",
    f"fence [sc|acq_rel|acquire|release] {_SCOPES}",
    "fence acquire sync_restrict::shared::cluster cluster",
    "fence release sync_restrict::shared::cta cluster",
    "fence mbarrier_init release cluster",
)
def fence(form: Form) -> Handler:
    """Order memory accesses. Execution is sequentially consistent: there is nothing to do."""
    form.expect(0)
    kind = ".".join(form.modifiers)
    return lambda w: w.observer.fenced(kind, w.mask)


@instruction(
    "9.7.13.4",
    "fence proxy alias",
    "fence proxy async",
    "fence proxy async global|shared::cta|shared::cluster",
    f"fence proxy tensormap::generic release {_SCOPES}",
    f"fence proxy tensormap::generic acquire {_SCOPES}",
    "fence proxy async::generic acquire sync_restrict::shared::cluster cluster",
    "fence proxy async::generic release sync_restrict::shared::cta cluster",
)
def fence_proxy(form: Form) -> Handler:
    """Order accesses of two proxies, such as those of threads and of the copy engine.

    The simulator has one memory for all: there is nothing to do.
    """
    acquires = form.has("tensormap::generic") and form.has("acquire")
    form.expect(2 if acquires else 0)
    if acquires:
        address_of(form, form.operands[0], "generic")
        form.constant(form.operands[1], TENSOR_MAP_BYTES, TENSOR_MAP_BYTES)
    kind = ".".join(form.modifiers[1:])
    return lambda w: w.observer.proxy_fenced(kind, w.mask)


@instruction("9.7.13.13", "griddepcontrol launch_dependents|wait")
def griddepcontrol(form: Form) -> Handler:
    """Overlap with other grids: there is only this one, so nothing is done."""
    form.expect(0)
    return lambda w: None


@instruction("9.7.19.5", "setmaxnreg inc|dec sync aligned u32")
def setmaxnreg(form: Form) -> Handler | Wait:
    """Change how many registers each thread may use; `.inc` waits until there are so many."""
    form.expect(1)
    count = form.constant(form.operands[0], 24, 256)
    if count % 8:
        form.fail(f"{count} registers, which is no multiple of 8", form.operands[0])
    more = form.has("inc")

    def execute(w: Wave) -> None:
        w.grants.set(form.instruction, count, more=more)
        w.observer.registers_set(count, w.mask)

    if not more:
        return execute
    nothing = np.zeros(0, np.int64)
    return Wait(
        execute,
        lambda w: w.grants.enough(count),
        lambda w, lane: w.grants.reason(lane, count),
        lambda w: nothing,
        False,
    )


@instruction("9.7.19.3", "pmevent [mask]")
def pmevent(form: Form) -> Handler:
    """Trigger events of a profiler: there is none."""
    form.expect(1)
    form.constant(form.operands[0], 0, 0xFFFF)
    return lambda w: None


@instruction("9.7.19.2", "nanosleep u32")
def nanosleep(form: Form) -> Handler:
    """Suspend the thread for a while: the simulator has no time."""
    form.expect(1)
    form.read(form.operands[0], U32)
    return lambda w: None
