"""The data of one case in device memory: several sets, so that together they outgrow the L2 cache.

Between the sets lie gaps. Outputs and gaps are poisoned before a check, and all of it is looked at:
an element left unwritten shows, and so does a write beyond the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from bench.driver import call, driver
from bench.movement import Array, Permute

GAP = 512
"""Bytes between sets at least; the sets themselves start at multiples of it."""

POISONS = (0xCD, 0x32)
"""Two bytes that share no bit: what is right by chance over one is not over the other."""


@dataclass(frozen=True, slots=True)
class DeviceArray:
    """Device memory as any library takes it, by `__cuda_array_interface__`."""

    pointer: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the interface."""
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "version": 3,
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check of all sets found.

    Attributes:
        elements: how many were compared.
        differing: how many are not what the reference says.
        outside: how many bytes between the outputs were written.
    """

    elements: int
    differing: int
    outside: int

    @property
    def right(self) -> bool:
        """Whether all is as it must be."""
        return self.differing == self.outside == 0


@dataclass(frozen=True, slots=True)
class Data:
    """Input and output of a case, `sets` times.

    Attributes:
        reference: what the outputs must be.
        dtype: NumPy's, of the elements.
        sets: how many.
        inputs: address of the first input; the next is `stride` bytes on.
        outputs: address of the first output.
        torch: the module, to look at device memory in place; without it all is copied to NumPy.
    """

    reference: Permute
    dtype: np.dtype[Any]
    sets: int
    inputs: int
    outputs: int
    torch: ModuleType | None

    @staticmethod
    def allocate(
        reference: Permute, dtype: np.dtype[Any], past: int, most: int, torch: ModuleType | None
    ) -> Data:
        """As many sets as touch `past` bytes, at most `most`; see `free`."""
        size = reference.size * dtype.itemsize
        sets = max(1, min(most, -(-past // (2 * size))))
        total = sets * _stride(size)
        inputs, outputs = (int(call(driver().cuMemAlloc, total)) for _ in range(2))
        return Data(reference, dtype, sets, inputs, outputs, torch)

    def free(self) -> None:
        """Give the memory back."""
        call(driver().cuMemFree, self.inputs)
        call(driver().cuMemFree, self.outputs)

    @property
    def size(self) -> int:
        """Bytes of one input, and of one output."""
        return self.reference.size * self.dtype.itemsize

    @property
    def stride(self) -> int:
        """Bytes from a set to the next."""
        return _stride(self.size)

    @property
    def traffic(self) -> int:
        """Bytes of one set: what one launch reads and writes."""
        return 2 * self.size

    @property
    def launches(self) -> int:
        """Launches a graph at least, so that one gap between graphs weighs little."""
        return 8

    def arrays(self, k: int, shapes: Sequence[tuple[int, ...] | None]) -> list[DeviceArray]:
        """Input and output of set k, in the shapes of a kernel's arguments."""
        given, found = shapes
        return [self.input(k, given), self.output(k, found)]

    def input(self, k: int, shape: tuple[int, ...] | None = None) -> DeviceArray:
        """The memory of the input of set k, in a shape of its reader's choice."""
        return DeviceArray(
            self.inputs + k * self.stride, shape or (self.reference.size,), self.dtype
        )

    def output(self, k: int, shape: tuple[int, ...] | None = None) -> DeviceArray:
        """The memory of the output of set k."""
        return DeviceArray(
            self.outputs + k * self.stride, shape or (self.reference.size,), self.dtype
        )

    def draw(self, seed: int) -> None:
        """Fill the inputs with random bits."""
        words = self.sets * self.stride // 8
        bits = np.random.default_rng(seed).integers(0, 1 << 64, words, np.uint64)
        call(driver().cuMemcpyHtoD, self.inputs, bits.ctypes.data, bits.nbytes)

    def poison(self, byte: int) -> None:
        """Fill outputs and gaps with one byte."""
        call(driver().cuMemsetD8, self.outputs, byte, self.sets * self.stride)

    def check(self, byte: int, *, copied: bool = False) -> Verdict:
        """Compare every output with the reference, and the gaps with the poison.

        Args:
            byte: the poison.
            copied: the outputs must be the inputs, as they lie in memory.
        """
        given, found = self._bytes(self.inputs), self._bytes(self.outputs)
        element = f"int{8 * self.dtype.itemsize}"  # compared as bits: a NaN is equal to itself
        kind = getattr(self.torch, element) if self.torch else np.dtype(element)
        differing: Any = 0
        for k in range(self.sets):
            x, y = given[k, : self.size].view(kind), found[k, : self.size].view(kind)
            if copied:
                differing = differing + (x != y).sum()
            else:
                wanted = self.reference.expected(x)
                differing = differing + (wanted != self.reference.result(y)).sum()
        outside = (found[:, self.size :] != byte).sum()
        return Verdict(self.sets * self.reference.size, int(differing), int(outside))

    def _bytes(self, pointer: int) -> Array:
        """All sets that start at an address, a row of bytes each."""
        shape = (self.sets, self.stride)
        if self.torch is not None:
            memory = DeviceArray(pointer, shape, np.dtype(np.uint8))
            return self.torch.as_tensor(memory, device="cuda")
        host = np.empty(shape, np.uint8)
        call(driver().cuMemcpyDtoH, host.ctypes.data, pointer, host.nbytes)
        return host


def _stride(size: int) -> int:
    """Bytes from a set of `size` bytes to the next: at least one gap between them."""
    return (size // GAP + 2) * GAP
