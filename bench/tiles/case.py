"""A program on tiles that is measured."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lego_mlir import Kernel

Shape = tuple[int, ...]

TORCH_NAMES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i8": "int8"}
"""Element types as PyTorch names them."""

WITHOUT_WGMMA = "sm_90"
"""What cases are compiled for that do without what only an H200 has."""


@dataclass(frozen=True)
class TileCase:
    """One program.

    Attributes:
        name: unique.
        make: returns the kernel; its last argument is the output.
        shapes: of the arguments.
        dtypes: of the arguments, as PyTorch names them.
        reference: computes the output in PyTorch, from f32 or f64 inputs.
        peers: what is measured beside it, by name, as `bench.tiles.peers` makes it.
        tolerance: the greatest error, relative to the greatest value of the reference.
        indices: for an argument of integers, below which number they are.
        variants: other ways to compile the same program, by name.
        programs: other programs for the same arguments, by name.
        flops: floating-point operations of tensor cores, 0 where memory counts.
        target: what it is compiled for, if not what the command says.
    """

    name: str
    make: Callable[[], Kernel]
    shapes: tuple[Shape, ...]
    dtypes: tuple[str, ...]
    reference: Callable[..., Any]
    peers: tuple[str, ...] = ()
    tolerance: float = 1e-5
    indices: dict[int, int] = field(default_factory=dict)
    variants: dict[str, Callable[[], AbstractContextManager[Any]]] = field(default_factory=dict)
    programs: dict[str, Callable[[], Kernel]] = field(default_factory=dict)
    flops: int = 0
    target: str | None = None
