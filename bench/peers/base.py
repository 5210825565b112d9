"""The set-up that every peer receives, and the error by which it is absent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.measure.timing import Call


class Absent(Exception):
    """The peer cannot take part; the message says why in a few words."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A case that is ready to run.

    Attributes:
        data: operands and reference: `bench.permute.operands.PermuteOperands` or
            `bench.gemm.operands.GemmOperands`.
        dtype: MLIR's name of the element type.
        device: cuda-core's device.
        stream: cuda-core's stream, on which all contenders launch.
        torch: the module, with the stream as its current one; `None` if it is not installed.
        scratch: a folder for what is compiled, shared by all cases of a run.
    """

    data: Any
    dtype: str
    device: Any
    stream: Any
    torch: ModuleType | None
    scratch: Path


Peer = Callable[[Setup], Call]
"""A function that returns the peer's call, or raises `Absent`."""
