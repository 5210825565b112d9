"""Tensor maps as the driver encodes them: the 128 bytes of a kernel's parameter."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from functools import cache, cached_property
from struct import Struct
from typing import Any

from lego_mlir.artifact import Argument, TensorMapParameter, Workspace, known_numbers
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import TENSOR_MAP_TYPES
from lego_mlir.hardware.limits import TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES

_WORD_BYTES = 8
_Words = ctypes.c_uint64 * (TENSOR_MAP_BYTES // _WORD_BYTES)
"""A CUtensorMap."""

_ROOM = array("Q", bytes(TENSOR_MAP_BYTES + TENSOR_MAP_ALIGNMENT))
"""Memory for a tensor map, which may begin where the alignment wants it."""

_pointer = ctypes.c_void_p

_DRIVER_KINDS = {"f": "FLOAT", "bf": "BFLOAT", "u": "UINT", "s": "INT"}
"""What the driver writes for the letters of PTX's element types: `FLOAT16` for `f16`."""


class TensorMapEncoder:
    """Encodes a tensor map of a buffer, at any address and of any sizes.

    Launches on new sizes wait for it, so it calls the driver with what ctypes passes on at once:
    small numbers, and bytes for pointers to numbers. cuda-python makes an object of each number.

    Args:
        found: the tensor map; its shape and strides may be those of another launch.
        buffer: the argument, or the workspace, that it maps.

    Attributes:
        numbers: the driver's numbers of type, interleave, swizzle, promotion and fill.
    """

    def __init__(self, found: TensorMapParameter, buffer: Argument | Workspace) -> None:
        from cuda.bindings import driver

        self._name = buffer.name
        rank = len(found.shape)
        mode = f"{found.swizzle}B" if found.swizzle else "NONE"
        promotion = f"L2_{found.l2_promotion}B" if found.l2_promotion else "NONE"
        self.numbers = (
            int(_data_type(buffer.dtype)),
            int(driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE),
            int(getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{mode}")),
            int(getattr(driver.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_{promotion}")),
            int(driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        )
        kind, *modes = self.numbers
        self._before = kind, rank
        self._after = array("I", found.box).tobytes(), array("I", [1] * rank).tobytes(), *modes
        self._pack, self._split = Struct(f"={2 * rank - 1}q").pack, _WORD_BYTES * rank

    @cached_property
    def _encode(self) -> Any:
        """The driver's function; numbers are asked for where there is no driver, too."""
        return _library().cuTensorMapEncodeTiled

    def __call__(self, address: int, sizes: Sequence[int]) -> Any:
        """Return the tensor map as a ctypes array; see `encode`."""
        memory, place = self.encode(address, sizes)
        words: Any = _Words.from_address(place)
        words.owner = memory
        return words

    def encode(self, address: int, sizes: Sequence[int]) -> tuple[array[int], int]:
        """Encode the tensor map; return its memory, and where in it the tensor map begins.

        Args:
            address: of the buffer on the device.
            sizes: of the tensor, in elements, from the innermost dimension outwards; behind them
                the strides of all dimensions but the innermost, in bytes.

        Raises:
            LegoError: the driver refuses it.
        """
        if address % 16:
            raise LegoError(
                f"argument '{self._name}' begins at address {address:#x}; TMA copies from "
                "multiples of 16 bytes",
                hint="pass an array of its own, or a slice that begins at a multiple of 16 bytes",
            )
        memory, packed = _ROOM[:], self._pack(*sizes)
        start, _ = memory.buffer_info()
        place = start + -start % TENSOR_MAP_ALIGNMENT
        status = self._encode(
            *(_pointer(place), *self._before, _pointer(address)),
            *(packed, packed[self._split :], *self._after),
        )
        if status:
            shape, strides = list(sizes[: self._before[1]]), list(sizes[self._before[1] :])
            raise LegoError(
                f"the driver refuses the tensor map of argument '{self._name}' ({_name(status)}): "
                f"shape {shape}, strides of {strides} bytes"
            )
        return memory, place


@cache
def _library() -> Any:
    """Return the driver, whose calls are so short that they keep Python's lock."""
    return ctypes.PyDLL("libcuda.so.1")


def _name(status: int) -> str:
    """Return the driver's word for a failure."""
    from cuda.bindings import driver

    try:
        return str(driver.CUresult(status).name)
    except ValueError:
        return f"error {status}"


def encoded(found: TensorMapParameter, buffer: Argument | Workspace, address: int) -> Any:
    """Encode a tensor map of known sizes; see `TensorMapEncoder`.

    Raises:
        LegoError: the driver refuses it.
    """
    encoder = TensorMapEncoder(found, buffer)
    return encoder(address, known_numbers((*found.shape, *found.strides)))


def _data_type(dtype: str) -> Any:
    """Return the driver's element type of a tensor map over elements of an MLIR type."""
    from cuda.bindings import driver

    name = TENSOR_MAP_TYPES[dtype]
    letters = name.rstrip("0123456789")
    member = f"CU_TENSOR_MAP_DATA_TYPE_{_DRIVER_KINDS[letters]}{name[len(letters) :]}"
    return getattr(driver.CUtensorMapDataType, member)
