"""What every peer is given, and what it may answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.timing import Call


class Absent(Exception):
    """This peer cannot be here; the message says why in a few words."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A case that is ready to run.

    Attributes:
        data: inputs and outputs, and the reference: `bench.memory.Data` of a movement,
            `bench.gemm.operands.Operands` of a product.
        dtype: MLIR's name of the element type.
        device: cuda-core's device.
        stream: cuda-core's stream, on which everybody launches.
        torch: the module, with the stream made its current one; `None` where it is absent.
        scratch: a folder for what is compiled, of all cases of a run.
    """

    data: Any
    dtype: str
    device: Any
    stream: Any
    torch: ModuleType | None
    scratch: Path


Peer = Callable[[Setup], Call]
"""Raises `Absent`."""
