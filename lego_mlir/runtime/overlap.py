"""Buffers that share memory: a kernel that writes one of them would change the other.

The threads of a kernel run in no order, so a kernel that reads what it writes computes something
else each time, unless it is made for that and says so (`in_place`).

Of dense buffers the addresses and the sizes in bytes say all. Buffers with strides may lie between
each other's elements, as two halves of the columns of one array do, and share none.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np

from lego_mlir.artifact import Argument, Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.runtime.arrays import WRITES
from lego_mlir.runtime.launch_sizes.extents import Extents

_MOST_WORK = 1 << 16
"""Work to find out whether two strided buffers share an element; beyond it they are taken to."""


def check_overlap(
    artifact: Artifact, addresses: Sequence[int | None], extents: Sequence[Extents | None]
) -> None:
    """Check that no buffer that the kernels write shares bytes with another one.

    Args:
        artifact: says which buffers are written, and whether the kernel works in place.
        addresses: of each argument's buffer, in one address space; `None` for what has none there.
        extents: of each argument's buffer; `None` for scalars.

    Raises:
        LegoError: two buffers overlap; names both.
    """
    buffers: list[_Buffer] = []
    for position, width, written in _buffers(artifact):
        start, own = addresses[position], extents[position]
        if start is not None and own is not None and own.elements:
            end = start + own.elements * width
            buffers.append((start, end, written, position, width, own))
    buffers.sort(key=lambda buffer: buffer[:4])
    # Of the buffers that begin before: where the last of all ends, and where the last written one.
    end, end_written = 0, 0
    for start, stop, written, *_ in buffers:
        if start < end_written or (written and start < end):
            _check_pairs(artifact, buffers)
            return
        end = max(end, stop)
        end_written = max(end_written, stop if written else 0)


_Buffer = tuple[int, int, bool, int, int, Extents]
"""Where a buffer begins and ends, whether it is written, its argument's position, bytes of an
element, and extents."""


@lru_cache(maxsize=1024)
def _buffers(artifact: Artifact) -> tuple[tuple[int, int, bool], ...]:
    """Return position, bytes of an element and `written` of each buffer to be checked."""
    if artifact.in_place:
        return ()
    found = [
        (position, ELEMENT_BYTES[argument.dtype], argument.access in WRITES)
        for position, argument in enumerate(artifact.arguments)
        if argument.shape is not None and argument.access != "none"
    ]
    return tuple(found) if any(written for _, _, written in found) else ()


def _check_pairs(artifact: Artifact, buffers: Sequence[_Buffer]) -> None:
    """Check every two buffers, of which one is written, for an element that they share."""
    for i, a in enumerate(buffers):
        for b in buffers[i + 1 :]:
            is_apart = a[1] <= b[0] or not (a[2] or b[2])
            if not is_apart and _share(a, b):
                raise _overlap(artifact, a[3], b[3])


def _share(a: _Buffer, b: _Buffer) -> bool:
    """Return whether two buffers, whose spans overlap, have a byte in common."""
    if a[-1].is_dense and b[-1].is_dense:
        return True
    first, second = (np.asarray(_Memory(x[0], x[4], x[5])) for x in (a, b))
    try:
        return np.shares_memory(first, second, cast(Any, _MOST_WORK))
    except np.exceptions.TooHardError:
        return True


class _Memory:
    """Memory at an address as NumPy takes it, to compare where its elements lie; never read.

    Args:
        address: of the first element.
        width: bytes of an element.
        extents: of the buffer.
    """

    def __init__(self, address: int, width: int, extents: Extents) -> None:
        self.__array_interface__ = {
            "version": 3,
            "typestr": f"|V{width}",
            "data": (address, True),
            "shape": extents.shape,
            "strides": tuple(step * width for step in extents.strides),
        }


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
