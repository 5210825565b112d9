"""The sizes that tiles have in registers: those of the program, rounded up for the threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WARP_THREADS

_SMALL = 256
"""Up to this size, which is that of one instruction's tile, multiples stay."""

TILE_MULTIPLES = (16, 8)
"""What may divide the sizes of tiles that stay: rows and k of `mma.sync`, and its columns."""

_VECTORS = (8, 4, 2)
"""Elements that one access moves, up to 16 bytes of 16 bits."""

_WASTE = 8
"""At most one part in so many of a dimension is added for wider vectors."""


class BoundedSize(int):
    """The size of a tile along a dimension whose own size only the launch knows: its bound.

    It makes tiles of the same sizes, and is no number to compute with: a mean over a row divides by
    the size, not by the bound.
    """

    tensor: str
    dim: int

    @staticmethod
    def of(bound: int, tensor: str, dim: int) -> BoundedSize:
        """Return the bound of a tensor's size along a dimension."""
        made = BoundedSize(bound)
        made.tensor, made.dim = tensor, dim
        return made

    def _computed(self, *_: object) -> NoReturn:
        raise self.error()

    __truediv__ = __rtruediv__ = __pow__ = __float__ = _computed

    def error(self) -> LegoError:
        """Return the error of a computation with the bound."""
        return LegoError(
            f"the tile's size {int(self)} is the bound of a size that only the launch knows",
            hint=f"the size itself is {self.tensor}.shape[{self.dim}], an index: "
            f'{self.tensor}.shape[{self.dim}].to("f32") is a number of f32',
        )


def is_size(n: object) -> bool:
    """Return whether a number is the size of a tile's dimension."""
    return type(n) in (int, BoundedSize) and n > 0  # type: ignore[operator]


def held_size(size: int, warps: int, multiple: int = TILE_MULTIPLES[0]) -> int:
    """Return the size that a dimension of a tile has in registers.

    It depends on nothing else, so that tiles of one shape have one type, whatever their elements
    and their other dimensions are. What is more than `size` is invalid: loads, `lego.restrict` and
    what follows from them see to it.

    Args:
        size: of the dimension in the program.
        warps: of the CTA, or of all CTAs of a cluster.
        multiple: what divides the sizes up to 256 that stay, as the kernel says.
    """
    power = 1 << (size - 1).bit_length()
    if size in (0, power) or (size <= _SMALL and size % multiple == 0):
        return size
    if size <= _SMALL:
        return power
    threads = warps * WARP_THREADS
    for vector in (*_VECTORS, 1):
        unit = threads * vector
        held = -(-size // unit) * unit
        if vector == 1 or (held - size) * _WASTE <= size:
            break
    return held


def held_shape(shape: Sequence[int], warps: int, multiple: int) -> tuple[int, ...]:
    """Return the shape that a tile has in registers; arguments are those of `held_size`."""
    return tuple(held_size(n, warps, multiple) for n in shape)
