"""Ring buffers of kernels of threads: slices of a tensor come by TMA, stages ahead of their use.

    ring = lg.ring("f32", OrderBy(Row(56, 26, 4)), stages=4)

    @lg.if_(t == 0)
    def _():
        ring.copy(n, x, (plane, slice(None), slice(None), slice(None)))    # one thread
    ...
    stage = ring.wait(n)                                                   # who reads
    ... ring.tensor[stage, i, j, :] ...
    ring.release(n)

Slice n lies in stage n mod stages. Its copy waits until the warps have released slice n - stages.
What lies outside of a window's tensor arrives as zeros, so nothing tests an index.

Source: PTX ISA 9.7.9.27 (cp.async.bulk.tensor), 9.7.13.15 (mbarrier).
"""

from __future__ import annotations

from math import lcm, prod
from typing import TYPE_CHECKING, Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.algebra.multibuffer import multibuffered
from lego_mlir.algebra.sizes import ceildiv
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend.asynchronous_copies import checked_copy
from lego_mlir.frontend.dtypes import check_dtype, mlir_element
from lego_mlir.frontend.operations import of_threads
from lego_mlir.frontend.operators import Operand
from lego_mlir.frontend.tensors import TensorValue
from lego_mlir.frontend.trace import Trace
from lego_mlir.frontend.values import Value, as_index
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations
from lego_mlir.mlir.lowering.buffers import BOX_ALIGNMENT

if TYPE_CHECKING:
    from lego_mlir.mlir.tile_passes.lower_pipelines.mbarriers import StageBarriers
    from lego_mlir.mlir.tile_passes.lower_pipelines.positions import Position

_THREAD, _BLOCK = slice(3, 6), slice(3, 6)
"""The thread among the arguments of a launch's body, and the CTA's sizes among its operands."""


def ring(dtype: str, layout: Layout, stages: int, warps: int | None = None) -> Ring:
    """Allocate a ring buffer in shared memory; all threads of the CTA call it, once.

    Args:
        dtype: MLIR's name of the element type, such as "f32".
        layout: of a slice, of known size.
        stages: how many slices there are at a time.
        warps: how many release each slice; by default all warps of the CTA.

    Raises:
        LegoError: the type or a number is none, or slices cannot lie one after another, each at a
            multiple of 128 bytes. Those in row-major order are padded for that.
    """
    from lego_mlir.mlir.emit import nvvm
    from lego_mlir.mlir.tile_passes.lower_pipelines.addresses import allocate_guarded
    from lego_mlir.mlir.tile_passes.lower_pipelines.mbarriers import StageBarriers
    from lego_mlir.mlir.tile_passes.lower_tiles import build
    from lego_mlir.mlir.tile_passes.lower_tiles.memory import where

    trace = of_threads("ring")
    check_dtype(dtype, trace.error)
    most = _warps(trace)
    readers = most if warps is None else warps
    if type(stages) is not int or stages < 1:
        raise trace.error(f"ring: stages is {stages!r}", hint="how many slices it holds, 1 or more")
    if type(readers) is not int or not 1 <= readers <= most:
        raise trace.error(
            f"ring: warps is {warps!r}, and the CTA has {most}",
            hint="how many of them release each slice",
        )
    trace.check_layout(layout)
    try:
        whole = _stages(layout, stages, _bytes(dtype))
    except LegoError as e:
        raise trace.error(f"ring: {e.message}", e.hint) from None
    trace.layout(whole)
    with trace.here():
        buffer = allocate_guarded(whole, mlir_element(dtype), BOX_ALIGNMENT)
        barriers = StageBarriers.make(stages)
        with where(_is_first_thread(trace)):
            barriers.initialize(1, build.constant(build.i32(), readers))
            nvvm.fence_mbarrier_init()
    trace.create("gpu.barrier", [], [])
    return Ring(TensorValue("ring", buffer, dtype, whole, trace), stages, barriers)


class Ring:
    """A ring buffer in shared memory. `lg.ring` makes it.

    Attributes:
        tensor: the stages: its first index is the stage, and the others are those of a slice.
        stages: how many slices it holds.
    """

    def __init__(self, tensor: TensorValue, stages: int, barriers: StageBarriers) -> None:
        self.tensor = tensor
        self.stages = stages
        self._barriers = barriers

    def copy(self, number: Operand, source: TensorValue, at: Any) -> None:
        """Begin the copy of a slice; one thread calls it, for numbers from 0 on in order.

        It waits until the stage is free.

        Args:
            number: of the slice.
            source: a tensor in global memory, or a window on it that reads zeros outside.
            at: the index there; `slice(None)` is a whole dimension. These make up the slice.

        Raises:
            LegoError: the slice has other sizes or elements than the ring.
        """
        trace = of_threads("ring.copy")
        position = self._position(number, trace)
        stage = Value(position.stage, trace)
        to = (stage, *(slice(None) for _ in self.tensor.dims[1:]))
        read, written = checked_copy("ring.copy", self.tensor, to, source, at)
        size = prod(written.shape) * _bytes(self.tensor.dtype)
        with trace.here():
            self._barriers.wait_empty(position)
            self._barriers.expect(position, size)
            tile_operations.copy_box(
                source.memref,
                read.operands,
                source.layout_attribute,
                read.whole,
                self.tensor.memref,
                written.operands,
                self.tensor.layout_attribute,
                written.whole,
                self._barriers.full_at(position),
            )

    def wait(self, number: Operand) -> Value:
        """Wait until a slice is there; return its stage.

        Args:
            number: of the slice.
        """
        trace = of_threads("ring.wait")
        position = self._position(number, trace)
        with trace.here():
            self._barriers.wait_full(position)
        return Value(position.stage, trace)

    def release(self, number: Operand) -> None:
        """Let the stage of a slice be filled again, which the warp has read.

        All lanes of the warp call it together.

        Args:
            number: of the slice.
        """
        from lego_mlir.mlir.tile_passes.lower_pipelines.mbarriers import arrive_by_warps

        trace = of_threads("ring.release")
        position = self._position(number, trace)
        with trace.here():
            arrive_by_warps(self._barriers.empty_at(position))

    def _position(self, number: Operand, trace: Trace) -> Position:
        from lego_mlir.mlir.tile_passes.lower_pipelines.positions import Position

        with trace.here():
            return Position.of(as_index(number, trace).ssa, self.stages)


def _bytes(dtype: str) -> int:
    """Return the bytes of an element."""
    return max(1, int(mlir_element(dtype).width) // 8)


def _stages(layout: Layout, stages: int, element: int) -> Layout:
    """Return the layout of all stages, each at a multiple of `BOX_ALIGNMENT` bytes.

    Args:
        layout: of a slice.
        stages: their number.
        element: bytes of an element.

    Raises:
        LegoError: slices cannot lie so.
    """
    known = isinstance(layout.size, int)
    if not known or layout.size * element % BOX_ALIGNMENT == 0:
        return multibuffered(layout, stages)
    rows, *others = layout.dims
    if layout != OrderBy(Row(rows, *others)):
        raise LegoError(
            f"a slice of '{layout}' has {layout.size * element} bytes, no multiple of "
            f"{BOX_ALIGNMENT}",
            hint="pad it: TMA writes slices at multiples of these",
        )
    run = prod(others) * element
    step = lcm(run, BOX_ALIGNMENT) // run
    padded = OrderBy(Row(stages, ceildiv(rows, step) * step, *others))
    return padded.Window([stages, rows, *others])


def _warps(trace: Trace) -> int:
    """Return the warps of the kernel's CTA."""
    sizes = [
        ir.IntegerAttr(n.owner.attributes["value"]).value for n in trace.launch.operands[_BLOCK]
    ]
    return int(ceildiv(prod(sizes), WARP_THREADS))


def _is_first_thread(trace: Trace) -> Any:
    """Build whether this is the first thread of the CTA."""
    from lego_mlir.mlir.tile_passes.lower_tiles import build

    at = list(trace.launch.regions[0].blocks[0].arguments)[_THREAD]
    first, *others = (build.compare("eq", k, build.index(0)) for k in at)
    for other in others:
        first = build.binary("andi", first, other)
    return first
