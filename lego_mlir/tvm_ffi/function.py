"""A function of TVM FFI that launches an artifact."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lego_mlir.artifact import Artifact
from lego_mlir.diagnostics import LegoError

if TYPE_CHECKING:
    from lego_mlir.frontend.host.host_function import HostFunction
    from lego_mlir.tvm_ffi.launches import Driver


def function(
    kernel: HostFunction | Artifact,
    *,
    gpu: int | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Any:
    """Return a `tvm_ffi.Function` that launches a kernel in place, on one GPU.

        add = lego_mlir.tvm_ffi.function(kernel)
        add(x, y, z)  # on PyTorch's current stream

    It takes what the kernel takes: tensors with DLPack, at best PyTorch's, and numbers. What a
    call on arrays checks, it checks too, in machine code. It does not wait for the end.

    Args:
        kernel: a kernel, a sequence of kernels, or an artifact.
        gpu: index of the CUDA device, the current one if `None`.
        sizes: of launches, where only launches know them: the function takes those of their class.
            By default it takes any.

    Raises:
        LegoError: apache-tvm-ffi or llvmlite is missing, or the kernel does not fit the device.
    """
    _check_installed()
    from lego_mlir.runtime.cuda import cuda_core
    from lego_mlir.runtime.cuda.loaded import load
    from lego_mlir.tvm_ffi.cuda_driver import of_cuda

    if not isinstance(kernel, Artifact):
        major, minor = cuda_core.capability(cuda_core.current_device(gpu))
        kernel = kernel.compile(f"sm_{major}{minor}" + ("a" if major >= 9 else ""), sizes=sizes)
    return made(kernel, *of_cuda(load(kernel, gpu)))


def made(artifact: Artifact, driver: Driver, kept: Sequence[Any]) -> Any:
    """Compile the host side of an artifact to a `tvm_ffi.Function`.

    Args:
        artifact: the artifact.
        driver: what the host code calls.
        kept: what must live as long as the function.
    """
    import tvm_ffi

    from lego_mlir.tvm_ffi.errors import failure
    from lego_mlir.tvm_ffi.launches import host_code
    from lego_mlir.tvm_ffi.machine_code import compiled

    messages: list[str] = []
    failed = failure(messages)
    code = host_code(artifact, driver, ctypes.cast(failed, ctypes.c_void_p).value or 0)
    messages += code.messages
    engine, address = compiled(code)
    found = tvm_ffi.Function.__from_extern_c__(
        address, keep_alive_object=(engine, failed, tuple(kept))
    )
    # The memory of tensor maps and of workspaces is the function's: one call at a time has it.
    found.release_gil = False
    return found


def _check_installed() -> None:
    """Raise LegoError where what this room needs is missing."""
    for package, importing in (("apache-tvm-ffi", "tvm_ffi"), ("llvmlite", "llvmlite")):
        try:
            __import__(importing)
        except ImportError:
            raise LegoError(
                f"functions of TVM FFI need {package}, which is not installed",
                hint="pip install 'lego-mlir[tvm-ffi]'",
            ) from None
