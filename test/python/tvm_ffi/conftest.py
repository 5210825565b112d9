"""A driver that records what host code asks of it, and tensors in host memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from lego_mlir.artifact import Artifact
from lego_mlir.artifact.model import TensorMapParameter
from lego_mlir.artifact.ptx import parameter_sizes
from lego_mlir.tvm_ffi.arguments import Device
from lego_mlir.tvm_ffi.function import made
from lego_mlir.tvm_ffi.launches import Driver

STREAM = 0x5EA
MAP_NUMBERS = (6, 0, 3, 2, 0)


@dataclass
class Recorder:
    """What the driver was asked for.

    Attributes:
        launches: for each its kernel, grid, block, bytes of shared memory, whether it has PDL, and
            the bytes of its parameters.
        encodings: for each the address of the tensor, its shape, strides and box.
        answers: what the next launches return; 0 when there is none left.
        contexts: statuses from which the device's context was to be recovered.
        workspaces: the address of their memory.
        sizes: the elements of workspaces of f32 that were asked for.
    """

    launches: list[Any] = field(default_factory=list)
    encodings: list[Any] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    contexts: list[int] = field(default_factory=list)
    workspaces: int = 0x10000
    sizes: list[int] = field(default_factory=list)


def _words(kind: Any, count: int, address: int) -> tuple[int, ...]:
    return tuple((kind * count).from_address(address))


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def function_of(recorder: Recorder) -> Callable[[Artifact], Any]:
    """Return what makes a function whose driver is the recorder."""

    def build(artifact: Artifact) -> Any:
        sizes = [parameter_sizes(artifact.ptx, launch.kernel) for launch in artifact.launches]

        def launch(config: int, kernel: int, parameters: int, _: int | None) -> int:
            *dims, shared = _words(ctypes.c_uint32, 7, config)
            stream, attributes, count = _words(ctypes.c_uint64, 3, config + 32)
            assert stream == STREAM
            pdl = bool(count & 0xFFFFFFFF)
            if pdl:
                assert _words(ctypes.c_uint32, 1, attributes) == (6,)
                assert _words(ctypes.c_uint32, 1, attributes + 8) == (1,)
            values = [
                ctypes.string_at(at, size)
                for at, size in zip(
                    _words(ctypes.c_uint64, len(sizes[kernel]), parameters),
                    sizes[kernel],
                    strict=True,
                )
            ]
            found = kernel, tuple(dims[:3]), tuple(dims[3:]), shared, pdl, values
            recorder.launches.append(found)
            return recorder.answers.pop(0) if recorder.answers else 0

        def encode(
            destination: int, kind: int, rank: int, tensor: int, shape: int, strides: int, box: int,
            steps: int, interleave: int, swizzle: int, promotion: int, fill: int,
        ) -> int:  # fmt: skip
            assert destination % 64 == 0
            assert (kind, interleave, swizzle, promotion, fill) == MAP_NUMBERS
            assert _words(ctypes.c_uint32, rank, steps) == (1,) * rank
            recorder.encodings.append(
                (
                    tensor,
                    _words(ctypes.c_uint64, rank, shape),
                    _words(ctypes.c_uint64, rank - 1, strides),
                    _words(ctypes.c_uint32, rank, box),
                )
            )
            ctypes.memset(destination, len(recorder.encodings), 128)
            return recorder.answers.pop(0) if recorder.answers else 0

        def stream(kind: int, index: int) -> int:
            assert (kind, index) == (1, 0)
            return STREAM

        def recover(status: int) -> int:
            recorder.contexts.append(status)
            return 0

        def workspaces(_: int, sizes: Any) -> int:
            at = recorder.workspaces
            for n in range(len(artifact.workspaces)):
                recorder.sizes.append(sizes[n])
                sizes[n], at = at, at + 4 * sizes[n]
            return 0

        word, pointer = ctypes.c_int32, ctypes.c_void_p
        functions = (
            ctypes.CFUNCTYPE(word, pointer, ctypes.c_uint64, pointer, pointer)(launch),
            ctypes.CFUNCTYPE(word, pointer, word, word, *[pointer] * 5, *[word] * 4)(encode),
            ctypes.CFUNCTYPE(ctypes.c_size_t, word, word)(stream),
            ctypes.CFUNCTYPE(word, pointer, ctypes.POINTER(ctypes.c_int64))(workspaces),
            ctypes.CFUNCTYPE(word, word)(recover),
        )
        addresses = [ctypes.cast(f, pointer).value or 0 for f in functions]
        maps = [
            found
            for launch in artifact.launches
            for parameter in launch.parameters
            for found in (*getattr(parameter, "maps", ()), parameter)
            if isinstance(found, TensorMapParameter)
        ]
        driver = Driver(
            Device(1, 0),
            list(enumerate(sizes)),
            dict.fromkeys(maps, MAP_NUMBERS),
            *addresses,
        )
        return made(artifact, driver, functions)

    return build
