"""PyTorch in eager mode: one `copy_` of a permuted view."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.measure.device_memory import DeviceArray
from bench.measure.timing import Call
from bench.peers.base import Absent, Setup
from bench.permute.reference import permute_dims

TYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
}


def prepare(setup: Setup) -> Call:
    """Return a call that writes the permuted input to the output."""
    sets, axes = tensors(setup), setup.data.reference.axes
    pairs = [(permute_dims(x, axes), y) for x, y in sets]

    def launch(k: int) -> None:
        x, y = pairs[k]
        y.copy_(x)

    return launch


def tensors(setup: Setup) -> list[tuple[Any, Any]]:
    """Return input and output of every set as PyTorch tensors, without a copy.

    Raises:
        Absent: PyTorch with CUDA is not installed, or lacks the type.
    """
    data, torch = setup.data, setup.torch
    if torch is None:
        raise Absent("PyTorch with CUDA is not installed")
    kind = getattr(torch, TYPES.get(setup.dtype, ""), None)
    if kind is None:
        raise Absent(f"PyTorch has no type for {setup.dtype}")

    def tensor(pointer: int) -> Any:
        memory = DeviceArray(pointer, (data.size,), np.dtype(np.uint8))
        return torch.as_tensor(memory, device="cuda").view(kind)

    return [
        (
            data.reference.input_tensor(tensor(data.inputs + k * data.stride)),
            data.reference.output_tensor(tensor(data.outputs + k * data.stride)),
        )
        for k in range(data.sets)
    ]
