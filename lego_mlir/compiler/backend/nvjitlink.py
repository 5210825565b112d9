"""PTX to cubin, in process, by nvJitLink: no GPU, no CUDA toolkit.

The low-level binding `cuda.bindings.nvjitlink` is used rather than `cuda.core.Program`: it is the
same library behind a third of the import time, and a compiler's run is mostly imports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lego_mlir.compiler.backend.assembly import (
    PTX_FILE,
    AssemblerMissing,
    Cubin,
    make_cubin,
    rejection,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target

PACKAGE = "nvidia-nvjitlink"

_INSTALL = f"pip install {PACKAGE} cuda-bindings"

# nvJitLinkResult, the two that mean something to our user (nvJitLink.h).
_UNRECOGNIZED_OPTION = 1
_UNSUPPORTED_ARCH = 17


def assemble(ptx: str, target: Target, options: Sequence[str] = ()) -> Cubin:
    """Assemble PTX; see `codegen.assemble`.

    Raises:
        LegoError: nvJitLink is missing or too old for the target, or the PTX is wrong.
    """
    arguments = [f"-arch={target.name}", "-verbose", *options]
    data = ptx.encode()
    with _linker(target, arguments) as (nvjitlink, handle):
        try:
            nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), PTX_FILE)
            nvjitlink.complete(handle)
        except nvjitlink.nvJitLinkError as e:
            log = _text(nvjitlink.get_error_log_size, nvjitlink.get_error_log, handle)
            raise rejection(log or str(e), ptx, target, PACKAGE) from None
        code = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, code)
        log = _text(nvjitlink.get_info_log_size, nvjitlink.get_info_log, handle)
    return make_cubin(bytes(code), log, target)


@contextmanager
def _linker(target: Target, arguments: list[str]) -> Iterator[tuple[Any, int]]:
    """Provide the nvJitLink binding and an open handle, which is closed at the end."""
    nvjitlink = _load()
    try:
        handle = nvjitlink.create(len(arguments), arguments)
    except nvjitlink.nvJitLinkError as e:
        status = int(getattr(e, "status", -1))
        version = ".".join(map(str, nvjitlink.version()))
        if status == _UNSUPPORTED_ARCH:
            raise LegoError(
                f"nvJitLink {version}, which is installed here, cannot assemble for {target}",
                hint=f"pip install --upgrade {PACKAGE}",
            ) from None
        if status == _UNRECOGNIZED_OPTION:
            raise LegoError(
                f"nvJitLink {version} does not know one of the options {' '.join(arguments)}"
            ) from None
        raise LegoError(f"nvJitLink {version} cannot start: {e}") from None
    try:
        yield nvjitlink, handle
    finally:
        nvjitlink.destroy(handle)


def _load() -> Any:
    """Import the binding and find its library.

    Raises:
        AssemblerMissing: one of the two is not installed.
    """
    try:
        from cuda.bindings import nvjitlink
    except ImportError as e:
        raise AssemblerMissing(
            f"PTX cannot be assembled: {e}", hint=f"{_INSTALL}; or stop at --emit=ptx"
        ) from None
    try:
        nvjitlink.version()
    except RuntimeError as e:  # the finder's own DynamicLibNotFoundError is one
        reason = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
        raise AssemblerMissing(
            f"PTX cannot be assembled, the library nvJitLink was not found: {reason}",
            hint=f"{_INSTALL}; or stop at --emit=ptx",
        ) from None
    return nvjitlink


def _text(size_of: Any, read: Any, handle: int) -> str:
    """Return one of nvJitLink's logs, without the NUL at its end."""
    buffer = bytearray(size_of(handle))
    if buffer:
        read(handle, buffer)
    return buffer.rstrip(b"\0").decode(errors="replace").strip()
