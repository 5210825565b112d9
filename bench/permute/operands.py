"""Input and output of a data movement in device memory: several sets, poisoned and checked whole.

The sets together are larger than the L2 cache, and gaps lie between them. Outputs and gaps are
poisoned before a check, and every byte of them is inspected: an element left unwritten shows, and
so does a write beyond the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from bench.case import Array
from bench.measure.device_memory import DeviceArray, Verdict, sets_for, stride_of
from bench.measure.driver import call, driver
from bench.permute.reference import PermuteReference


@dataclass(frozen=True, slots=True)
class PermuteOperands:
    """Input and output of a case, `sets` times.

    Attributes:
        reference: what the outputs must be.
        dtype: NumPy's type of the elements.
        sets: number of sets.
        inputs: address of the first input; the next is `stride` bytes further.
        outputs: address of the first output.
        torch: the module, to check device memory in place; if `None`, all is copied to NumPy.
    """

    reference: PermuteReference
    dtype: np.dtype[Any]
    sets: int
    inputs: int
    outputs: int
    torch: ModuleType | None

    @staticmethod
    def allocate(
        reference: PermuteReference,
        dtype: np.dtype[Any],
        cache_bytes: int,
        max_sets: int,
        torch: ModuleType | None,
    ) -> PermuteOperands:
        """Allocate as many sets as touch `cache_bytes`, at most `max_sets`; `free` frees them."""
        size = reference.size * dtype.itemsize
        sets = sets_for(2 * size, cache_bytes, max_sets)
        total = sets * stride_of(size)
        inputs, outputs = (int(call(driver().cuMemAlloc, total)) for _ in range(2))
        return PermuteOperands(reference, dtype, sets, inputs, outputs, torch)

    def free(self) -> None:
        """Free the memory."""
        call(driver().cuMemFree, self.inputs)
        call(driver().cuMemFree, self.outputs)

    @property
    def size(self) -> int:
        """Return the bytes of one input, which are those of one output."""
        return self.reference.size * self.dtype.itemsize

    @property
    def stride(self) -> int:
        """Return the bytes from a set to the next."""
        return stride_of(self.size)

    @property
    def traffic(self) -> int:
        """Return the bytes that one launch reads and writes."""
        return 2 * self.size

    @property
    def min_launches(self) -> int:
        """Return the minimum number of launches in a graph, so that its overhead is small."""
        return 8

    def arrays(self, k: int, shapes: Sequence[tuple[int, ...] | None]) -> list[DeviceArray]:
        """Return input and output of set k, in the shapes of a kernel's arguments."""
        input_shape, output_shape = shapes
        return [self.input(k, input_shape), self.output(k, output_shape)]

    def input(self, k: int, shape: tuple[int, ...] | None = None) -> DeviceArray:
        """Return the input of set k, flat if `shape` is `None`."""
        return DeviceArray(
            self.inputs + k * self.stride, shape or (self.reference.size,), self.dtype
        )

    def output(self, k: int, shape: tuple[int, ...] | None = None) -> DeviceArray:
        """Return the output of set k, flat if `shape` is `None`."""
        return DeviceArray(
            self.outputs + k * self.stride, shape or (self.reference.size,), self.dtype
        )

    def fill_inputs(self, seed: int) -> None:
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
            copied: whether the outputs must be byte-for-byte copies of the inputs.
        """
        source, target = self._bytes(self.inputs), self._bytes(self.outputs)
        element = f"int{8 * self.dtype.itemsize}"  # compared as bits: a NaN is equal to itself
        kind = getattr(self.torch, element) if self.torch else np.dtype(element)
        differing: Any = 0
        for k in range(self.sets):
            x, y = source[k, : self.size].view(kind), target[k, : self.size].view(kind)
            if copied:
                differing = differing + (x != y).sum()
            else:
                expected = self.reference.expected(x)
                differing = differing + (expected != self.reference.output_tensor(y)).sum()
        outside = (target[:, self.size :] != byte).sum()
        return Verdict(self.sets * self.reference.size, int(differing), int(outside))

    def _bytes(self, pointer: int) -> Array:
        """Return all sets that start at an address, a row of bytes each."""
        shape = (self.sets, self.stride)
        if self.torch is not None:
            memory = DeviceArray(pointer, shape, np.dtype(np.uint8))
            return self.torch.as_tensor(memory, device="cuda")
        host = np.empty(shape, np.uint8)
        call(driver().cuMemcpyDtoH, host.ctypes.data, pointer, host.nbytes)
        return host
