"""The reference of a data movement: reshapes and transposes, for NumPy and for PyTorch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from bench.case import Array, Order


@dataclass(frozen=True, slots=True)
class PermuteReference:
    """The output must be the input with its dimensions permuted, bit for bit.

    Attributes:
        shape: of the input.
        axes: dimension k of the output is dimension `axes[k]` of the input, as in NumPy.
        source: memory order of the input: `row`, the last dimension contiguous, or `col`, the
            first.
        target: memory order of the output.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...] = (1, 0)
    source: Order = "row"
    target: Order = "row"

    @staticmethod
    def from_json(data: dict[str, Any]) -> PermuteReference:
        """Return the reference that a manifest describes; JSON has lists for tuples."""
        shape, axes = tuple(data["shape"]), tuple(data["axes"])
        return PermuteReference(shape, axes, data["source"], data["target"])

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Return the shape of the output."""
        return tuple(self.shape[k] for k in self.axes)

    def input_tensor(self, memory: Array) -> Array:
        """Return the input as a tensor, a view of its memory."""
        return _tensor(memory, self.shape, self.source)

    def output_tensor(self, memory: Array) -> Array:
        """Return the output as a tensor, a view of its memory."""
        return _tensor(memory, self.output_shape, self.target)

    def expected(self, memory: Array) -> Array:
        """Return what the output tensor must be, given the input's memory."""
        return permute_dims(self.input_tensor(memory), self.axes)


def permute_dims(tensor: Array, axes: tuple[int, ...]) -> Array:
    """Return a view of a tensor with its dimensions permuted."""
    return tensor.permute(axes) if hasattr(tensor, "permute") else tensor.transpose(axes)


def _tensor(memory: Array, shape: tuple[int, ...], order: Order) -> Array:
    """Return dense memory as a tensor, without a copy."""
    if order == "row":
        return memory.reshape(shape)
    return permute_dims(memory.reshape(shape[::-1]), tuple(range(len(shape)))[::-1])
