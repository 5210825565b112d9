"""Asynchronous copies from global to shared memory in kernels of threads.

    lg.copy_async(buffer, (stage, row, slice(None)), x, (row, slice(None)))
    lg.commit_group()
    ...
    lg.wait_group(0)
    lg.barrier()

A copy takes no registers meanwhile. The thread that has begun it waits for it, and the barrier
behind that shows what it has brought to the other threads of the CTA. Copies end in groups, in the
order in which these were committed. Where a window or a partial tile has no element there are 0.

Source: PTX ISA 9.7.9.25.3 (cp.async, cp.async.commit_group, cp.async.wait_group).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lego_mlir.algebra.sizes import sizes_text
from lego_mlir.frontend.operations import of_threads
from lego_mlir.frontend.tensors import TensorValue
from lego_mlir.frontend.values import as_index
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations

_EXAMPLE = "lg.copy_async(buffer, (i, slice(None)), x, (j, slice(None)))"

_SHARED = "workgroup"
"""The address space of shared memory, as MLIR names it."""


def copy_async(target: TensorValue, to: Any, source: TensorValue, at: Any) -> None:
    """Begin a copy of elements from global to shared memory, as `target[to] = source[at]` does it.

    Each chunk of 16, 8 or 4 bytes that are neighbours and aligned in both is one copy. The elements
    are there after `wait_group` in the same thread, and for others after a barrier behind it.

    Args:
        target: a tensor in shared memory.
        to: the index there, of as many elements; `slice(None)` is a whole dimension.
        source: a tensor in global memory, of the same element type.
        at: the index there.

    Raises:
        LegoError: the tensors are elsewhere, or their elements or slices differ.
    """
    trace = of_threads("copy_async")
    read, written = checked_copy("copy_async", target, to, source, at)
    with trace.here():
        tile_operations.copy_parts(
            source.memref,
            read.operands,
            source.layout_attribute,
            read.factors,
            target.memref,
            written.operands,
            target.layout_attribute,
            written.factors,
            in_bounds=True,
        )


def checked_copy(
    what: str, target: TensorValue, to: Any, source: TensorValue, at: Any
) -> tuple[CopiedSlice, CopiedSlice]:
    """Return the slices that a copy from global to shared memory reads and writes.

    Args:
        what: the function that copies, for errors.
        target: a tensor in shared memory.
        to: the index there.
        source: a tensor in global memory.
        at: the index there.

    Raises:
        LegoError: the tensors are elsewhere, or their elements or slices differ.
    """
    trace = of_threads(what)
    for name, tensor in (("target", target), ("source", source)):
        if not isinstance(tensor, TensorValue):
            raise trace.error(
                f"{what}: {name} is {tensor!r}, which is no tensor",
                hint=f"copies are from a tensor to one in shared memory, as in {_EXAMPLE}",
            )
    if not _is_shared(target) or _is_shared(source):
        raise trace.error(
            f"{what} copies from global to shared memory, and here from tensor '{source.name}' "
            f"to '{target.name}'",
            hint='buffer = lg.shared("f32", layout)',
        )
    if target.dtype != source.dtype:
        raise trace.error(
            f"{what}: tensor '{source.name}' has elements of {source.dtype}, and "
            f"'{target.name}' of {target.dtype}",
            hint="both have the same; elements are converted when they are loaded",
        )
    read, written = _slice(source, at, what), _slice(target, to, what)
    if read.shape != written.shape:
        raise trace.error(
            f"{what}: the slice of tensor '{source.name}' has sizes "
            f"{sizes_text(read.shape) or '1'}, and that of '{target.name}' "
            f"{sizes_text(written.shape) or '1'}",
            hint="slice(None) stands for the same dimensions in both indices",
        )
    target.check_stored()
    return read, written


def commit_group() -> None:
    """End a group of the copies that the thread has begun since the last group; it may be empty."""
    from lego_mlir.mlir.emit import nvvm

    with of_threads("commit_group").here():
        nvvm.commit_copies()


def wait_group(pending: int = 0) -> None:
    """Wait until at most so many of the thread's groups, the youngest ones, are on their way.

    Args:
        pending: their number, known when the kernel is compiled.

    Raises:
        LegoError: it is no number from 0 on.
    """
    from lego_mlir.mlir.emit import nvvm

    trace = of_threads("wait_group")
    if type(pending) is not int or pending < 0:
        raise trace.error(
            f"wait_group: pending is {pending!r}",
            hint="a number from 0 on: how many groups may be on their way",
        )
    with trace.here():
        nvvm.wait_for_copies(pending)


class CopiedSlice(NamedTuple):
    """The elements of a tensor that a thread copies.

    Attributes:
        shape: the sizes of the dimensions that are copied whole.
        operands: the index of the first element, and the sizes that only the launch knows.
        factors: of these dimensions: their number, size and stride.
    """

    shape: tuple[int, ...]
    operands: list[Any]
    factors: list[tuple[int, int, int]]

    @property
    def whole(self) -> list[int]:
        """The dimensions that are copied whole."""
        return [d for d, _, _ in self.factors]


def _slice(tensor: TensorValue, index: Any, what: str) -> CopiedSlice:
    """Return the slice that an index selects.

    Raises:
        LegoError: the tensor has no such index, or a size of the slice is not known.
    """
    piece = tensor.piece(index)
    shape = [n for n in piece.shape if isinstance(n, int)]
    if len(shape) < len(piece.shape):
        raise tensor.trace.error(
            f"{what} of {sizes_text(piece.shape)} elements of tensor '{tensor.name}', a size "
            "that only the launch knows",
            hint="view the tensor in tiles of a known size, and copy one of them",
        )
    first = [as_index(0 if i is None else i, tensor.trace).ssa for i in piece.index]
    whole = [k for k, i in enumerate(piece.index) if i is None]
    factors = [(k, n, 1) for k, n in zip(whole, shape, strict=True)]
    return CopiedSlice(tuple(shape), first + tensor.size_operands, factors)


def _is_shared(tensor: TensorValue) -> bool:
    return _SHARED in str(ir.MemRefType(tensor.memref.type).memory_space)
