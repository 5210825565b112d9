"""Sizes and strides of the buffers of a launch, and what a launch knows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from lego_mlir.artifact import Argument, known_numbers
from lego_mlir.runtime.dtypes import Array


@dataclass(frozen=True, slots=True)
class Extents:
    """Where the elements of a buffer lie.

    Attributes:
        shape: in elements.
        strides: in elements; those of a buffer are not negative.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def elements(self) -> int:
        """The elements from the first to the last one, with what lies between the buffer's own."""
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))

    @property
    def is_dense(self) -> bool:
        """Whether the elements lie row-major without gaps."""
        return 0 in self.shape or all(
            n == 1 or own == dense
            for n, own, dense in zip(self.shape, self.strides, row_major(self.shape), strict=True)
        )


class Known(NamedTuple):
    """What a launch knows of its arguments, by position, as `artifact.expressions` takes it.

    Attributes:
        values: of scalars; what a tensor has here is not looked at.
        shapes: of tensors' buffers; empty for scalars.
        strides: of tensors' buffers, in elements; empty for scalars.
    """

    values: Sequence[Any]
    shapes: Sequence[tuple[int, ...]]
    strides: Sequence[tuple[int, ...]]

    @staticmethod
    def of(values: Sequence[Any], extents: Sequence[Extents | None]) -> Known:
        """Return what is known of values and extents, which are None for scalars."""
        shapes = [() if e is None else e.shape for e in extents]
        return Known(values, shapes, [() if e is None else e.strides for e in extents])


def extents_of_array(array: Array) -> Extents:
    """Return the extents of a NumPy array whose strides are multiples of its elements' size."""
    size = array.itemsize or 1
    return Extents(array.shape, tuple(step // size for step in array.strides))


def extents_of_values(values: Sequence[Any]) -> list[Extents | None]:
    """Return the extents of those values that are NumPy arrays."""
    return [extents_of_array(v) if isinstance(v, np.ndarray) else None for v in values]


def memory_of(array: Array) -> Array:
    """Return a NumPy array's memory from its first to its last element, as a dense array."""
    if array.flags.c_contiguous:
        return array
    count = extents_of_array(array).elements
    return np.lib.stride_tricks.as_strided(array, (count,), (array.itemsize,))


@lru_cache(maxsize=1024)
def fixed_extents(argument: Argument) -> Extents | None:
    """Return the extents that an argument's buffer has at every launch; None if they differ."""
    sides = (argument.shape or (), argument.strides or ())
    if argument.shape is None or None in (*sides[0], *sides[1]):
        return None
    shape = known_numbers(argument.shape)
    return Extents(shape, known_numbers(argument.strides) if argument.strides else row_major(shape))


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a dense row-major array of a shape, in elements."""
    return tuple(accumulate(reversed(shape), mul, initial=1))[: len(shape)][::-1]
