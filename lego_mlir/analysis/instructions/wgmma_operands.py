"""Matrix descriptors from layouts, for operands that `wgmma` reads from shared memory.

One instruction reads a slice of a tile: `extent` elements along m or n, and 32 bytes along k. The
offsets of its elements determine start, strides, swizzle and major dimension, or show that the
hardware cannot read it.

    OrderBy(GenP([128, 64], tma_swizzle(128, 2)))     (m, k) of f16, the slice of 64 rows at k = 16:
    start 32   leading 0   stride 1024   swizzle 128   K-major

Source: PTX ISA 9.7.15.5.1 (shared memory layouts, strides, matrix descriptor).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from lego_mlir.algebra.slices import Slice
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WGMMA_K_BYTES
from lego_mlir.hardware.swizzle import CHUNK, MODES, alignment, swizzled

Major: TypeAlias = Literal["k", "mn"]


_CODES = {0: 0, 128: 1, 64: 2, 32: 3}
_REPEAT = 8
"""Rows of a core matrix, after which a swizzle's pattern repeats."""


@dataclass(frozen=True, slots=True)
class MatrixDescriptor:
    """The matrix descriptor of a slice of a tile in shared memory; offsets in bytes.

    Attributes:
        start: offset of the slice's first element from the tile's, before swizzling.
        leading: the leading dimension's byte offset.
        stride: the stride dimension's byte offset.
        swizzle: 0, 32, 64 or 128 bytes.
        major: `k` where elements are contiguous along k, `mn` where along m or n.
    """

    start: int
    leading: int
    stride: int
    swizzle: int
    major: Major

    @property
    def bits(self) -> int:
        """The 64 bits of the descriptor, for a tile at address 0."""
        fields = ((self.start, 0), (self.leading, 16), (self.stride, 32))
        word = sum((value >> 4) << shift for value, shift in fields)
        return word | _CODES[self.swizzle] << 62

    @property
    def alignment(self) -> int:
        """Alignment of the tile in shared memory, in bytes."""
        return alignment(self.swizzle)


def matrix_descriptor(
    shared: Slice, element: int, extent: int, at: tuple[int, int], k: int
) -> MatrixDescriptor:
    """Derive the matrix descriptor of a slice of a tile.

    Args:
        shared: the tile in shared memory, two dimensions.
        element: bytes of an element: 1, 2 or 4.
        extent: elements of the slice along m or n; a multiple of 8.
        at: index of the slice's first element.
        k: which of the tile's dimensions is k, 0 or 1.

    Raises:
        LegoError: `wgmma` cannot read the slice.
    """
    depth = WGMMA_K_BYTES // element
    offsets = shared.offsets()
    rows = offsets.T if k == 0 else offsets
    first, start = (at[1], at[0]) if k == 0 else at
    piece = rows[first : first + extent, start : start + depth] * element
    if piece.shape != (extent, depth) or extent % 8:
        raise LegoError(
            f"wgmma: there is no slice of {extent} by {depth} at {at} of '{shared}'",
            hint=f"tiles are multiples of 8 along m and n, and of {depth} along k",
        )
    majors: tuple[Major, ...] = ("k", "mn") if element == 2 else ("k",)
    for mode in MODES:
        for major in majors:
            found = _in_mode(piece, mode, major, element)
            if found is not None:
                return found
    if element != 2 and _is_mn_major(piece, element):
        raise LegoError(
            f"wgmma reads elements of {element} bytes only along k, and '{shared}' has them "
            "contiguous along the other dimension",
            hint="lay the operand out so that k is contiguous, in global memory too",
        )
    raise LegoError(
        f"wgmma cannot read '{shared}' in shared memory: its 16-byte chunks do not lie as any of "
        "the swizzling modes has them",
        hint=f"rows of 128 bytes, one below the other, in tma_swizzle(128, {element})",
    )


@lru_cache(maxsize=64)
def operand_descriptors(
    shared: Slice, element: int, k: int, extent: int, groups: int = 1
) -> tuple[tuple[MatrixDescriptor, ...], ...]:
    """Derive the matrix descriptors of an operand, relative to a warpgroup's first element.

    Args:
        shared: the operand in shared memory, two dimensions.
        element: bytes of an element.
        k: which of the dimensions is k, 0 or 1.
        extent: elements of an instruction along the other dimension.
        groups: the warpgroups that divide the other dimension into contiguous parts.

    Returns:
        The descriptors by block of `extent` elements, then by instruction along k. They are the
        same for all warpgroups.

    Raises:
        LegoError: `wgmma` cannot read the operand, or not with one table for all warpgroups.
    """
    offsets = shared.offsets() * element
    depth = WGMMA_K_BYTES // element
    own = offsets.shape[1 - k] // groups

    def at(outer: int, inner: int) -> tuple[int, int]:
        return (outer, inner) if k == 1 else (inner, outer)

    def block(first: int, base: int) -> tuple[MatrixDescriptor, ...]:
        row = []
        for start in range(0, offsets.shape[k], depth):
            piece = matrix_descriptor(shared, element, extent, at(first, start), k)
            if swizzled(base, piece.swizzle) != base:
                raise LegoError(
                    f"wgmma: the rows of a warpgroup in '{shared}' do not begin at a multiple of "
                    "the swizzle's pattern"
                )
            row.append(replace(piece, start=piece.start - base))
        return tuple(row)

    found = [
        tuple(
            block(first, int(offsets[at(group * own, 0)]))
            for first in range(group * own, (group + 1) * own, extent)
        )
        for group in range(groups)
    ]
    if any(other != found[0] for other in found):
        raise LegoError(f"wgmma: the warpgroups' tiles of '{shared}' have different layouts")
    return found[0]


def _is_mn_major(piece: Any, element: int) -> bool:
    return any(_in_mode(piece, mode, "mn", element) is not None for mode in MODES)


def _in_mode(piece: Any, mode: int, major: Major, element: int) -> MatrixDescriptor | None:
    """Return the descriptor in a swizzle mode, or `None` if the offsets differ from that mode's.

    Args:
        piece: byte offsets, by m or n and by k.
        mode: the swizzle mode.
        major: the dimension along which elements are contiguous.
        element: bytes of an element.
    """
    plain = swizzled(piece, mode)
    start = int(plain[0, 0])
    extent, depth = plain.shape
    run = max(mode, CHUNK)
    width = run // element  # elements of a run
    chunk = CHUNK // element
    row, column = np.indices((extent, depth))

    def distance(i: int, j: int) -> int:
        """Return the distance of an element from the first, 0 if the slice has no such element."""
        return int(plain[i, j]) - start if i < extent and j < depth else 0

    if major == "k":
        leading = 0 if mode else distance(0, chunk)
        stride = distance(_REPEAT, 0)
        across = column * element if mode else column // chunk * leading + column % chunk * element
        expected = row % _REPEAT * run + row // _REPEAT * stride + across
    else:
        far, near = distance(width, 0), distance(0, _REPEAT)
        leading, stride = (far, near) if mode else (near, far)
        expected = (
            column % _REPEAT * run
            + column // _REPEAT * near
            + row // width * far
            + row % width * element
        )
    fits = np.array_equal(plain, start + expected)
    even = start % CHUNK == 0 and leading % CHUNK == 0 and stride % CHUNK == 0
    small = 0 <= leading < 1 << 18 and 0 <= stride < 1 << 18
    return (
        MatrixDescriptor(start, leading, stride, mode, major) if fits and even and small else None
    )
