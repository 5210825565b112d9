"""What a kernel function may call: ids, shared memory, barriers."""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.frontend.dtypes import check_dtype, mlir_name
from lego_mlir.frontend.tensors import TensorValue
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.frontend.values import Value
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir

_AXES = "xyz"

_ACQUIRE_RELEASE = 6  # LLVM::AtomicOrdering


def block_id(axis: str = "x") -> Value:
    """Return the index of the CTA in the grid, along an axis (x, y or z).

    In kernels on tiles of clusters it is that of the cluster, whose CTAs hold tiles together.
    """
    trace = current("block_id")
    if trace.cluster > 1 and axis == "x":
        return Value(_cluster_id(trace), trace)
    return _launch_argument("block_id", axis, 0)


def _cluster_id(trace: Trace) -> Any:
    """Return the number of the cluster, which is read at the begin of the kernel."""
    body = trace.launch.regions[0].blocks[0]
    for op in body.operations:
        if op.operation.name == "gpu.cluster_id":
            return op.operation.result
    with ir.InsertionPoint.at_block_begin(body):
        (found,) = trace.create(
            "gpu.cluster_id", [ir.IndexType.get()], [], dimension=ir.Attribute.parse("#gpu<dim x>")
        )
    return found


def thread_id(axis: str = "x") -> Value:
    """Return the thread's index in its CTA, along an axis (x, y or z)."""
    of_threads("thread_id")
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
    trace = of_threads("shared")
    check_dtype(dtype, trace.error)
    kind = ir.Type.parse(f"memref<?x{mlir_name(dtype)}, #gpu.address_space<workgroup>>")
    buffer = dialect.alloc(kind, trace.layout(layout), trace.here())
    return TensorValue("shared", buffer, dtype, layout, trace)


def barrier() -> None:
    """Wait for all threads of the CTA; their writes to shared memory are visible then."""
    of_threads("barrier").create("gpu.barrier", [], [])


def fence() -> None:
    """Order the thread's accesses of global memory before the fence with those after it.

    What a thread wrote before its fence is seen by any thread of the GPU that after its own fence
    has seen, by an atomic update, that the first one went on. `lg.barrier` extends that to the
    CTA's other threads.

    Source: PTX ISA 9.7.13.4 (membar, fence), fence.acq_rel.gpu.
    """
    trace = of_threads("fence")
    i64 = ir.IntegerType.get_signless(64)
    trace.create(
        "llvm.fence",
        [],
        [],
        ordering=ir.IntegerAttr.get(i64, _ACQUIRE_RELEASE),
        syncscope=ir.StringAttr.get("device"),
    )


def launch_dependents() -> None:
    """Let the launch behind this one begin once all CTAs came here or ended: `pdl="wait"`.

    What it does before it waits for this launch then overlaps with the rest of this one. It still
    sees all that this one writes, before and after. Call it where a CTA has read most of what it
    reads: earlier, where all CTAs run at once, those of the next launch are spread less evenly.

    Source: PTX ISA 9.7.13.13 (griddepcontrol.launch_dependents).
    """
    from lego_mlir.mlir.emit import nvvm

    trace = of_threads("launch_dependents")
    if trace.pdl != "wait":
        rest = "begins as soon as this one may" if trace.pdl else "waits for the end of this one"
        raise trace.error(
            f"'launch_dependents' says when the next launch begins, which {rest}",
            hint='write @lg.kernel(..., pdl="wait")',
        )
    with trace.here():
        nvvm.griddepcontrol("launch_dependents")


def of_threads(what: str) -> Trace:
    """Return the trace of a kernel of threads.

    Raises:
        LegoError: the kernel is one on tiles.
    """
    trace = current(what)
    if trace.warps is not None:
        raise trace.error(
            f"'{what}' is for kernels of threads, and this one is on tiles",
            hint="the compiler distributes tiles among threads, with shared memory and barriers "
            "where they are needed; a kernel of threads is @lg.kernel(grid=..., block=...)",
        )
    return trace
