"""What a recorded program is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

HEADER = ".version 8.4\n.target sm_90a\n.address_size 64\n"


@dataclass(frozen=True)
class Accuracy:
    """How far a floating-point answer may be from the GPU's, in the dtype that it is read as.

    Attributes:
        dtype: of the values behind the bits.
        relative, absolute: either bound is enough.
    """

    dtype: str
    relative: float = 0.0
    absolute: float = 0.0


@dataclass(frozen=True)
class TensorMap:
    """A parameter that describes a tensor for TMA (cuTensorMapEncodeTiled).

    Attributes:
        argument: the array that holds the tensor, by its index among the arguments.
        dtype: NumPy's name of an element.
        dims: elements of each dimension, the fastest first.
        strides: bytes between elements of each dimension but the first.
        box: elements of each dimension that one copy moves.
        swizzle: bytes of the swizzle pattern, 0 for none.
    """

    argument: int
    dtype: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0


@dataclass(frozen=True)
class Program:
    """A kernel `k`, what it is launched with, and how exactly its answers are known.

    Attributes:
        name: also that of its answers.
        text: the PTX module.
        arguments: makes the arrays and tensor maps, in the order of the parameters.
        outputs: the indices of the arrays that the kernel writes.
        accuracy: by index; outputs without one are compared bit by bit.
    """

    name: str
    text: str
    arguments: Callable[[np.random.Generator], list[Any]]
    outputs: tuple[int, ...] = (0,)
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (32, 1, 1)
    cluster: tuple[int, int, int] | None = None
    shared: int = 0
    accuracy: dict[int, Accuracy] = field(default_factory=dict)

    def made(self) -> list[Any]:
        """The arguments, always the same."""
        return self.arguments(np.random.default_rng(list(self.name.encode())))


def kernel(parameters: str, body: str, before: str = "", directives: str = "") -> str:
    """A module with one kernel `k`: `parameters` as `u64 out, u64 a`."""
    listed = ", ".join(f".param .{p.strip()}" for p in parameters.split(","))
    return f"{HEADER}{before}\n.visible .entry k({listed}) {directives}\n{{\n{body}\nret;\n}}\n"
