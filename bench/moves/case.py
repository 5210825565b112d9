"""What a movement of data is: its tensors, our kernels, and PyTorch's way of doing the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lego_mlir import Kernel

OURS, EAGER, COMPILED = "ours", "torch eager", "torch.compile"

MANIFEST = "moves.json"
"""The file of a folder of artifacts that says which kernels each case has."""

BYTES = {"i8": 1, "f16": 2, "bf16": 2, "f32": 4, "i32": 4, "f64": 8}
"""Bytes of the elements that cases have."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A row-major tensor of a case.

    Attributes:
        shape: its sizes.
        dtype: MLIR's name of the element type.
        below: if the elements are indices, they are below this; else 0.
    """

    shape: tuple[int, ...]
    dtype: str
    below: int = 0

    @property
    def size(self) -> int:
        """The bytes of the tensor."""
        return prod(self.shape) * BYTES[self.dtype]


@dataclass(frozen=True)
class MoveCase:
    """One movement of data.

    Attributes:
        name: unique; also the name of the kernels' files.
        inputs: what is read.
        outputs: what is written, whole.
        make: returns our kernels by name, `OURS` first. Their arguments are inputs and outputs.
        by_torch: takes PyTorch, the inputs and the outputs, and writes the outputs.
        traffic: bytes that must be read and written; those of all tensors if 0.
        casts: whether values are converted: then inputs are numbers, not any bits.
    """

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    make: Callable[[], Mapping[str, Kernel]]
    by_torch: Callable[[Any, Sequence[Any], Sequence[Any]], None] = field(repr=False)
    traffic: int = 0
    casts: bool = False

    @property
    def moved(self) -> int:
        """The bytes that must be read and written."""
        return self.traffic or sum(t.size for t in (*self.inputs, *self.outputs))
