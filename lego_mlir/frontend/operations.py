"""What a kernel function may call: ids, shared memory, barriers, loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.frontend.dtypes import check_dtype
from lego_mlir.frontend.tensors import TensorValue
from lego_mlir.frontend.trace import Trace, current, user_location
from lego_mlir.frontend.values import Operand, Value, as_index
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir

_AXES = "xyz"

_ACQUIRE_RELEASE = 6  # LLVM::AtomicOrdering


def block_id(axis: str = "x") -> Value:
    """Return the index of the thread's CTA in the grid, along an axis (x, y or z)."""
    return _launch_argument("block_id", axis, 0)


def thread_id(axis: str = "x") -> Value:
    """Return the thread's index in its CTA, along an axis (x, y or z)."""
    return _launch_argument("thread_id", axis, 3)


def _launch_argument(what: str, axis: str, first: int) -> Value:
    trace = current(what)
    if axis not in tuple(_AXES):
        raise trace.error(f"{what}: the axis is x, y or z, not {axis!r}")
    body = trace.launch.regions[0].blocks[0]
    return Value(body.arguments[first + _AXES.index(axis)], trace)


def shared(dtype: str, layout: Layout) -> TensorValue:
    """Allocate a tensor in shared memory, one for each CTA, placed by `layout`.

    Args:
        dtype: MLIR's name of the element type, such as "f32".
        layout: of known size.
    """
    trace = current("shared")
    check_dtype(dtype, trace.error)
    kind = ir.Type.parse(f"memref<?x{dtype}, #gpu.address_space<workgroup>>")
    buffer = dialect.alloc(kind, trace.layout(layout), trace.here())
    return TensorValue("shared", buffer, dtype, layout, trace)


def barrier() -> None:
    """Wait for all threads of the CTA; their writes to shared memory are visible then."""
    current("barrier").create("gpu.barrier", [], [])


def fence() -> None:
    """Order the thread's accesses of global memory before the fence with those after it.

    What a thread wrote before its fence is seen by any thread of the GPU that after its own fence
    has seen, by an atomic update, that the first one went on. `lg.barrier` extends that to the
    CTA's other threads.

    Source: PTX ISA 9.7.13.4 (membar, fence), fence.acq_rel.gpu.
    """
    i64 = ir.IntegerType.get_signless(64)
    current("fence").create(
        "llvm.fence",
        [],
        [],
        ordering=ir.IntegerAttr.get(i64, _ACQUIRE_RELEASE),
        syncscope=ir.StringAttr.get("device"),
    )


def loop(stop: Operand, *, start: Operand = 0, step: Operand = 1) -> Iterator[Value]:
    """Record a loop of the kernel, `for i in lg.loop(n): ...`, whose body is traced once.

    Python's own `range` runs at trace time instead, and so unrolls. The body must run to its end:
    there is no `break` out of a traced loop.

    Args:
        stop: where the numbers end, exclusive.
        start: the first number.
        step: from one number to the next, positive.
    """
    trace = current("loop")
    bounds = _bounds(start, stop, step, trace)
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
            trace.left_loop = user_location()


def fold(
    stop: Operand, initial: Any, *, start: Operand = 0, step: Operand = 1
) -> Callable[[Callable[..., Any]], Any]:
    """Record a loop of the kernel that carries values from one iteration to the next.

        @lg.fold(steps, lg.zeros((128, 128), "f32"))
        def total(k, total):
            return lg.dot(a[m, k, :, :], b[k, n, :, :], total)

    The function is the body, traced once: it takes the loop index and the carried values, and
    returns the values for the next iteration. After decoration its name is what the last iteration
    returned, or `initial` if there was no iteration.

    Args:
        stop: where the numbers end, exclusive.
        initial: a value, or a tuple of values: then the body takes and returns as many.
        start: the first number.
        step: from one number to the next, positive.
    """
    trace = current("fold")
    carried = initial if isinstance(initial, tuple) else (initial,)
    for value in carried:
        if not isinstance(value, Value):
            raise trace.error(
                f"a loop carries kernel values, not {value!r}",
                hint='lg.zeros(shape, "f32") is a vector of zeros',
            )

    def run(body: Callable[..., Any]) -> Any:
        bounds = _bounds(start, stop, step, trace)
        kinds = [value.ssa.type for value in carried]
        location = trace.location()
        op = ir.Operation.create(
            "scf.for",
            results=kinds,
            operands=[*bounds, *(value.ssa for value in carried)],
            regions=1,
            loc=location,
        )
        types = [ir.IndexType.get(), *kinds]
        block = op.regions[0].blocks.append(*types, arg_locs=[location] * len(types))
        with ir.InsertionPoint(block):
            number, *values = (Value(x, trace) for x in block.arguments)
            returned = _returned(body(number, *values), kinds, trace)
            ir.Operation.create("scf.yield", operands=returned, loc=location)
        results = tuple(Value(x, trace) for x in op.results)
        return results if isinstance(initial, tuple) else results[0]

    return run


def _bounds(start: Operand, stop: Operand, step: Operand, trace: Trace) -> list[Any]:
    """Return the operands of a loop."""
    if isinstance(step, int) and step < 1:
        raise trace.error(
            f"the step of a loop is a positive number, not {step}",
            hint="to count down from n, use n - 1 - i",
        )
    return [as_index(x, trace).ssa for x in (start, stop, step)]


def _returned(found: Any, kinds: list[Any], trace: Trace) -> list[Any]:
    """Return what the body of a fold returned, after checking its types."""
    values = found if isinstance(found, tuple) else (found,)
    good = all(isinstance(value, Value) for value in values)
    if not good or [value.ssa.type for value in values] != kinds:
        expected = ", ".join(map(str, kinds))
        have = ", ".join(x.dtype if isinstance(x, Value) else repr(x) for x in values)
        raise trace.error(
            f"the loop carries {expected}, its function returns {have}",
            hint="the function returns the values for the next iteration",
        )
    return [value.ssa for value in values]
