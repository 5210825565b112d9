"""What a kernel function may call: ids, shared memory, barriers, loops."""

from __future__ import annotations

from collections.abc import Iterator

from lego_mlir.algebra import Layout
from lego_mlir.frontend.tensors import TensorValue, check_dtype
from lego_mlir.frontend.trace import current
from lego_mlir.frontend.values import Operand, Value, as_index
from lego_mlir.mlir.bindings import ir

_AXES = "xyz"


def block_id(axis: str = "x") -> Value:
    """The position of the thread's block in the grid, along an axis (x, y or z)."""
    return _launch_argument("block_id", axis, 0)


def thread_id(axis: str = "x") -> Value:
    """The thread's position in its block, along an axis (x, y or z)."""
    return _launch_argument("thread_id", axis, 3)


def _launch_argument(what: str, axis: str, first: int) -> Value:
    trace = current(what)
    if axis not in _AXES or len(axis) != 1:
        raise trace.error(f"{what}: the axis is x, y or z, not {axis!r}")
    body = trace.launch.regions[0].blocks[0]
    return Value(body.arguments[first + _AXES.index(axis)], trace)


def shared(dtype: str, layout: Layout) -> TensorValue:
    """A tensor in shared memory, one a block, its elements where `layout` says.

    Args:
        dtype: MLIR's name of the element type, such as "f32".
        layout: of known size.
    """
    trace = current("shared")
    check_dtype(dtype)
    kind = ir.Type.parse(f"memref<?x{dtype}, #gpu.address_space<workgroup>>")
    (buffer,) = trace.create("lego.alloc", [kind], [], layout=trace.layout(layout))
    return TensorValue("shared", buffer, dtype, layout, trace)


def barrier() -> None:
    """All threads of the block wait here; what they wrote to shared memory is then visible."""
    current("barrier").create("gpu.barrier", [], [])


def loop(stop: Operand, *, start: Operand = 0, step: Operand = 1) -> Iterator[Value]:
    """A loop of the kernel: `for i in lg.loop(n): ...`, its body traced once.

    Python's own `range` runs at trace time instead, and so unrolls. The body must run to its end:
    there is no `break` out of a traced loop.
    """
    trace = current("loop")
    bounds = [as_index(x, trace).ssa for x in (start, stop, step)]
    index = ir.IndexType.get()
    location = trace.location()
    op = ir.Operation.create("scf.for", operands=bounds, regions=1, loc=location)
    body = op.regions[0].blocks.append(index, arg_locs=[location])
    finished = False
    try:
        with ir.InsertionPoint(body):
            yield Value(body.arguments[0], trace)
            ir.Operation.create("scf.yield", loc=location)
        finished = True
    finally:
        if not finished and trace.left_loop is None:
            trace.left_loop = trace.place()
