"""One warp-wide memory request as arrays: 32 byte offsets, which lanes are active, how wide."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WARP_THREADS

WIDTHS = (1, 2, 4, 8, 16)
GLOBAL_WIDTHS = (*WIDTHS, 32)
"""Global memory has the widest access, from sm_100 on: `.v8.b32` and `.v4.b64`."""

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def check_width(width: int, widths: tuple[int, ...] = WIDTHS) -> None:
    """Accept the widths in bytes that one lane can access in one instruction.

    Source: PTX ISA, "Vectors" and "ld": at most 128 bits by powers of two.

    Raises:
        LegoError: there is no access of that width.
    """
    if width not in widths:
        raise LegoError(
            f"no lane accesses {width} bytes at once",
            hint=f"the widths are {', '.join(map(str, widths))} bytes; split a wider access",
        )


def check_shape(shape: tuple[int, ...]) -> None:
    """Accept the shape of one or more warp-wide requests: `(..., 32)`.

    Raises:
        LegoError: the last axis does not have one entry for each lane.
    """
    if not shape or shape[-1] != WARP_THREADS:
        raise LegoError(
            f"an array of shape {shape} is no warp-wide request",
            hint=f"the last axis holds one entry for each of the {WARP_THREADS} lanes",
        )


def active_lanes(active: ArrayLike | None, shape: tuple[int, ...]) -> Bools:
    """Return the mask of active lanes in the given shape `(..., 32)`; all of them for `None`.

    Raises:
        LegoError: no such shape, or a mask that is not boolean or does not broadcast to it.
    """
    check_shape(shape)
    mask: NDArray[Any] = np.asarray(True if active is None else active)
    if mask.dtype != np.bool_:
        raise LegoError(f"the mask of active lanes has element type {mask.dtype}, expected bool")
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise LegoError(
            f"the mask of active lanes has shape {mask.shape}, the offsets have {shape}"
        ) from None


def request(
    byte_offsets: ArrayLike,
    width: int,
    active: ArrayLike | None,
    widths: tuple[int, ...] = WIDTHS,
) -> tuple[Ints, Bools]:
    """Return the offsets and the mask of one or more requests, checked.

    Args:
        byte_offsets: integers of shape `(..., 32)`, in bytes, one for each lane.
        width: bytes that each lane accesses.
        active: booleans that broadcast to the same shape; `None` when every lane is active.
        widths: the widths that there are.

    Returns:
        Both in shape `(..., 32)`; the offsets of inactive lanes are as given and mean nothing.

    Raises:
        LegoError: a wrong shape, element type or width, or an active lane whose offset is negative
            or no multiple of the width (which the hardware traps).
    """
    check_width(width, widths)
    offsets: NDArray[Any] = np.asarray(byte_offsets)
    check_shape(offsets.shape)
    if not np.issubdtype(offsets.dtype, np.integer):
        raise LegoError(f"byte offsets are integers, not {offsets.dtype}")
    mask = active_lanes(active, offsets.shape)
    wrong = mask & ((offsets < 0) | (offsets % width != 0))
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise LegoError(
            f"lane {first[-1]} accesses {width} bytes at byte offset {offsets[first]}",
            hint=f"an offset is a multiple of the access width ({width} bytes), zero or greater",
        )
    return offsets.astype(np.int64), mask


def distinct(values: Ints, valid: Bools) -> tuple[Ints, Bools]:
    """Return each row's values in ascending order, with a mark on the first of every run of equals.

    Args:
        values: non-negative where valid; shape `(..., n)`.
        valid: which values count; same shape.

    Returns:
        The sorted values and the marks, both `(..., n)`; a mark stands once per distinct valid
        value of its row, so `marks.sum(-1)` is the number of distinct values.
    """
    ordered = np.sort(np.where(valid, values, -1), axis=-1)
    before = np.full_like(ordered, -1)
    before[..., 1:] = ordered[..., :-1]
    return ordered, ordered != before
