"""Launches by the driver itself, for what cuda-core's `launch` does not take: tensor maps by value.

All that a launch needs is laid out once, when its arguments are bound.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from lego_mlir.artifact import Dim3, KernelLaunch

_MOST_STREAMS = 64
"""Streams whose configurations are kept."""


class StreamConfigs:
    """The driver's configurations of one launch, one for each stream, which threads may share.

    Args:
        launch: its sizes but the grid.
        grid: CTAs in x, y and z.

    Attributes:
        of_stream: the configurations by handle of the stream; `on` adds to them.
    """

    def __init__(self, launch: KernelLaunch, grid: Dim3) -> None:
        self._launch, self._grid = launch, grid
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
        config.gridDimX, config.gridDimY, config.gridDimZ = self._grid
        config.blockDimX, config.blockDimY, config.blockDimZ = launch.block
        config.sharedMemBytes = launch.shared_bytes
        config.hStream = driver.CUstream(stream)
        if launch.is_dependent(self._grid):
            kinds = driver.CUlaunchAttributeID
            attribute = driver.CUlaunchAttribute()
            attribute.id = kinds.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            attribute.value.programmaticStreamSerializationAllowed = 1
            config.attrs = [attribute]
            config.numAttrs = 1
        else:
            config.numAttrs = 0
        return config


class DriverKernel:
    """A kernel, and what the driver launches it by.

    Args:
        handle: of a CUkernel.
    """

    __slots__ = ("function", "launch", "success")

    def __init__(self, handle: int) -> None:
        from cuda.bindings import driver

        self.launch = driver.cuLaunchKernelEx
        self.success = driver.CUresult.CUDA_SUCCESS
        self.function = driver.CUfunction(handle)


class DirectLaunch:
    """One launch with all arguments fixed.

    Args:
        configs: of the launch.
        kernel: the kernel.
        pointers: to the kernel's parameters.
        kept: their memory.
    """

    __slots__ = (
        *("_address", "_config_on", "_configs", "_function", "_kept", "_launch", "_pointers"),
        "_success",
    )

    def __init__(
        self, configs: StreamConfigs, kernel: DriverKernel, pointers: array[int], kept: Any
    ) -> None:
        self._configs, self._config_on = configs.of_stream, configs.on
        self._launch, self._success = kernel.launch, kernel.success
        self._function = kernel.function
        self._pointers, self._kept = pointers, kept
        self._address, _ = pointers.buffer_info()

    @staticmethod
    def of(configs: StreamConfigs, kernel: DriverKernel, values: Sequence[Any]) -> DirectLaunch:
        """Return the launch with some values of parameters, which `stored` takes."""
        kept = [stored(value) for value in values]
        pointers = array("Q", [ctypes.addressof(x) for x in kept])
        return DirectLaunch(configs, kernel, pointers, kept)

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


def stored(value: Any) -> Any:
    """Return a parameter's value in memory: of an address, a NumPy scalar, or tensor maps."""
    if isinstance(value, tuple):
        words = [word for one in value for word in one]
        return (ctypes.c_uint64 * len(words))(*words)
    if isinstance(value, ctypes.Array):
        return value
    if isinstance(value, np.generic):
        return ctypes.create_string_buffer(value.tobytes(), value.dtype.itemsize)
    return ctypes.c_uint64(int(value))
