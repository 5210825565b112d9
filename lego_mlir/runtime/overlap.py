"""Buffers that share memory: a kernel that writes one of them would change the other.

The threads of a kernel run in no order, so a kernel that reads what it writes computes something
else each time, unless it is made for that and says so (`in_place`).

A buffer is dense, so its address and its size in bytes say all: two halves of the columns of one
array are no buffers, and buffers that only interleave do not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from lego_mlir.artifact import Argument, Artifact, known_numbers
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import dtypes
from lego_mlir.runtime.arrays import WRITES


def check_overlap(artifact: Artifact, addresses: Sequence[int | None]) -> None:
    """Check that no buffer that the kernels write shares bytes with another one.

    Args:
        artifact: says which buffers are written, and whether the kernel works in place.
        addresses: of each argument's buffer, in one address space; `None` for what has none there.

    Raises:
        LegoError: two buffers overlap; names both.
    """
    buffers = _buffers(artifact)
    if not buffers:
        return
    spans = []
    for position, size, written in buffers:
        start = addresses[position]
        if start is not None:
            spans.append((start, start + size, written, position))
    spans.sort()
    # Of the buffers that begin before: where the last of all ends, and where the last written one.
    end, last, end_written, last_written = 0, 0, 0, 0
    for start, stop, written, position in spans:
        if start < end_written:
            raise _overlap(artifact, last_written, position)
        if written and start < end:
            raise _overlap(artifact, last, position)
        if stop > end:
            end, last = stop, position
        if written and stop > end_written:
            end_written, last_written = stop, position


@lru_cache(maxsize=1024)
def _buffers(artifact: Artifact) -> tuple[tuple[int, int, bool], ...]:
    """Return position, size in bytes and `written` of each buffer to be checked."""
    if artifact.in_place:
        return ()
    found = []
    for position, argument in enumerate(artifact.arguments):
        if argument.shape is None or argument.access == "none":
            continue
        elements = prod(known_numbers(argument.shape))
        if elements:
            size = elements * dtypes.numpy_dtype(argument.dtype).itemsize
            found.append((position, size, argument.access in WRITES))
    return tuple(found) if any(written for _, _, written in found) else ()


def _overlap(artifact: Artifact, a: int, b: int) -> LegoError:
    first, second = (artifact.arguments[position] for position in sorted((a, b)))
    written = [_quoted(x) for x in (first, second) if x.access in WRITES]
    return LegoError(
        f"the arrays for the arguments {_quoted(first)} and {_quoted(second)} of "
        f"'{artifact.name}' overlap in memory, and the kernel writes {' and '.join(written)}",
        hint="pass a copy of one of them; a kernel that is made to work in place says so: "
        "@lg.kernel(..., in_place=True), in a .mlir file lego.in_place on the host function",
    )


def _quoted(argument: Argument) -> str:
    return f"'{argument.name}'"
