"""Compiles kernels by Triton and NVRTC, without a GPU, and runs their PTX in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from lego_mlir import sim
from lego_mlir.sim import triton_kernels


def run_triton(
    kernel: Any,
    grid: tuple[int, ...],
    *arguments: Any,
    arch: int = 90,
    options: dict[str, Any] | None = None,
    order: str = "late",
    **constants: Any,
) -> str:
    """Run a `triton.jit` function on NumPy arrays with all checks, and return its PTX.

    Args:
        kernel: the function.
        grid: programs in x, y, z.
        arguments: arrays, numbers and `Tile`s, for the parameters that are not constants.
        arch: the compute capability to compile for.
        options: of the compiler, such as `num_warps`.
        order: the completion order.
        constants: the parameters marked `tl.constexpr`.
    """
    named = {**constants, **(options or {})}
    sim.triton(kernel, order=order, capability=arch)[grid](*arguments, **named)
    values, given = triton_kernels._bound(kernel, arguments, named)
    return triton_kernels._compiled(kernel, values, given, arch).module.text


class Tile:
    """An array as a tensor descriptor that the host makes, with the shape of its box."""

    def __init__(self, array: np.ndarray, box: tuple[int, ...]) -> None:
        self.base = array
        self.shape = list(array.shape)
        self.strides = [n // array.itemsize for n in array.strides]
        self.block_shape = list(box)
        self.padding = "zero"


def _passed(argument: Any) -> Sequence[Any]:
    """Return a number as the NumPy scalar that C++ takes for it, anything else as it is."""
    if isinstance(argument, np.generic):
        return [argument]
    if isinstance(argument, int):
        return [np.int32(argument) if -(2**31) <= argument < 2**31 else np.int64(argument)]
    return [np.float32(argument) if isinstance(argument, float) else argument]


@lru_cache
def cuda_ptx(source: str, arch: str = "compute_90a", *options: str) -> str:
    """Compile CUDA C++ to PTX by NVRTC."""
    from pathlib import Path

    import nvidia
    from cuda.bindings import nvrtc

    roots = [Path(root) / "cu13" / "include" for root in nvidia.__path__]
    given = [f"--gpu-architecture={arch}", "--std=c++17", *options]
    given += [f"-I{root}" for root in roots if root.is_dir()]
    given += [f"-I{root / 'cccl'}" for root in roots if (root / "cccl").is_dir()]
    program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []))
    (status,) = nvrtc.nvrtcCompileProgram(program, len(given), [o.encode() for o in given])
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = b" " * _checked(nvrtc.nvrtcGetProgramLogSize(program))
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.decode())
    text = b" " * _checked(nvrtc.nvrtcGetPTXSize(program))
    nvrtc.nvrtcGetPTX(program, text)
    nvrtc.nvrtcDestroyProgram(program)
    return text.rstrip(b"\0").decode()


def _checked(answer: tuple[Any, ...]) -> Any:
    status, *values = answer
    if status.value:
        raise RuntimeError(str(status))
    return values[0]


def run_cuda(
    source: str,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *arguments: Any,
    kernel: str = "k",
    arch: str = "compute_90a",
    options: tuple[str, ...] = (),
    **launch: Any,
) -> str:
    """Compile CUDA C++, run the kernel `k` (which is `extern "C"`), and return its PTX."""
    ptx = cuda_ptx(source, arch, *options)
    shapes = [(n, 1, 1) if isinstance(n, int) else (*n, 1, 1)[:3] for n in (grid, block)]
    values = [value for argument in arguments for value in _passed(argument)]
    sim.launch(ptx, kernel, *shapes, values, file="kernel.ptx", **launch)
    return ptx
