"""Arrays of the host as the simulator takes them: NumPy arrays, and torch tensors without torch."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from lego_mlir.diagnostics import LegoError
from lego_mlir.sim.ptx.types import Array


def is_tensor(value: Any) -> bool:
    """Return whether a value is a NumPy array or a torch tensor."""
    return isinstance(value, np.ndarray) or _is_torch(value)


def _is_torch(value: Any) -> bool:
    return hasattr(value, "data_ptr") and hasattr(value, "stride") and hasattr(value, "device")


def type_name(value: Any) -> str:
    """Return the name of an array's element type: `float16`, `bfloat16`, `int8`."""
    return str(value.dtype).removeprefix("torch.")


def host_array(value: Any) -> Array:
    """Return a C-contiguous array that shares its memory with an array or a tensor.

    If the elements do not lie one after the other, it is all memory from the first element to the
    last one: a kernel gets a pointer to the first element, and the strides as arguments.

    Args:
        value: a NumPy array, or a torch tensor on the host.

    Raises:
        LegoError: it lives on a device, or its strides are negative.
    """
    if not isinstance(value, np.ndarray):
        if str(value.device) != "cpu":
            raise LegoError(
                f"a tensor on {value.device}: the simulator works on host memory",
                hint="pass tensor.cpu()",
            )
        value = _shared_with_torch(value.detach())
    array: Array = value
    if array.flags.c_contiguous:
        return array
    if array.size == 0:
        return np.zeros(0, array.dtype)
    if min(array.strides) < 0 or any(s % array.itemsize for s in array.strides):
        raise LegoError(
            f"an array with strides {array.strides}: a pointer to its first element and positive "
            f"strides cannot address it",
            hint="pass a copy: numpy.ascontiguousarray(array)",
        )
    last = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    count = last // array.itemsize + 1
    return np.lib.stride_tricks.as_strided(array, (count,), (array.itemsize,))


def _shared_with_torch(tensor: Any) -> Array:
    """Return a NumPy array on the memory of a tensor, as integers if NumPy lacks its type."""
    try:
        found: Array = tensor.numpy()
    except TypeError:
        torch = sys.modules["torch"]  # whoever made the tensor has imported it
        found = tensor.view({1: torch.uint8, 2: torch.int16}[tensor.element_size()]).numpy()
    return found
