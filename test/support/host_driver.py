"""The CUDA driver's memory, played by the host's."""

from __future__ import annotations

import ctypes


class HostDriver:
    """The driver's functions on memory, over the host's."""

    def __init__(self) -> None:
        self.held: dict[int, ctypes.Array[ctypes.c_uint8]] = {}

    def cuMemAlloc(self, size: int) -> tuple[int, int]:  # noqa: N802, the driver's names
        held = (ctypes.c_uint8 * size)()
        self.held[ctypes.addressof(held)] = held
        return 0, ctypes.addressof(held)

    def cuMemFree(self, pointer: int) -> tuple[int]:  # noqa: N802
        del self.held[pointer]
        return (0,)

    def cuMemcpyHtoD(self, to: int, source: int, size: int) -> tuple[int]:  # noqa: N802
        ctypes.memmove(to, source, size)
        return (0,)

    cuMemcpyDtoH = cuMemcpyHtoD  # noqa: N815

    def cuMemsetD8(self, to: int, byte: int, size: int) -> tuple[int]:  # noqa: N802
        ctypes.memset(to, byte, size)
        return (0,)
