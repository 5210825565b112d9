"""What a tensor map may be: what `cuTensorMapEncodeTiled` takes (CUDA driver API; PTX ISA 5.5).

Dimensions go from the innermost outwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from lego_mlir.diagnostics import LegoError

MOST_RANK = 5
SWIZZLES = (0, 32, 64, 128)
"""Bytes within which 16-byte units are permuted; 0 is no swizzle."""

_MOST_SHAPE, _MOST_BOX = 1 << 32, 256


def check_tensor_map(
    shape: Sequence[int], strides: Sequence[int], box: Sequence[int], element: int, swizzle: int
) -> None:
    """Refuse a tensor map that the driver refuses.

    Args:
        shape: of the tensor, in elements.
        strides: of all dimensions but the innermost, in bytes.
        box: in elements.
        element: bytes of an element.
        swizzle: one of `SWIZZLES`.

    Raises:
        LegoError: a size is out of range, or the numbers of dimensions differ.
    """
    rank = len(shape)
    if not 1 <= rank <= MOST_RANK:
        raise refused(f"a tensor of {rank} dimensions: 1 to {MOST_RANK} are possible")
    if len(box) != rank:
        raise refused(f"box of {len(box)} dimensions for a tensor of {rank}")
    if len(strides) != rank - 1:
        raise refused(f"{len(strides)} strides where {rank - 1} should stand")
    for name, values, most in (("a shape", shape, _MOST_SHAPE), ("a box", box, _MOST_BOX)):
        if any(not 1 <= n <= most for n in values):
            raise refused(f"{name} of {tuple(values)}: each is 1 to {most}")
    if any(s % 16 or not 0 <= s < 1 << 40 for s in strides):
        raise refused(
            f"strides of {tuple(strides)} bytes: each is a multiple of 16, below 2**40",
            "pad the rows of the tensor to a multiple of 16 bytes",
        )
    if swizzle not in SWIZZLES:
        raise refused(f"a swizzle of {swizzle} bytes: it is one of {', '.join(map(str, SWIZZLES))}")
    inner = box[0] * element
    if inner % 16:
        raise refused(f"a box whose inner dimension has {inner} bytes: no multiple of 16")
    if swizzle and inner > swizzle:
        raise refused(
            f"a box whose inner dimension has {inner} bytes: with a swizzle of {swizzle}B "
            f"at most {swizzle}",
            "make the box narrower, and copy several",
        )


def last_byte(shape: Sequence[int], strides: Sequence[int], element: int) -> int:
    """Return the byte behind the tensor's last element, from its first one on."""
    steps = (element, *strides)
    return sum((n - 1) * step for n, step in zip(shape, steps, strict=True)) + element


def refused(what: str, hint: str | None = None) -> LegoError:
    """Return the error of a tensor map with `what`."""
    return LegoError(f"a tensor map with {what}", hint=hint)
