"""Groups of asynchronous copies (PTX ISA, cp.async.commit_group and cp.async.wait_group).

It does not use the bindings' nvvm classes: importing them takes longer than compiling a kernel.
"""

from __future__ import annotations

from lego_mlir.mlir.bindings import ir


def commit() -> None:
    """Make a group of the copies that the thread started since the last group."""
    ir.Operation.create("nvvm.cp.async.commit.group")


def wait(pending: int) -> None:
    """Wait until all but the latest `pending` groups of the thread are complete."""
    count = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), pending)
    ir.Operation.create("nvvm.cp.async.wait.group", attributes={"n": count})
