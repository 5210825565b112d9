"""cuda-core: its module, the current device, and streams of any library.

cuda-core is imported on first use. Names relied on, from 0.4 (where they are in
`cuda.core.experimental`) to 1.x: `Device`, its `set_current`, `create_stream`, `allocate`,
`compute_capability`, `properties`; `Stream.from_handle`, `.handle`, `.sync`; `Buffer.handle`,
`.close`; `ObjectCode.from_cubin`, `.from_ptx`, `.get_kernel`; `LaunchConfig`, `launch`. Copies and
the shared-memory attribute go through `cuda.bindings.driver`.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime.compatibility import Capability
from lego_mlir.runtime.cuda.failures import failure

LEGACY_DEFAULT = 1
"""The handle of the legacy default stream, as the driver (CU_STREAM_LEGACY) and DLPack write it.

Other libraries say 0."""


def module() -> Any:
    """Import cuda-core's module; before 1.0 its names were in `experimental`."""
    try:
        import cuda.core as core

        if not hasattr(core, "Device"):
            from cuda.core import experimental as core
    except ImportError as e:
        raise LegoError(f"cuda-core cannot be used: {e}", hint="pip install cuda-core") from None
    return core


def current_device(index: int | None) -> Any:
    """Return cuda-core's device after making it current."""
    with failure("no CUDA device can be used"):
        core = module()
        device = core.Device() if index is None else core.Device(index)
        device.set_current()
    return device


def capability(device: Any) -> Capability:
    """Return the compute capability of a device of cuda-core."""
    major, minor = device.compute_capability
    return int(major), int(minor)


def as_stream(stream: Any) -> Any:
    """Return a stream of any library as cuda-core's stream.

    Args:
        stream: cuda-core's own, one with `__cuda_stream__`, a PyTorch stream (`cuda_stream`), or
            a handle.

    Raises:
        LegoError: it is no stream.
    """
    kind = module().Stream
    if isinstance(stream, kind):
        return stream
    handle = stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        _, handle = protocol() if callable(protocol) else protocol
    elif hasattr(stream, "cuda_stream"):
        handle = stream.cuda_stream
    if not isinstance(handle, int) or isinstance(handle, bool):
        raise LegoError(f"{type(stream).__name__} is no CUDA stream")
    return kind.from_handle(handle or LEGACY_DEFAULT)
