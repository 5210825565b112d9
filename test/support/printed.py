"""Runs printed layouts by their own tools: Python, NumPy, a C compiler, NVRTC, Triton.

Each function takes layouts with known sizes and returns, for each, two arrays with an entry for
every index in row-major order: the offset that the printed `apply` gives, and the position of the
index that the printed `inv` gives back for it.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from lego_mlir import sim
from lego_mlir.algebra import Layout
from lego_mlir.printers import to_c, to_cuda, to_numpy, to_python, to_triton

Results: TypeAlias = "list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]"


def positions(dims: Sequence[Any], index: Sequence[Any]) -> Any:
    """The row-major positions of an index of numbers or arrays."""
    flat: Any = 0
    for n, i in zip(dims, index, strict=True):
        flat = flat * n + i
    return flat


# -------------------------------------------------------------------------------- Python, NumPy
def by_python(layouts: Sequence[Layout]) -> Results:
    found = []
    for layout in layouts:
        names: dict[str, Any] = {}
        exec(to_python(layout, "A"), names)  # noqa: S102
        assert (names["A_dims"](), names["A_size"]()) == (layout.dims, layout.size)
        offsets = [int(names["A_apply"](*index)) for index in np.ndindex(*layout.dims)]
        back = [int(positions(layout.dims, names["A_inv"](x))) for x in offsets]
        found.append((np.array(offsets), np.array(back)))
    return found


def by_numpy(layouts: Sequence[Layout]) -> Results:
    found = []
    for layout in layouts:
        names: dict[str, Any] = {}
        exec(to_numpy(layout, "A"), names)  # noqa: S102
        index = [axis.reshape(-1) for axis in np.indices(layout.dims)]
        offsets = np.broadcast_to(names["A_apply"](*index), layout.size)
        back = positions(layout.dims, names["A_inv"](offsets))
        found.append((offsets, np.broadcast_to(back, layout.size)))
    return found


# ------------------------------------------------------------------------------------- C, CUDA
def decoded(layout: Layout, flat: str) -> list[str]:
    """C expressions of the index at a row-major position."""
    dims = layout.dims
    return [f"{flat} / {prod(dims[k + 1 :])} % {n}" for k, n in enumerate(dims)]


def encoded(layout: Layout, index: str) -> str:
    """A C expression of the row-major position of a struct."""
    text = "0"
    for k, n in enumerate(layout.dims):
        text = f"({text}) * {n} + {index}.i{k}"
    return text


def by_c(layouts: Sequence[Layout], folder: Path) -> Results:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    text, calls = "#include <stdio.h>\n", ""
    for k, layout in enumerate(layouts):
        calls += f"  L{k}_test();\n"
        text += to_c(layout, f"L{k}") + (
            f"static void L{k}_test(void) {{\n"
            f"  for (int flat = 0; flat < L{k}_size(); ++flat) {{\n"
            f"    int pair[2] = {{(int)L{k}_apply({', '.join(decoded(layout, 'flat'))}), 0}};\n"
            f"    L{k}_index back = L{k}_inv(pair[0]);\n"
            f"    pair[1] = (int)({encoded(layout, 'back')});\n"
            "    fwrite(pair, sizeof pair, 1, stdout);\n  }\n}\n"
        )
    (folder / "printed.c").write_text(text + f"int main(void) {{\n{calls}}}\n")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O0", "-fsanitize=undefined"]
    flags += ["-fno-sanitize-recover"]
    command = [compiler, *flags, "printed.c", "-o", "printed", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    out = subprocess.run([folder / "printed"], capture_output=True, check=True).stdout
    pairs = np.frombuffer(out, np.int32).reshape(-1, 2)
    ends = np.cumsum([layout.size for layout in layouts])[:-1]
    return [(part[:, 0], part[:, 1]) for part in np.split(pairs, ends)]


def ptx_of(cuda: str) -> str:
    """The PTX that NVRTC makes of CUDA C++."""
    pytest.importorskip("cuda.bindings.nvrtc")
    from cuda.bindings import nvrtc

    try:
        nvrtc.nvrtcVersion()
    except Exception as e:  # which one depends on the version of cuda-bindings
        pytest.skip(f"no NVRTC (pip install nvidia-cuda-nvrtc): {e}")

    def checked(result: Any) -> Any:
        error, *values = result
        assert error == nvrtc.nvrtcResult.NVRTC_SUCCESS, error
        return values[0] if values else None

    program = checked(nvrtc.nvrtcCreateProgram(cuda.encode(), b"printed.cu", 0, [], []))
    options = [b"--gpu-architecture=compute_80", b"--std=c++17"]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = b" " * checked(nvrtc.nvrtcGetProgramLogSize(program))
        checked(nvrtc.nvrtcGetProgramLog(program, log))
        raise AssertionError(log.decode())
    ptx = b" " * checked(nvrtc.nvrtcGetPTXSize(program))
    checked(nvrtc.nvrtcGetPTX(program, ptx))
    return ptx.rstrip(b"\0").decode()


def by_cuda(layouts: Sequence[Layout]) -> Results:
    text = ""
    for k, layout in enumerate(layouts):
        text += to_cuda(layout, f"L{k}") + (
            f'extern "C" __global__ void k{k}(int* out) {{\n'
            "  int flat = blockIdx.x * blockDim.x + threadIdx.x;\n"
            f"  if (flat >= L{k}_size()) return;\n"
            f"  int offset = L{k}_apply({', '.join(decoded(layout, 'flat'))});\n"
            f"  L{k}_index back = L{k}_inv(offset);\n"
            f"  out[2 * flat] = offset;\n  out[2 * flat + 1] = {encoded(layout, 'back')};\n}}\n"
        )
    module = sim.parse(ptx_of(text))
    found = []
    for k, layout in enumerate(layouts):
        out = np.full((layout.size, 2), -1, np.int32)
        sim.launch(module, f"k{k}", (-(-layout.size // 128), 1, 1), (128, 1, 1), [out])
        found.append((out[:, 0], out[:, 1]))
    return found


# -------------------------------------------------------------------------------------- Triton
class Storage:
    """What Triton's interpreter asks of a tensor's memory."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def cpu(self) -> Storage:
        return self

    def copy_(self, other: Storage) -> None:
        self.array[...] = other.array


class Tensor:
    """What Triton's interpreter asks of a tensor: a NumPy array.

    Bytes may have another type of 8 bits, which NumPy does not know.
    """

    def __init__(self, array: Any, dtype: Any = None) -> None:
        self.array = array
        self.dtype = array.dtype if dtype is None else dtype

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def untyped_storage(self) -> Storage:
        return Storage(self.array)

    def new_empty(self, *_: Any, **__: Any) -> Tensor:
        return Tensor(self.array, self.dtype)

    def set_(self, *_: Any) -> None:
        pass

    def storage_offset(self) -> int:
        return 0

    def size(self) -> Any:
        return self.array.shape

    def stride(self) -> Any:
        return tuple(s // self.array.itemsize for s in self.array.strides)


def triton_module(text: str, folder: Path, interpreted: bool = True) -> Any:
    """The module of a Triton program; Triton reads the sources of functions from its file."""
    pytest.importorskip("triton")
    file = folder / f"printed{len(list(folder.iterdir()))}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(f"printed_{file.stem}_{id(folder)}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1" if interpreted else "0")
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    return module


def triton_kernel(layout: Layout, name: str) -> str:
    index = [text.replace(" / ", " // ") for text in decoded(layout, "flat")]
    back = "0"
    for k, n in enumerate(layout.dims):
        back = f"({back}) * {n} + back[{k}]"
    width = 1 << (layout.size - 1).bit_length()
    return to_triton(layout, name) + (
        f"\n\n@triton.jit\ndef {name}_kernel(out):\n"
        f"    flat = tl.arange(0, {width})\n"
        f"    offset = {name}_apply({', '.join(index)}) + flat * 0\n"
        f"    back = {name}_inv(offset)\n"
        f"    keep = flat < {name}_size()\n"
        "    tl.store(out + 2 * flat, offset, mask=keep)\n"
        f"    tl.store(out + 2 * flat + 1, {back}, mask=keep)\n"
    )


def by_triton(layouts: Sequence[Layout], folder: Path) -> Results:
    text = "".join(triton_kernel(layout, f"L{k}") for k, layout in enumerate(layouts))
    module = triton_module(text, folder)
    found = []
    for k, layout in enumerate(layouts):
        out = np.full((layout.size, 2), -1, np.int32)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRITON_INTERPRET", "1")
            getattr(module, f"L{k}_kernel")[(1,)](Tensor(out))
        found.append((out[:, 0], out[:, 1]))
    return found


def by_triton_ptx(layouts: Sequence[Layout], folder: Path) -> Results:
    """As `by_triton`; Triton's compiler makes PTX, which the simulator runs."""
    found = []
    for k, layout in enumerate(layouts):
        module = triton_module(triton_kernel(layout, f"L{k}"), folder, interpreted=False)
        ptx, block = triton_ptx(getattr(module, f"L{k}_kernel"), {"out": "*i32"})
        out = np.full((layout.size, 2), -1, np.int32)
        run_triton_ptx(ptx, f"L{k}_kernel", (1, 1, 1), block, [out])
        found.append((out[:, 0], out[:, 1]))
    return found


def triton_ptx(kernel: Any, signature: dict[str, str], **constants: Any) -> tuple[str, Any]:
    """The PTX of a Triton kernel for sm_80, and the threads of its CTAs."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    source = ASTSource(
        fn=kernel,
        signature={**signature, **dict.fromkeys(constants, "constexpr")},
        constexprs={(kernel.arg_names.index(name),): v for name, v in constants.items()},
    )
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as cache:
        patch.setenv("TRITON_CACHE_DIR", cache)
        patch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # which Triton 3.9 warns if it is not said
        compiled = triton.compile(source, target=GPUTarget("cuda", 80, 32))
    # A vector of one element, without .v, is not in the PTX ISA.
    ptx = re.sub(r"\{ (%\w+) \}", r"\1", compiled.asm["ptx"])
    return ptx, (32 * compiled.metadata.num_warps, 1, 1)


def run_triton_ptx(ptx: str, name: str, grid: Any, block: Any, arguments: list[Any]) -> None:
    """Run a Triton kernel; its last parameters are scratch memory, which it does not use."""
    module = sim.parse(ptx)
    missing = ptx.count(".param", 0, ptx.index("{")) - len(arguments)
    scratch = [np.zeros(1, np.int64) for _ in range(missing)]
    sim.launch(module, name, grid, block, [*arguments, *scratch])
