"""PyTorch tensors, read by their own methods: no DLPack capsule, and tensors with gradients too.

PyTorch is never imported here: who passes a tensor has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from lego_mlir.diagnostics import LegoError

CPU, CUDA = "cpu", "cuda"

_DEFAULT_STREAMS = (0, 1)
"""Handles of the legacy default stream: PyTorch's, and the driver's CU_STREAM_LEGACY."""

NOTHING_WAITS = -1
"""The stream of DLPack that orders nothing."""

_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
"""DLDataTypeCode by the letters of a dtype's name."""

_OTHER_CODES = {"bool": (6, 8), "float8_e4m3fn": (10, 8), "float8_e5m2": (12, 8)}


def is_tensor(array: object) -> bool:
    """Return whether an array is a PyTorch tensor; does not import PyTorch."""
    torch = sys.modules.get("torch")
    # While PyTorch is being imported, it is there and has no Tensor yet.
    kind = getattr(torch, "Tensor", None)
    return kind is not None and isinstance(array, kind)


def gpu_of(tensor: Any) -> int | None:
    """Return the index of the CUDA device that a tensor lives on; `None` elsewhere."""
    return int(tensor.device.index) if tensor.is_cuda else None


def common_gpu(arrays: Sequence[Any]) -> int | None:
    """Return the CUDA device if all arrays are PyTorch tensors on one, else `None`."""
    if not all(map(is_tensor, arrays)):
        return None
    found = set(map(gpu_of, arrays))
    return found.pop() if len(found) == 1 else None


def type_code(tensor: Any) -> tuple[int, int]:
    """Return DLPack's code and bits of a tensor's element type; the code -1 if it has none."""
    name = str(tensor.dtype).removeprefix("torch.")
    if name in _OTHER_CODES:
        return _OTHER_CODES[name]
    letters = name.rstrip("0123456789")
    bits = name[len(letters) :]
    return (_CODES.get(letters, -1), int(bits)) if bits else (-1, 0)


def check_memory(tensor: Any, name: str) -> None:
    """Check that a tensor is memory of the CPU or of CUDA that holds its elements.

    Args:
        tensor: the tensor.
        name: of the argument, for messages.

    Raises:
        LegoError: it is sparse, without memory, or its elements are negated when they are read.
    """
    if str(tensor.layout) != "torch.strided":
        raise LegoError(
            f"the tensor for argument '{name}' is sparse", hint="pass tensor.to_dense()"
        )
    if tensor.device.type not in (CPU, CUDA):
        raise LegoError(
            f"the tensor for argument '{name}' lives on '{tensor.device}', neither on the CPU nor "
            "on CUDA"
        )
    if tensor.is_neg() or tensor.is_conj():
        raise LegoError(
            f"the tensor for argument '{name}' is a view whose elements are negated when read",
            hint="pass tensor.resolve_neg().resolve_conj()",
        )


def order_after(tensor: Any, stream: int | None) -> None:
    """Let a stream wait for the work on a tensor's device that PyTorch enqueued so far.

    Args:
        tensor: on a CUDA device, or on the CPU, where nothing waits.
        stream: handle of the stream that will use the tensor; -1 or `None` orders nothing.
    """
    index = gpu_of(tensor)
    if stream is None or stream == NOTHING_WAITS or index is None:
        return
    current = current_stream_of(index)()
    if stream != current and not {stream, current} <= set(_DEFAULT_STREAMS):
        cuda = sys.modules["torch"].cuda
        user = cuda.ExternalStream(0 if stream in _DEFAULT_STREAMS else stream, index)
        user.wait_stream(cuda.current_stream(index))
        tensor.record_stream(user)  # its memory is not given to others before that work is done


def current_stream_of(index: int) -> Callable[[], int]:
    """Return a function that returns the handle of PyTorch's current stream on a CUDA device.

    The handle of the legacy default stream is 1, whatever PyTorch calls it.
    """
    torch: Any = sys.modules["torch"]
    # Triton and Inductor call this function too: the public one makes an object each time.
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is None:
        return lambda: int(torch.cuda.current_stream(index).cuda_stream) or 1
    return lambda: raw(index) or 1


def current_gpu() -> Callable[[], int] | None:
    """Return a function that returns PyTorch's current CUDA device; `None` if there is only one."""
    torch: Any = sys.modules["torch"]
    if torch.cuda.device_count() <= 1:
        return None
    found: Callable[[], int] = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)
    return found
