"""Arrays of other libraries, seen without a copy: by DLPack, else by `__cuda_array_interface__`.

PyTorch tensors are read by their own methods (`torch_tensors`).

The DLPack capsule is read here rather than by `cuda.core` or NumPy, so that `bfloat16` and `float8`
tensors pass (neither of the two carries them without ml_dtypes) and so that the same code serves
every version of both. Layout of the structs: DLPack 1.1, `dlpack.h`.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import dtypes, torch_tensors
from lego_mlir.runtime.dtypes import Array
from lego_mlir.runtime.launch_sizes.extents import row_major

ANY_GPU = -1

_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13

# DLDataTypeCode -> the MLIR names it can stand for, by number of bits.
DLPACK_TYPES: dict[tuple[int, int], tuple[str, ...]] = {
    **{(0, n): (f"i{n}", f"si{n}") for n in (8, 16, 32, 64)},
    **{(1, n): (f"i{n}", f"ui{n}") for n in (8, 16, 32, 64)},
    **{(2, n): (f"f{n}",) for n in (16, 32, 64)},
    (4, 16): ("bf16",),
    (6, 8): ("i1",),
    (10, 8): ("f8E4M3FN",),
    (12, 8): ("f8E5M2",),
}
DLPACK_TYPES[0, 64] += ("index",)
DLPACK_TYPES[1, 16] += ("bf16",)
DLPACK_TYPES[1, 8] += ("f8E4M3FN", "f8E5M2")
_DLPACK_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}


_address_in = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


@dataclass(frozen=True, slots=True)
class View:
    """Memory of an array of another library.

    Attributes:
        pointer: address of the first element.
        shape: in elements.
        strides: in elements.
        types: the MLIR element types that it can stand for.
        type_name: how its own library calls the element type, for messages.
        gpu: the CUDA device it lives on, `ANY_GPU` if unknown, or `None` for host memory.
        read_only: writing to it is forbidden.
        owner: keeps the memory alive.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    types: tuple[str, ...]
    type_name: str
    gpu: int | None
    read_only: bool
    owner: object


def gpu_of(array: object) -> int | None:
    """Return the CUDA device an array lives on; `None` for all else.

    `__cuda_array_interface__` does not tell which: `ANY_GPU`.
    """
    if isinstance(array, np.ndarray | np.generic):
        return None
    if torch_tensors.is_tensor(array):
        return torch_tensors.gpu_of(array)
    device = getattr(array, "__dlpack_device__", None)
    if device is not None:
        kind, index = device()
        return int(index) if int(kind) in (_CUDA, _CUDA_MANAGED) else None
    return ANY_GPU if _has_interface(array) else None


def view(array: Any, name: str, *, stream: int | None = None) -> View:
    """Return a view of an array of another library.

    Args:
        array: has `__dlpack__` or `__cuda_array_interface__`.
        name: of the argument, for messages.
        stream: of an array on a GPU, handle of the CUDA stream that will use it (never 0; 1 is the
            legacy default stream): work that the array waits for is ordered before it. -1 orders
            nothing. `None` for an array on the host.

    Raises:
        LegoError: it is no array, or its library refuses to lend it.
    """
    if torch_tensors.is_tensor(array):
        return _from_torch(array, name, stream)
    if hasattr(array, "__dlpack__"):
        return _from_dlpack(array, name, stream)
    if _has_interface(array):
        return _from_cuda_array_interface(array, name)
    raise LegoError(
        f"argument '{name}' needs an array, not {type(array).__name__}",
        hint="pass a NumPy array, or one with DLPack (PyTorch, CuPy, JAX)",
    )


def of_numpy(array: Array) -> View:
    """Return a view of a NumPy array, including ml_dtypes' or non-native elements."""
    strides = _in_elements(array.strides, array.itemsize)
    types, type_name = _types_of(array.dtype)
    native = array.dtype.isnative
    return View(
        pointer=array.ctypes.data,
        shape=array.shape,
        strides=strides,
        types=types if native else (),
        type_name=type_name if native else f"{type_name} of foreign byte order",
        gpu=None,
        read_only=not array.flags.writeable,
        owner=array,
    )


def _in_elements(strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return strides in elements; what is between two elements, as in a record, is beyond any."""
    return tuple(
        step // itemsize if itemsize and step % itemsize == 0 else sys.maxsize for step in strides
    )


def as_numpy(
    seen: View, dtype: np.dtype[Any], shape: Sequence[int], strides: Sequence[int]
) -> Array:
    """Return host memory as a NumPy array over the same bytes; keep `seen` while it is used.

    Args:
        seen: the memory.
        dtype: of the elements.
        shape: of the array, whose first element is that of the memory.
        strides: of the array, in elements.
    """
    in_bytes = [step * dtype.itemsize for step in strides]
    if prod(shape) == 0:
        return np.lib.stride_tricks.as_strided(np.empty(0, dtype), shape, in_bytes)
    reach = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    before = -sum(distance for distance in reach if distance < 0)
    count = 1 + sum(map(abs, reach))
    size = dtype.itemsize
    memory = (ctypes.c_uint8 * (count * size)).from_address(seen.pointer - before * size)
    array: Array = np.ndarray(shape, dtype, memoryview(memory), before * size, in_bytes)
    array.flags.writeable = not seen.read_only
    return array


def _from_torch(tensor: Any, name: str, stream: int | None) -> View:
    torch_tensors.check_memory(tensor, name)
    torch_tensors.order_after(tensor, stream)
    return View(
        tensor.data_ptr(),
        tuple(tensor.shape),
        tuple(tensor.stride()),
        DLPACK_TYPES.get(torch_tensors.type_code(tensor), ()),
        str(tensor.dtype),
        torch_tensors.gpu_of(tensor),
        False,
        tensor,
    )


def _from_dlpack(array: Any, name: str, stream: int | None) -> View:
    try:
        capsule = array.__dlpack__() if stream is None else array.__dlpack__(stream=stream)
    except Exception as e:  # each library has its own
        raise LegoError(
            f"the array for argument '{name}' cannot be lent by DLPack: {e}",
            hint="move it to CPU or CUDA, or copy it",
        ) from None
    # The capsule stays unconsumed: its own destructor frees the tensor once `owner` is gone.
    tensor = _DLTensor.from_address(_address_in(capsule, b"dltensor"))
    home, code, bits, rank = tensor.device_type, tensor.code, tensor.bits, tensor.ndim
    if home not in (_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED):
        raise LegoError(f"the array for argument '{name}' lives neither on the CPU nor on CUDA")
    shape = tuple(tensor.shape[:rank])
    return View(
        (tensor.data or 0) + tensor.byte_offset,
        shape,
        tuple(tensor.strides[:rank]) if tensor.strides else row_major(shape),
        DLPACK_TYPES.get((code, bits), ()) if tensor.lanes == 1 else (),
        f"{_DLPACK_KINDS.get(code) or f'type {code} of '}{bits}",
        tensor.device_id if home in (_CUDA, _CUDA_MANAGED) else None,
        False,
        (capsule, array),
    )


def _from_cuda_array_interface(array: Any, name: str) -> View:
    interface = array.__cuda_array_interface__
    try:
        dtype = np.dtype(interface["typestr"])
        types, type_name = _types_of(dtype)
        shape = tuple(int(n) for n in interface["shape"])
        pointer, read_only = interface["data"]
        strides = interface.get("strides")
    except (KeyError, TypeError, ValueError):
        raise LegoError(
            f"the array for argument '{name}' has a __cuda_array_interface__ that is not understood"
        ) from None
    if interface.get("stream") is not None:
        _wait_for(int(interface["stream"]))
    in_bytes = None if strides is None else tuple(map(int, strides))
    steps = row_major(shape) if in_bytes is None else _in_elements(in_bytes, dtype.itemsize)
    return View(
        int(pointer),
        shape,
        steps,
        types,
        type_name,
        ANY_GPU,
        bool(read_only),
        (interface, array),
    )


def _has_interface(array: object) -> bool:
    """Return whether an array has `__cuda_array_interface__`; avoid computing it."""
    name = "__cuda_array_interface__"
    return hasattr(type(array), name) or hasattr(array, name)


@functools.lru_cache(maxsize=256)
def _types_of(dtype: np.dtype[Any]) -> tuple[tuple[str, ...], str]:
    """Return the MLIR element types that a NumPy dtype can carry, and its NumPy name."""
    return tuple(name for name in dtypes.names() if dtypes.matches(dtype, name)), dtype.name


def _wait_for(stream: int) -> None:
    """Wait until the producer's stream has done its work, as the interface requires."""
    from cuda.bindings import driver

    driver.cuStreamSynchronize(driver.CUstream(stream))
