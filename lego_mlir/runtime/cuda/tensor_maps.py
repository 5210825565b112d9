"""Tensor maps as the driver encodes them: the 128 bytes of a kernel's parameter."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from lego_mlir.artifact import Argument, TensorMapParameter, Workspace, known_numbers
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import TENSOR_MAP_TYPES

_Words = ctypes.c_uint64 * 16
"""A CUtensorMap."""

_DRIVER_KINDS = {"f": "FLOAT", "bf": "BFLOAT", "u": "UINT", "s": "INT"}
"""What the driver writes for the letters of PTX's element types: `FLOAT16` for `f16`."""


class TensorMapEncoder:
    """Encodes a tensor map of a buffer, at any address and of any sizes.

    Args:
        found: the tensor map; its shape and strides may be those of another launch.
        buffer: the argument, or the workspace, that it maps.
    """

    def __init__(self, found: TensorMapParameter, buffer: Argument | Workspace) -> None:
        from cuda.bindings import driver

        self._name = buffer.name
        self._encode, self._success = driver.cuTensorMapEncodeTiled, driver.CUresult.CUDA_SUCCESS
        self._number = lru_cache(maxsize=256)(driver.cuuint64_t)  # making one takes its time
        self._rank = len(found.shape)
        self._before = (_data_type(buffer.dtype), self._rank)
        mode = f"{found.swizzle}B" if found.swizzle else "NONE"
        promotion = f"L2_{found.l2_promotion}B" if found.l2_promotion else "NONE"
        self._after = (
            [driver.cuuint32_t(n) for n in found.box],
            [driver.cuuint32_t(1) for _ in found.box],
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{mode}"),
            getattr(driver.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_{promotion}"),
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )

    @property
    def numbers(self) -> tuple[int, int, int, int, int]:
        """The driver's numbers of type, interleave, swizzle, promotion and fill."""
        (kind, _), (_, _, interleave, swizzle, promotion, fill) = self._before, self._after
        return int(kind), int(interleave), int(swizzle), int(promotion), int(fill)

    def __call__(self, address: int, sizes: Sequence[int]) -> Any:
        """Return the tensor map as a ctypes array; see `encode`."""
        memory, start = self.encode(address, sizes)
        words: Any = _Words.from_address(start)
        words.owner = memory
        return words

    def encode(self, address: int, sizes: Sequence[int]) -> tuple[Any, int]:
        """Encode the tensor map; return what has its memory, and where it begins.

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
        rank, numbers = self._rank, [*map(self._number, sizes)]
        error, made = self._encode(
            *self._before, address, numbers[:rank], numbers[rank:], *self._after
        )
        if error != self._success:
            raise LegoError(
                f"the driver refuses the tensor map of argument '{self._name}' ({error.name}): "
                f"shape {list(sizes[:rank])}, strides of {list(sizes[rank:])} bytes"
            )
        return made, made.getPtr()


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
