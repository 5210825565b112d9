"""Compiles kernels by Triton and NVRTC, without a GPU, and runs their PTX in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from lego_mlir import sim

_POINTEES = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "bool": "i1",
    **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"u{n}" for n in (8, 16, 32, 64)},
}


def run_triton(
    kernel: Any,
    grid: tuple[int, ...],
    *arguments: Any,
    arch: int = 90,
    options: dict[str, Any] | None = None,
    order: str = "late",
    aligned: bool = True,
    **constants: Any,
) -> str:
    """Compile a `triton.jit` function, run it on NumPy arrays, and return its PTX.

    Args:
        kernel: the function.
        grid: CTAs in x, y, z.
        arguments: arrays and numbers, for the parameters that are not constants.
        arch: the compute capability.
        options: of the compiler, such as `num_warps`.
        order: the completion order.
        aligned: whether to tell the compiler which arguments are multiples of 16, as a launch does.
        constants: the parameters marked `tl.constexpr`.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = [name for name in kernel.arg_names if name not in constants]
    signature, attributes = {}, {}
    for name, argument in zip(names, arguments, strict=True):
        signature[name] = _type_of(argument)
        multiple = isinstance(argument, np.ndarray) or (
            isinstance(argument, int) and argument % 16 == 0
        )
        if aligned and multiple:
            attributes[(kernel.arg_names.index(name),)] = [["tt.divisibility", 16]]
    signature |= dict.fromkeys(constants, "constexpr")
    signature = {name: signature[name] for name in kernel.arg_names}
    source = ASTSource(kernel, signature, constants, attributes)
    compiled = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options or {})
    ptx, meta = compiled.asm["ptx"], compiled.metadata
    x, y, z = (*grid, 1, 1)[:3]
    scratch = max(meta.global_scratch_size, 1) * x * y * z
    values = [value for argument in arguments for value in _passed(argument)]
    values += [np.zeros(scratch, np.uint8), np.zeros(1, np.uint8)]
    module = sim.parse(ptx, f"{meta.name}.ptx")
    count = len(module.kernels[meta.name].parameters)
    sim.launch(
        module,
        meta.name,
        (x * getattr(meta, "num_ctas", 1), y, z),
        (32 * meta.num_warps, 1, 1),
        values[:count],
        shared_bytes=meta.shared,
        order=order,
    )
    return ptx


def _type_of(argument: Any) -> str:
    if isinstance(argument, np.ndarray):
        return "*" + _POINTEES[argument.dtype.name]
    if isinstance(argument, Tile):
        box = ", ".join(map(str, argument.box))
        return f"tensordesc<{_POINTEES[argument.array.dtype.name]}[{box}]>"
    if isinstance(argument, int):
        return "i32" if -(2**31) <= argument < 2**31 else "i64"
    return "fp32"


class Tile:
    """An array as a tensor descriptor that the host makes, with the shape of its box."""

    def __init__(self, array: np.ndarray, box: tuple[int, ...], swizzle: str = "128B") -> None:
        self.array = array
        self.box = box
        self.swizzle = swizzle


def _passed(argument: Any) -> Sequence[Any]:
    """Return the kernel arguments of one argument of the function."""
    if isinstance(argument, Tile):
        array = argument.array
        dtype = {"bfloat16": "bf16"}.get(array.dtype.name)
        width = {"128B": 128, "64B": 64, "32B": 32}.get(argument.swizzle)
        inner = (
            argument.box[-1] if width is None else min(argument.box[-1], width // array.itemsize)
        )
        box = (inner, *argument.box[-2::-1])
        tensor = sim.TensorMap(array, box=box, swizzle=argument.swizzle, dtype=dtype)
        strides = [n // array.itemsize for n in array.strides]
        shape = [np.int32(n) for n in array.shape]
        return [tensor, *shape, *(np.int64(n) for n in strides)]
    if isinstance(argument, np.ndarray | np.generic | sim.TensorMap):
        return [argument]
    if isinstance(argument, int):
        return [np.int32(argument) if -(2**31) <= argument < 2**31 else np.int64(argument)]
    return [np.float32(argument)]


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
