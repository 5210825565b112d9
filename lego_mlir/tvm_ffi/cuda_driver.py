"""The CUDA driver, as host code calls it."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

from lego_mlir.artifact import (
    Artifact,
    Parameter,
    TensorMapParameter,
    TensorMapParameters,
    WorkspaceIndex,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime.cuda import cuda_core
from lego_mlir.runtime.cuda.failures import NO_CONTEXT, launch_error, running
from lego_mlir.runtime.cuda.loaded import LoadedArtifact, handle_of
from lego_mlir.runtime.cuda.tensor_maps import TensorMapEncoder
from lego_mlir.runtime.workspaces import Allocation, Needs, WorkspacePool
from lego_mlir.tvm_ffi.arguments import CUDA, Device
from lego_mlir.tvm_ffi.errors import set_error
from lego_mlir.tvm_ffi.launches import Driver


def of_cuda(loaded: LoadedArtifact) -> tuple[Driver, tuple[Any, ...]]:
    """Return what the host code of a loaded artifact calls, and what must live as long as it."""
    import tvm_ffi
    from cuda.bindings import driver

    cuda = ctypes.CDLL("libcuda.so.1")
    artifact, device = loaded.artifact, loaded.device
    pool = WorkspacePool(artifact.name, device)
    kept: dict[int, Allocation] = {}

    def workspaces(stream: int | None, sizes: Any) -> int:
        spaces = [replace(w, shape=(sizes[n],)) for n, w in enumerate(artifact.workspaces)]
        needs = Needs.of(spaces)
        try:
            found = pool.of_stream(cuda_core.as_stream(stream or 0), needs)
        except LegoError as e:
            set_error(e)
            return 1
        kept[stream or 0] = found  # until the next launch on the stream
        for n, address in enumerate(found.addresses(needs)):
            sizes[n] = address
        return 0

    def recover(status: int) -> int:
        name = driver.CUresult(status).name
        if name in NO_CONTEXT:
            device.set_current()
            return 0
        set_error(launch_error(running(artifact.launches), RuntimeError(name)))
        return 1

    word = ctypes.c_int32
    functions = (
        ctypes.CFUNCTYPE(word, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))(workspaces),
        ctypes.CFUNCTYPE(word, word)(recover),
    )
    maps = [m for launch in artifact.launches for p in launch.parameters for m in _maps_of(p)]
    found = Driver(
        Device(CUDA, int(device.device_id)),
        [(handle_of(kernel), sizes) for kernel, _, sizes in loaded.kernels],
        {m: _encoding(m, artifact) for m in maps},
        _address(cuda.cuLaunchKernelEx),
        _address(cuda.cuTensorMapEncodeTiled),
        _address(tvm_ffi.LIB.TVMFFIEnvGetStream),
        *map(_address, functions),
    )
    return found, (loaded, functions)


def _maps_of(parameter: Parameter) -> tuple[TensorMapParameter, ...]:
    match parameter:
        case TensorMapParameter():
            return (parameter,)
        case TensorMapParameters(maps):
            return maps
    return ()


def _encoding(found: TensorMapParameter, artifact: Artifact) -> tuple[int, int, int, int, int]:
    position = found.argument
    if isinstance(position, WorkspaceIndex):
        return TensorMapEncoder(found, artifact.workspaces[position.workspace]).numbers
    return TensorMapEncoder(found, artifact.arguments[position]).numbers


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
