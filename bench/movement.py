"""What a data movement must give: an oracle of reshapes and transposes, for NumPy and PyTorch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

Order = Literal["row", "col"]
Array = Any  # NumPy's or PyTorch's


@dataclass(frozen=True, slots=True)
class Permute:
    """The output is the input with its dimensions in another order, bit for bit.

    Attributes:
        shape: of the input.
        axes: dimension k of the output is dimension `axes[k]` of the input, as NumPy has it.
        source: where the input's elements lie: `row`, the last dimension without gaps, or `col`,
            the first.
        target: where the output's elements lie.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...] = (1, 0)
    source: Order = "row"
    target: Order = "row"

    @staticmethod
    def from_json(data: dict[str, Any]) -> Permute:
        """What a manifest says of it, whose tuples are lists."""
        shape, axes = tuple(data["shape"]), tuple(data["axes"])
        return Permute(shape, axes, data["source"], data["target"])

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of the output."""
        return tuple(self.shape[k] for k in self.axes)

    def given(self, memory: Array) -> Array:
        """The input as a tensor, a view of its memory."""
        return _seen(memory, self.shape, self.source)

    def result(self, memory: Array) -> Array:
        """The output as a tensor, a view of its memory."""
        return _seen(memory, self.result_shape, self.target)

    def expected(self, memory: Array) -> Array:
        """What the output tensor must be, from the input's memory."""
        return permuted(self.given(memory), self.axes)


def permuted(tensor: Array, axes: tuple[int, ...]) -> Array:
    """A view with the dimensions in another order."""
    return tensor.permute(axes) if hasattr(tensor, "permute") else tensor.transpose(axes)


def _seen(memory: Array, shape: tuple[int, ...], order: Order) -> Array:
    """Dense memory as a tensor, without a copy."""
    if order == "row":
        return memory.reshape(shape)
    return permuted(memory.reshape(shape[::-1]), tuple(range(len(shape)))[::-1])
