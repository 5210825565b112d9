"""`--check-each-step`: name the first pass that changes what a kernel on tiles computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lego_mlir import runtime
from lego_mlir.diagnostics import LegoError

if TYPE_CHECKING:
    from lego_mlir.compiler.driver import Compilation

ORDERS = ("late", "early", "random")
"""In which the simulator performs asynchronous operations, one run each."""


def check_each_step(
    compilation: Compilation, arrays: Sequence[Any] = (), orders: Sequence[str] = ORDERS
) -> list[str]:
    """Run a module before and after each pass over tiles, and once compiled.

    The interpreter of tile IR runs it up to where tiles are lowered, the simulator the PTX.

    Args:
        compilation: of a module with kernels on tiles.
        arrays: tensors, or numbers for scalars, by position; random where they are `None` or
            left out.
        orders: of the simulator.

    Returns:
        A line for each step.

    Raises:
        LegoError: the module has no kernel on tiles, a step changes a result, or it does not
            compile.
    """
    checked = compilation.with_options(check_each_step=True)
    check = checked.step_check
    if check is not None:
        check.given = arrays
    _ = checked.placed
    if check is None or not check.has_begun:
        raise LegoError(
            "the module has no kernel on tiles, whose steps could be checked",
            hint="a kernel on tiles loads or stores tensors; run others by legoc --run",
        )
    artifact = checked.artifact(assemble=False)
    inputs = [
        data if argument.shape is not None else data.item()
        for argument, data in zip(artifact.arguments, check.inputs, strict=True)
    ]
    for order in orders:
        device = runtime.select("sim", order=order)
        done = runtime.run(artifact, inputs, device=device, functions=checked.functions)
        check.lowered(f"the simulator ({order})", done.outputs)
    return check.lines
