"""Launches by the driver itself, for what cuda-core's `launch` does not take: tensor maps by value.

All that a launch needs is laid out once, when its arguments are bound.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from lego_mlir.artifact import (
    Argument,
    KernelLaunch,
    TensorMapParameter,
    Workspace,
    known_numbers,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import TENSOR_MAP_TYPES
from lego_mlir.runtime.sized import known_grid

_WORDS = 16
"""64-bit words of a CUtensorMap."""

_MOST_STREAMS = 64
"""Streams whose configurations are kept."""

_DRIVER_KINDS = {"f": "FLOAT", "bf": "BFLOAT", "u": "UINT", "s": "INT"}
"""What the driver writes for the letters of PTX's element types: `FLOAT16` for `f16`."""


def encoded(found: TensorMapParameter, argument: Argument | Workspace, address: int) -> Any:
    """Encode a tensor map of a buffer as the 128 bytes that a kernel gets.

    Args:
        found: what to encode.
        argument: the argument, or the workspace, whose buffer it maps.
        address: of the buffer on the device.

    Raises:
        LegoError: the driver refuses it.
    """
    from cuda.bindings import driver

    if address % 16:
        raise LegoError(
            f"argument '{argument.name}' begins at address {address:#x}; TMA copies from multiples "
            "of 16 bytes",
            hint="pass an array of its own, or a slice that begins at a multiple of 16 bytes",
        )
    before, after = _encoding(found, argument.dtype)
    error, made = driver.cuTensorMapEncodeTiled(*before, address, *after)
    if error != driver.CUresult.CUDA_SUCCESS:
        raise LegoError(
            f"the driver refuses the tensor map of argument '{argument.name}' ({error.name}): "
            f"{found}"
        )
    return (ctypes.c_uint64 * _WORDS)(*(int(word) for word in made.opaque))


@lru_cache(maxsize=1024)
def _encoding(found: TensorMapParameter, dtype: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return what the driver wants to know of a tensor map, before and after the address."""
    from cuda.bindings import driver

    swizzle = (
        f"CU_TENSOR_MAP_SWIZZLE_{found.swizzle}B" if found.swizzle else "CU_TENSOR_MAP_SWIZZLE_NONE"
    )
    promotion = f"L2_{found.l2_promotion}B" if found.l2_promotion else "NONE"
    return (_data_type(dtype), len(found.shape)), (
        [driver.cuuint64_t(n) for n in known_numbers(found.shape)],
        [driver.cuuint64_t(n) for n in known_numbers(found.strides)],
        [driver.cuuint32_t(n) for n in found.box],
        [driver.cuuint32_t(1) for _ in found.box],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(driver.CUtensorMapSwizzle, swizzle),
        getattr(driver.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_{promotion}"),
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )


def encoding_numbers(found: TensorMapParameter, dtype: str) -> tuple[int, int, int, int, int]:
    """Return the driver's numbers of a tensor map's type, interleave, swizzle, promotion and fill.

    Args:
        found: the tensor map.
        dtype: of its elements.
    """
    (kind, _), (*_, interleave, swizzle, promotion, fill) = _encoding(found, dtype)
    return int(kind), int(interleave), int(swizzle), int(promotion), int(fill)


def _data_type(dtype: str) -> Any:
    """Return the driver's element type of a tensor map over elements of an MLIR type."""
    from cuda.bindings import driver

    name = TENSOR_MAP_TYPES[dtype]
    letters = name.rstrip("0123456789")
    member = f"CU_TENSOR_MAP_DATA_TYPE_{_DRIVER_KINDS[letters]}{name[len(letters) :]}"
    return getattr(driver.CUtensorMapDataType, member)


class StreamConfigs:
    """The driver's configurations of one launch, one for each stream, which threads may share.

    Args:
        launch: its sizes.

    Attributes:
        of_stream: the configurations by handle of the stream; `on` adds to them.
    """

    def __init__(self, launch: KernelLaunch) -> None:
        self._launch = launch
        self.of_stream: dict[int, Any] = {}

    def on(self, stream: int) -> Any:
        """Return the configuration for the stream with this handle."""
        found = self.of_stream.get(stream)
        if found is None:
            if len(self.of_stream) >= _MOST_STREAMS:
                self.of_stream.clear()
            found = self.of_stream[stream] = self._made(stream)
        return found

    def _made(self, stream: int) -> Any:
        from cuda.bindings import driver

        launch, config = self._launch, driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = known_grid(launch)
        config.blockDimX, config.blockDimY, config.blockDimZ = launch.block
        config.sharedMemBytes = launch.shared_bytes
        config.hStream = driver.CUstream(stream)
        if launch.pdl:
            kinds = driver.CUlaunchAttributeID
            attribute = driver.CUlaunchAttribute()
            attribute.id = kinds.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            attribute.value.programmaticStreamSerializationAllowed = 1
            config.attrs = [attribute]
            config.numAttrs = 1
        else:
            config.numAttrs = 0
        return config


class DirectLaunch:
    """One launch with all arguments fixed.

    Args:
        configs: of the launch.
        kernel: the handle of a CUkernel.
        values: of the kernel's parameters: addresses, NumPy scalars and tensor maps.
    """

    def __init__(self, configs: StreamConfigs, kernel: int, values: Sequence[Any]) -> None:
        from cuda.bindings import driver

        self._configs, self._config_on = configs.of_stream, configs.on
        self._launch = driver.cuLaunchKernelEx
        self._success = driver.CUresult.CUDA_SUCCESS
        self._function = driver.CUfunction(kernel)
        self._kept = [_stored(value) for value in values]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in self._kept))
        self._pointers = pointers
        self._address = ctypes.addressof(pointers)

    def __call__(self, stream: int) -> None:
        """Launch on the stream with this handle.

        Raises:
            RuntimeError: the driver refuses; it has the driver's word for it.
        """
        config = self._configs.get(stream) or self._config_on(stream)
        (status,) = self._launch(config, self._function, self._address, 0)
        if status != self._success:
            raise RuntimeError(status.name)


def is_tensor_map(value: Any) -> bool:
    """Return whether the value of a parameter is a tensor map, or a tuple of these."""
    return isinstance(value, ctypes.Array | tuple)


def _stored(value: Any) -> Any:
    """Copy a parameter's value to memory of its own."""
    if isinstance(value, tuple):
        words = [word for one in value for word in one]
        return (ctypes.c_uint64 * len(words))(*words)
    if isinstance(value, ctypes.Array):
        return value
    if isinstance(value, np.generic):
        return ctypes.create_string_buffer(value.tobytes(), value.dtype.itemsize)
    return ctypes.c_uint64(int(value))
