"""Groups of asynchronous copies (PTX ISA, cp.async.commit_group and cp.async.wait_group).

Made without the bindings' classes: those of nvvm take longer to load than a kernel to compile.
"""

from __future__ import annotations

from lego_mlir.mlir.bindings import ir


def commit() -> None:
    """Make a group of the copies that the thread began since the last one."""
    ir.Operation.create("nvvm.cp.async.commit.group")


def wait(pending: int) -> None:
    """Wait until at most so many of the thread's groups, the latest ones, are not done."""
    count = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), pending)
    ir.Operation.create("nvvm.cp.async.wait.group", attributes={"n": count})
