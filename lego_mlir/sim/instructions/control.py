"""Control flow, barriers and fences. Source: PTX ISA 9.7.12, 9.7.13.1–4, 9.7.19."""

from __future__ import annotations

from lego_mlir.sim.form import Barrier, Branch, Exit, Form, Step, Together, Trap
from lego_mlir.sim.syntax import Symbol
from lego_mlir.sim.table import instruction
from lego_mlir.sim.types import U32


@instruction("9.7.12.3", "bra [uni]")
def bra(form: Form) -> Branch:
    """Go to a label. `.uni` promises what needs no promise here."""
    form.expect(1)
    target = form.operands[0]
    if not isinstance(target, Symbol) or target.name not in form.scope.labels:
        form.fail(f"{target} is no label of this kernel", target)
    return Branch(target.name)


@instruction("9.7.12.6", "ret [uni]")
def ret(form: Form) -> Exit:
    """Return; from a kernel that is the end of the thread."""
    form.expect(0)
    return Exit()


@instruction("9.7.12.7", "exit")
def exit_(form: Form) -> Exit:
    """The end of the thread."""
    form.expect(0)
    return Exit()


@instruction("9.7.19.4", "trap")
def trap(form: Form) -> Trap:
    """Abort the kernel, as an error."""
    form.expect(0)
    return Trap()


@instruction("9.7.13.1", "bar [cta] sync", "barrier [cta] sync [aligned]")
def barrier(form: Form) -> Barrier:
    """Wait until the threads of the block have come; threads that have exited do not count.

    With a thread count, wait for so many. Threads are counted one by one, not by warps, so the
    `.aligned` forms allow the lanes of a warp to come from different instructions.
    """
    form.expect(1, 2)
    number = form.read(form.operands[0], U32)
    count = form.read(form.operands[1], U32) if len(form.operands) == 2 else None
    return Barrier(number, count)


@instruction("9.7.13.2", "bar warp sync")
def bar_warp_sync(form: Form) -> Together:
    """The named lanes of a warp wait for each other."""
    form.expect(1)
    return Together(form.read(form.operands[0], U32), lambda w: None)


_SCOPES = "cta|cluster|gpu|sys"


@instruction(
    "9.7.13.4",
    "membar cta|gl|sys",
    f"fence [sc|acq_rel|acquire|release] {_SCOPES}",
)
def fence(form: Form) -> Step:
    """Order memory accesses. Execution is sequentially consistent: there is nothing to do."""
    form.expect(0)
    return lambda w: None


@instruction("9.7.19.2", "nanosleep u32")
def nanosleep(form: Form) -> Step:
    """Suspend the thread for a while: the simulator has no time."""
    form.expect(1)
    form.read(form.operands[0], U32)
    return lambda w: None
